#include "engine/base/paths.h"

namespace stacklab {
namespace fs = std::filesystem;

fs::path executable_path() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

fs::path share_folder() { return executable_path().parent_path().parent_path() / "share" / "stacklab"; }

}  // namespace stacklab
