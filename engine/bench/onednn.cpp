#include "engine/bench/onednn.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>

#include "engine/base/paths.h"

namespace stacklab {

Result<std::unique_ptr<OneDnn>> OneDnn::open(int threads, bool only_avx2) {
  const std::filesystem::path file = executable_path().parent_path() / "stacklab_onednn.so";
  std::error_code ec;
  if (!std::filesystem::exists(file, ec))
    return failed("oneDNN is not part of this build", "install libdnnl-dev and build again");
  // OpenMP reads this once, when it is loaded: its threads would otherwise go on spinning and slow ours.
  ::setenv("OMP_WAIT_POLICY", "passive", 0);
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: OpenMP's threads live on
  if (library == nullptr) return failed(fmt::format("oneDNN cannot be loaded: {}", ::dlerror()), "install libdnnl2");
  const auto find = [&]<class F>(F*& function, const char* name) {
    function = reinterpret_cast<F*>(::dlsym(library, name));
    return function != nullptr;
  };
  auto onednn = std::make_unique<OneDnn>();
  decltype(&stacklab_onednn_version) version = nullptr;
  decltype(&stacklab_onednn_begin) begin = nullptr;
  if (!find(version, "stacklab_onednn_version") || !find(begin, "stacklab_onednn_begin") ||
      !find(onednn->sgemm, "stacklab_onednn_sgemm"))
    return failed(fmt::format("{} is of another build", file.string()), "build again");
  onednn->version_ = version();
  begin(threads, only_avx2 ? 1 : 0);
  return onednn;
}

}  // namespace stacklab
