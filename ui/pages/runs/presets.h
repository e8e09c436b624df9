// Configs to begin from: those of experiments/, which the program carries with it.
#pragma once

#include <QString>
#include <vector>

#include "engine/config/run_config.h"

namespace stacklab::ui {

struct Preset {
  QString id;     // name of its file
  QString title;  // with its size
  RunConfig config;
};

const std::vector<Preset>& presets();  // the smallest model first

}  // namespace stacklab::ui
