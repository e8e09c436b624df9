// Ctrl-C and polite requests to end.
#pragma once

namespace stacklab::cli {

// First thing in main: a closed standard stream cannot be taken over by another file, a reader that went away or a file
// size limit ends no run.
void prepare_process();

// From here on the first SIGINT, SIGTERM or SIGHUP is only noted; the second one ends the program at once. While it
// lives.
class StopSignals {
 public:
  // lost: one line, with its end, that the second one prints.
  explicit StopSignals(const char* lost = nullptr);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool requested();
};

}  // namespace stacklab::cli
