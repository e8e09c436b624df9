// The clock that durations are measured by, and the one that people read.
#pragma once

#include <chrono>

namespace stacklab {

// Seconds since some moment; never goes back.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Since 1970; may go back, when somebody sets it.
inline double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace stacklab
