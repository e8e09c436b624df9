// Where the program finds what was installed with it.
#pragma once

#include <filesystem>

namespace stacklab {

std::filesystem::path executable_path();
// <folder of the program>/../share/stacklab, which holds resources/ and experiments/. In a build folder these are links
// to the sources.
std::filesystem::path share_folder();

}  // namespace stacklab
