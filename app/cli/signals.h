// Ctrl-C and polite requests to end.
#pragma once

namespace stacklab::cli {

// First thing in main: a closed standard stream cannot be taken over by another file, a reader that went away or a file
// size limit ends no run.
void prepare_process();

// For who does more than print: where standard output is closed, what is printed from here on is no failure.
void allow_closed_output();

// From here on the first SIGINT, SIGTERM or SIGHUP is only noted; one that comes a second later or more ends the
// program at once: with exit code 130, or 1 where that loses something. While it lives.
class StopSignals {
 public:
  // lost: one line, with its end, that the later one prints: what is lost.
  explicit StopSignals(const char* lost = nullptr);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool requested();
  static void answer_in_json(bool json);  // an end at once prints a document, too
};

}  // namespace stacklab::cli
