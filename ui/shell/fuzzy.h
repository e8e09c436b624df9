// How well a few typed letters fit a title: all of them must occur in order; runs of letters and beginnings of words
// count for more.
#pragma once

#include <QString>
#include <optional>
#include <vector>

namespace stacklab::ui {

struct FuzzyMatch {
  int score = 0;
  std::vector<int> at;  // of the letters in the title
};

// Empty: it does not fit. Case and spaces between the typed letters do not matter.
std::optional<FuzzyMatch> fuzzy_match(const QString& typed, const QString& title);

}  // namespace stacklab::ui
