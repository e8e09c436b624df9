// A launch as words for a shell: what the dialog would start, started in a terminal or on another computer.
#pragma once

#include <QString>
#include <string>

#include "engine/config/run_config.h"
#include "engine/run/run.h"

namespace stacklab::ui {

// Writes the config to <name>.json and trains it. workspace as it should stand there; empty: the usual one.
QString train_command(const RunConfig& config, const std::string& workspace, bool detached);

// Forks the parent at that step, with what differs between the two configs, and trains the fork.
QString fork_command(const RunId& parent, std::int64_t step, const RunConfig& of_parent, const RunConfig& config,
                     const std::string& workspace);

}  // namespace stacklab::ui
