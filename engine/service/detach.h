// Runs that outlive the program that starts them: `stacklab train` as a process of its own, with a session of its own,
// which neither a closing terminal nor a closing window ends.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/config/run_config.h"
#include "engine/run/run.h"

namespace stacklab {

struct DetachedRun {
  int process = 0;
  RunId run;
  std::string name;
  std::filesystem::path log;  // what it says: <run>/output.log
  RunState state = RunState::running;
};

// Set for the process; a job that it submits says so in the store.
inline constexpr const char* detached_variable = "STACKLAB_DETACHED";
bool is_detached_process();

// Starts the program with these words ("train", "config.json", ...) in this process's folder, and waits until it has
// claimed the config's run, or ended: then its last line is the error. While it waits, give_up is asked; the process
// goes on all the same.
Result<DetachedRun> start_detached(const std::filesystem::path& workspace, const RunConfig& config,
                                   const std::vector<std::string>& words, const std::function<bool()>& give_up);

}  // namespace stacklab
