// Whether the process that said it trains a run still does. Readers compute this; nobody has to write it down first.
#pragma once

#include <string>

#include "engine/base/environment.h"
#include "engine/run/run.h"

namespace stacklab::store {

// The process that trains a run, and where. Process numbers mean something within one boot and one PID namespace only.
struct Owner {
  ProcessIdentity process;
  std::string host;               // digest of this installation's id and name
  std::string process_namespace;  // in which its number holds
  bool operator==(const Owner&) const = default;
};
Owner this_owner();

struct Pulse {
  double last_beat = 0;  // unix time
  double next_by = 0;    // the beat promised
};

struct Liveness {
  bool alive = true;
  bool stalled = false;  // alive as far as is known, but the promised beat is late
  std::string cause;     // when not alive
};
Liveness judge(const Owner& owner, const Pulse& pulse, double now);

// "2026-03-01 12:00:03 UTC"
std::string format_time(double unix_time);

}  // namespace stacklab::store
