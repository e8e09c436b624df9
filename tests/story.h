// A text to learn from, the same each time.
#pragma once

#include <cstdint>
#include <string>

namespace stacklab {

// after(i): what stands behind sentence i.
template <class After>
std::string story(int sentences, After&& after) {
  std::string text;
  std::uint64_t state = 1;
  for (int i = 0; i < sentences; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text += "The fox number " + std::to_string(state >> 54) + " went over the hill and saw a river.";
    text += after(i);
  }
  return text;
}

}  // namespace stacklab
