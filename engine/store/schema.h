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

// Version 2. Figures of a run are columns, kept by the writer, so that lists are sorted and filtered without its rows.
// runs.id is the hash of the config. A step of 0 beside a figure: it was not measured; NULL beside a step: NaN.
// Changed rows of runs carry a number that only grows, so that a reader asks for what is new.
inline constexpr const char* schema_2 = R"sql(
ALTER TABLE runs ADD COLUMN commit_id   TEXT NOT NULL DEFAULT '';    -- of the build that trained it last
ALTER TABLE runs ADD COLUMN dirty       INTEGER NOT NULL DEFAULT 0;  -- whether that build's sources had changes
ALTER TABLE runs ADD COLUMN tokenizer   TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN last_step   INTEGER NOT NULL DEFAULT 0;  -- that has a row
ALTER TABLE runs ADD COLUMN last_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN last_seconds REAL NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN loss_step   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN first_loss  REAL;
ALTER TABLE runs ADD COLUMN loss        REAL;
ALTER TABLE runs ADD COLUMN val_step    INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN val_loss    REAL;
ALTER TABLE runs ADD COLUMN note        TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN archived    REAL NOT NULL DEFAULT 0;     -- when; 0: it is not
ALTER TABLE runs ADD COLUMN deleted     REAL NOT NULL DEFAULT 0;     -- when its folder went to the trash; 0: it did not
ALTER TABLE runs ADD COLUMN parent      TEXT NOT NULL DEFAULT '';    -- id of the run that it was forked from
ALTER TABLE runs ADD COLUMN fork_step   INTEGER NOT NULL DEFAULT 0;  -- after which
ALTER TABLE runs ADD COLUMN detached    INTEGER NOT NULL DEFAULT 0;  -- its process belongs to no terminal or window
ALTER TABLE runs ADD COLUMN budget_tokens INTEGER NOT NULL DEFAULT 0;  -- 0: no limit
ALTER TABLE runs ADD COLUMN budget_hours REAL NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN budget_usd  REAL NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN usd_per_hour REAL NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN checkpoint_requested INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN changed     INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_by_state ON runs (state);
CREATE INDEX runs_by_change ON runs (changed);

CREATE TABLE tags (
  run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
  tag TEXT NOT NULL,
  PRIMARY KEY (run, tag)
) WITHOUT ROWID;
CREATE INDEX tags_by_tag ON tags (tag);

-- An event with a severity is an alert, open until it is resolved.
ALTER TABLE events ADD COLUMN severity TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN value    REAL;
ALTER TABLE events ADD COLUMN resolved REAL NOT NULL DEFAULT 0;      -- when; 0: open
ALTER TABLE events ADD COLUMN resolved_step INTEGER NOT NULL DEFAULT 0;
CREATE INDEX open_alerts ON events (run) WHERE severity <> '' AND resolved = 0 AND superseded = 0;

-- Sums over 16^level steps of a metric; min and max are of the finite values.
CREATE TABLE pyramids (
  run        INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
  metric     INTEGER NOT NULL REFERENCES metric_names (id),
  level      INTEGER NOT NULL,               -- from 1
  bucket     INTEGER NOT NULL,               -- step / 16^level
  count      INTEGER NOT NULL,
  non_finite INTEGER NOT NULL,
  gap_step   INTEGER NOT NULL,               -- the first step that is not finite; 0: none
  first_step INTEGER NOT NULL,
  first      REAL,
  last_step  INTEGER NOT NULL,
  last       REAL,
  min_step   INTEGER NOT NULL,
  min        REAL,
  max_step   INTEGER NOT NULL,
  max        REAL,
  PRIMARY KEY (run, metric, level, bucket)
) WITHOUT ROWID;

-- What waits for its turn. An entry whose process is gone waits for a person.
CREATE TABLE queue (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  place         REAL NOT NULL,               -- ascending
  run           TEXT NOT NULL,               -- hash of the config
  name          TEXT NOT NULL,
  config_json   TEXT NOT NULL,
  options_json  TEXT NOT NULL DEFAULT '{}',
  added         REAL NOT NULL,
  pid           INTEGER NOT NULL DEFAULT 0,  -- of the process that will start it; 0: none
  process_start INTEGER NOT NULL DEFAULT 0,
  boot_id       TEXT NOT NULL DEFAULT '',
  host          TEXT NOT NULL DEFAULT '',
  namespace     TEXT NOT NULL DEFAULT ''
);

CREATE TABLE counters (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counters VALUES ('changes', 0), ('removals', 0);

CREATE TRIGGER run_added AFTER INSERT ON runs BEGIN
  UPDATE counters SET value = value + 1 WHERE name = 'changes';
  UPDATE runs SET changed = (SELECT value FROM counters WHERE name = 'changes') WHERE number = NEW.number;
END;
CREATE TRIGGER run_changed AFTER UPDATE ON runs WHEN NEW.changed = OLD.changed BEGIN
  UPDATE counters SET value = value + 1 WHERE name = 'changes';
  UPDATE runs SET changed = (SELECT value FROM counters WHERE name = 'changes') WHERE number = NEW.number;
END;
CREATE TRIGGER run_removed AFTER DELETE ON runs BEGIN
  UPDATE counters SET value = value + 1 WHERE name = 'removals';
END;
CREATE TRIGGER session_changed AFTER UPDATE ON sessions BEGIN
  UPDATE runs SET session = session WHERE number = NEW.run;
END;
CREATE TRIGGER fact_added AFTER INSERT ON facts BEGIN
  UPDATE runs SET session = session WHERE number = NEW.run;
END;
CREATE TRIGGER tag_added AFTER INSERT ON tags BEGIN
  UPDATE runs SET session = session WHERE number = NEW.run;
END;
CREATE TRIGGER tag_removed AFTER DELETE ON tags BEGIN
  UPDATE runs SET session = session WHERE number = OLD.run;
END;
CREATE TRIGGER event_added AFTER INSERT ON events BEGIN
  UPDATE runs SET session = session WHERE number = NEW.run;
END;
CREATE TRIGGER event_changed AFTER UPDATE ON events BEGIN
  UPDATE runs SET session = session WHERE number = NEW.run;
END;

UPDATE runs SET
  commit_id = coalesce((SELECT replace(s.commit_id, '+dirty', '') FROM sessions s
                        WHERE s.run = number AND s.session = runs.session), ''),
  dirty = coalesce((SELECT s.commit_id LIKE '%+dirty' FROM sessions s
                    WHERE s.run = number AND s.session = runs.session), 0),
  tokenizer = CASE WHEN json_valid(config_json) THEN coalesce(json_extract(config_json, '$.data.tokenizer'), '')
              ELSE '' END;
)sql";

// Version 3. A running run is asked what its operations take.
inline constexpr const char* schema_3 = R"sql(
ALTER TABLE runs ADD COLUMN trace_requested INTEGER NOT NULL DEFAULT 0;
)sql";

// Figures of a run from its rows; a WHERE may follow.
inline constexpr const char* update_figures = R"sql(
UPDATE runs SET (last_step, last_tokens, last_seconds) =
    (SELECT coalesce(max(step), 0), coalesce(tokens, 0), coalesce(seconds, 0) FROM steps WHERE run = number),
  (loss_step, loss) = (SELECT coalesce(max(step), 0), value FROM metrics WHERE run = number AND metric =
    (SELECT id FROM metric_names WHERE name = 'loss')),
  first_loss = (SELECT value FROM metrics WHERE run = number AND metric =
    (SELECT id FROM metric_names WHERE name = 'loss') ORDER BY step LIMIT 1),
  (val_step, val_loss) = (SELECT coalesce(max(step), 0), value FROM metrics WHERE run = number AND metric =
    (SELECT id FROM metric_names WHERE name = 'val_loss'))
)sql";

inline constexpr std::array migrations = {schema_1, schema_2, schema_3};
inline constexpr int schema_version = static_cast<int>(migrations.size());

}  // namespace stacklab::store
