// The tables. A change of schema is a new entry at the end of migrations; entries that were released never change.
#pragma once

#include <array>

namespace stacklab::store {

// Version 1.
// A number that is NaN is stored as NULL (SQLite has no NaN); infinities are stored as they are.
// Nothing here holds a path outside the workspace.
inline constexpr const char* schema_1 = R"sql(
CREATE TABLE runs (
  number        INTEGER PRIMARY KEY,         -- from 0 in order of creation
  id            TEXT NOT NULL UNIQUE,        -- hash of the config
  name          TEXT NOT NULL,
  folder        TEXT NOT NULL,               -- below runs/
  state         TEXT NOT NULL,
  cause         TEXT NOT NULL DEFAULT '',
  config_json   TEXT NOT NULL,
  corpus_sha256 TEXT NOT NULL DEFAULT '',
  total_steps   INTEGER NOT NULL DEFAULT 0,
  phase         TEXT NOT NULL DEFAULT '',
  detail        TEXT NOT NULL DEFAULT '',
  done          INTEGER NOT NULL DEFAULT 0,
  total         INTEGER NOT NULL DEFAULT 0,
  created       REAL NOT NULL,
  finished      REAL NOT NULL DEFAULT 0,
  session       INTEGER NOT NULL,            -- the last one
  epoch         INTEGER NOT NULL DEFAULT 0,  -- counts the times that rows were superseded or came late
  stop_requested INTEGER NOT NULL DEFAULT 0,
  ended_step    INTEGER NOT NULL DEFAULT 0,  -- where the last process ended: not every step has a row
  ended_tokens  INTEGER NOT NULL DEFAULT 0,
  ended_seconds REAL NOT NULL DEFAULT 0,
  parameters    INTEGER NOT NULL DEFAULT 0,
  plan_bytes    INTEGER NOT NULL DEFAULT 0,
  peak_bytes    INTEGER NOT NULL DEFAULT 0,
  tokens_per_second REAL NOT NULL DEFAULT 0
);
CREATE INDEX runs_by_name ON runs (name);

-- One row per process that trained a run, from 1.
CREATE TABLE sessions (
  run           INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
  session       INTEGER NOT NULL,
  pid           INTEGER NOT NULL,
  process_start INTEGER NOT NULL,            -- ticks since boot
  boot_id       TEXT NOT NULL,
  host          TEXT NOT NULL,
  namespace     TEXT NOT NULL,
  commit_id     TEXT NOT NULL DEFAULT '',
  started       REAL NOT NULL,
  ended         REAL NOT NULL DEFAULT 0,
  last_beat     REAL NOT NULL DEFAULT 0,
  next_by       REAL NOT NULL,
  after_step    INTEGER,                     -- training went on after this step; NULL: not yet known
  PRIMARY KEY (run, session)
) WITHOUT ROWID;

CREATE TABLE metric_names (
  id   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);
CREATE TABLE metrics (
  run    INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
  metric INTEGER NOT NULL REFERENCES metric_names (id),
  step   INTEGER NOT NULL,
  value  REAL,
  PRIMARY KEY (run, metric, step)
) WITHOUT ROWID;
CREATE TABLE steps (
  run       INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
  step      INTEGER NOT NULL,
  tokens    INTEGER NOT NULL,
  seconds   REAL NOT NULL,                   -- spent in the run
  unix_time REAL NOT NULL,
  PRIMARY KEY (run, step)
) WITHOUT ROWID;

CREATE TABLE events (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  run        INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
  session    INTEGER NOT NULL,
  sequence   INTEGER NOT NULL,               -- within the session: an event that is replayed twice stays one
  step       INTEGER NOT NULL,
  unix_time  REAL NOT NULL,
  kind       TEXT NOT NULL,
  text       TEXT NOT NULL,
  superseded INTEGER NOT NULL DEFAULT 0,
  UNIQUE (run, session, sequence)
);
CREATE INDEX events_by_run ON events (run);

CREATE TABLE facts (
  run   INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
  name  TEXT NOT NULL,
  value REAL,
  PRIMARY KEY (run, name)
) WITHOUT ROWID;
)sql";

inline constexpr std::array migrations = {schema_1};
inline constexpr int schema_version = static_cast<int>(migrations.size());

}  // namespace stacklab::store
