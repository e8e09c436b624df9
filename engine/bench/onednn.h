// oneDNN's products, for comparison: from a library beside the program that is opened only when they are asked for.
#pragma once

#include <memory>
#include <string>

#include "engine/base/result.h"
#include "engine/bench/onednn_module.h"

namespace stacklab {

class OneDnn {
 public:
  // Errors say why there is none: this build was made without it, or its libraries are gone. Threads and instruction
  // set are those of the first call in a process.
  static Result<std::unique_ptr<OneDnn>> open(int threads, bool only_avx2);

  const std::string& version() const { return version_; }
  decltype(&stacklab_onednn_sgemm) sgemm = nullptr;

 private:
  std::string version_;
};

}  // namespace stacklab
