// data.mixture: names with weights, "kjv:3,tinyworld:1".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace stacklab {

struct MixturePart {
  std::string name;
  double weight = 1;  // relative to the others', of tokens

  bool operator==(const MixturePart&) const = default;
};

// A name without a weight weighs 1. Errors: a part without a name, a weight that is not above 0, a name twice.
Result<std::vector<MixturePart>> parse_mixture(std::string_view text);

}  // namespace stacklab
