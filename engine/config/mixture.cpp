#include "engine/config/mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/text.h"

namespace stacklab {

Result<std::vector<MixturePart>> parse_mixture(std::string_view text) {
  const auto wrong = [&](const std::string& why) {
    return usage_error(fmt::format("data.mixture: {}", why), "write names with weights, for example kjv:3,tinyworld:1");
  };
  std::vector<MixturePart> parts;
  for (const std::string& word : split(text, ',')) {
    const std::size_t colon = word.rfind(':');
    MixturePart part{std::string(trim(std::string_view(word).substr(0, colon))), 1};
    if (part.name.empty()) return wrong(fmt::format("\"{}\" has a part without a name", printable(text)));
    if (colon != std::string::npos) {
      const std::optional<double> weight = parse_double(trim(std::string_view(word).substr(colon + 1)));
      if (!weight || !std::isfinite(*weight) || *weight <= 0)
        return wrong(fmt::format("\"{}\" does not give a weight above 0", printable(word)));
      part.weight = *weight;
    }
    const auto same = [&](const MixturePart& other) { return other.name == part.name; };
    if (std::any_of(parts.begin(), parts.end(), same))
      return wrong(fmt::format("{} is there twice", printable(part.name)));
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace stacklab
