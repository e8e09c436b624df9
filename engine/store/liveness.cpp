#include "engine/store/liveness.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>

#include "engine/base/sha256.h"

namespace stacklab::store {
namespace {

// The writer commits up to a second after the beat; a reader must not call that late.
constexpr double commit_grace = 2.0;
// Elsewhere the process cannot be asked. After this long without the promised beat it counts as gone.
constexpr double least_absence = 300.0;
constexpr double absence_in_intervals = 10.0;

std::string host_digest() {
  std::string machine;
  std::ifstream("/etc/machine-id") >> machine;
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return sha256_hex("stacklab|" + machine + "|" + name.data()).substr(0, 16);
}

std::string read_process_namespace() {
  std::array<char, 128> link{};
  const ssize_t n = readlink("/proc/self/ns/pid", link.data(), link.size() - 1);
  return n > 0 ? std::string(link.data(), static_cast<std::size_t>(n)) : std::string();
}

}  // namespace

Owner this_owner() { return {current_process(), host_digest(), read_process_namespace()}; }

Liveness judge(const Owner& owner, const Pulse& pulse, double now) {
  Liveness verdict;
  const double late = now - pulse.next_by;
  verdict.stalled = late > commit_grace;
  const std::string last =
      pulse.last_beat > 0 ? "; last beat " + format_time(pulse.last_beat) : std::string("; it never sent a beat");
  static const Owner here = this_owner();
  if (owner.process.boot_id == here.process.boot_id && owner.process_namespace == here.process_namespace) {
    if (!process_alive(owner.process)) {
      verdict.alive = false;
      verdict.cause = fmt::format("process {} ended without a completion record{}", owner.process.pid, last);
    }
  } else if (owner.host == here.host && owner.process.boot_id != here.process.boot_id) {
    verdict.alive = false;
    verdict.cause = fmt::format("the computer restarted while process {} trained{}", owner.process.pid, last);
  } else if (late > std::max(least_absence, absence_in_intervals * (pulse.next_by - pulse.last_beat))) {
    verdict.alive = false;
    verdict.cause = fmt::format("process {} on another computer has been silent too long{}", owner.process.pid, last);
  }
  if (!verdict.alive) verdict.stalled = false;
  return verdict;
}

std::string format_time(double unix_time) {
  // Up to the end of the year 9999: a store may come from anywhere.
  const auto t = static_cast<std::time_t>(unix_time > 0 ? std::min(unix_time, 253402300799.0) : 0.0);
  std::tm utc{};
  gmtime_r(&t, &utc);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace stacklab::store
