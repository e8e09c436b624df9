// Runs another program without a shell and collects what it says.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/result.h"

namespace stacklab {

struct ProcessOptions {
  std::vector<std::string> arguments;  // [0] is the program, searched in PATH when it has no slash
  std::filesystem::path folder;        // to run in; empty: this process's
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's
  std::size_t output_limit = 64u << 20;                          // bytes kept of each stream; more is read and dropped
  double timeout_seconds = 0;                                    // 0: none
  std::function<void()> meanwhile = {};  // called in this thread some four times a second while the program runs
};

struct ProcessResult {
  int exit_code = 0;  // 128 + signal when one ended it
  std::string output;
  std::string errors;
  bool truncated = false;  // a stream was longer than output_limit
};

// Waits for the program to end; a non-zero exit code is a result. Its standard input is empty. Errors: it cannot be
// started, timeout, stop: then its whole process group is ended, first politely.
Result<ProcessResult> run_process(const ProcessOptions& options, std::stop_token stop = {});

// Starts the program as leader of a session of its own and does not wait: neither a closing terminal nor the end of
// this process ends it. What it says goes to the end of the log. Returns its number. Limit and timeout do not count.
Result<int> start_process(const ProcessOptions& options, const std::filesystem::path& log);
// The exit code of a child that has ended; 128 + signal when one ended it.
std::optional<int> reap_process(int pid);

}  // namespace stacklab
