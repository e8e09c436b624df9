// What to say of a path that leads to nothing.
#pragma once

#include <filesystem>

#include "engine/base/result.h"

namespace stacklab {

// "there is no file ./shards.txy", with the nearest name beside it as the remedy; a link that leads to nothing is named
// as one, with where it leads.
Error missing_file(const std::filesystem::path& path);

}  // namespace stacklab
