// "1 document", "2,000 documents": a number and what it counts, for messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/text.h"

namespace stacklab {

// noun: of one; its plural has an s, unless said otherwise.
inline std::string counted(std::int64_t n, std::string_view noun, std::string_view plural = {}) {
  std::string text = format_integer(n) + " ";
  if (n == 1) return text.append(noun);
  return plural.empty() ? text.append(noun).append("s") : text.append(plural);
}

}  // namespace stacklab
