// A model in several safetensors files: model.safetensors.index.json says which tensor is in which.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/safetensors.h"

namespace stacklab {

class SafetensorsShards {
 public:
  // Files are looked for beside the index and nowhere else; tensors that it does not name are passed over. Errors name
  // the file and the cause: no JSON, no weight_map, a file that is missing, damaged or elsewhere, a tensor that is not
  // where it should be.
  static Result<SafetensorsShards> open(const std::filesystem::path& index);

  const SafetensorsEntry* find(std::string_view name) const;  // nullptr: not there
  std::vector<std::string> names() const;                     // sorted

 private:
  std::vector<Safetensors> files_;  // keep what the entries point into
  std::map<std::string, const SafetensorsEntry*, std::less<>> entries_;
};

}  // namespace stacklab
