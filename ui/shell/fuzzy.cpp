#include "ui/shell/fuzzy.h"

#include <algorithm>
#include <limits>

namespace stacklab::ui {
namespace {

constexpr int per_letter = 4, in_a_row = 9, word_start = 9, title_start = 2, per_gap = -1;
constexpr int most_typed = 40, most_title = 300;  // enough to tell names apart, and never slow
constexpr int none = std::numeric_limits<int>::min() / 2;

bool starts_word(const QString& title, int i) {
  if (i == 0) return true;
  const QChar before = title[i - 1], here = title[i];
  return !before.isLetterOrNumber() || (here.isUpper() && before.isLower()) || (here.isDigit() && !before.isDigit());
}

}  // namespace

std::optional<FuzzyMatch> fuzzy_match(const QString& typed, const QString& title) {
  QString want;
  for (const QChar c : typed)
    if (!c.isSpace() && want.size() < most_typed) want += c.toCaseFolded();  // letter by letter, as the title
  if (want.isEmpty()) return FuzzyMatch{};
  const int n = static_cast<int>(want.size());
  const int m = static_cast<int>(std::min<qsizetype>(title.size(), most_title));
  // A quick no for most titles.
  int found = 0;
  for (int j = 0; j < m && found < n; ++j)
    if (title[j].toCaseFolded() == want[found]) ++found;
  if (found < n) return std::nullopt;

  // best[i][j]: of the first i + 1 letters, the last of them at j.
  std::vector<int> best(static_cast<std::size_t>(n) * m, none), from(best.size(), -1);
  const auto cell = [m](int i, int j) { return static_cast<std::size_t>(i) * m + j; };
  for (int i = 0; i < n; ++i) {
    int carried = none, carried_from = -1;  // the best end of the letter before, with what the gap costs so far
    for (int j = i; j < m; ++j) {
      if (i > 0 && j > 0) {
        carried += per_gap;
        const int before = best[cell(i - 1, j - 1)];
        if (before > none && before > carried) {
          carried = before;
          carried_from = j - 1;
        }
      }
      if (title[j].toCaseFolded() != want[i]) continue;
      int value = per_letter + (starts_word(title, j) ? word_start : 0) + (j == 0 ? title_start : 0);
      if (i > 0) {
        int prior = carried;
        int prior_from = carried_from;
        if (j > 0 && best[cell(i - 1, j - 1)] > none && best[cell(i - 1, j - 1)] + in_a_row >= prior) {
          prior = best[cell(i - 1, j - 1)] + in_a_row;
          prior_from = j - 1;
        }
        if (prior_from < 0) continue;
        value += prior;
        from[cell(i, j)] = prior_from;
      }
      best[cell(i, j)] = value;
    }
  }
  int end = -1;
  for (int j = 0; j < m; ++j)
    if (best[cell(n - 1, j)] > none && (end < 0 || best[cell(n - 1, j)] > best[cell(n - 1, end)])) end = j;
  if (end < 0) return std::nullopt;
  FuzzyMatch match;
  match.score = best[cell(n - 1, end)];
  match.at.resize(static_cast<std::size_t>(n));
  for (int i = n - 1, j = end; i >= 0; j = from[cell(i, j)], --i) match.at[static_cast<std::size_t>(i)] = j;
  return match;
}

}  // namespace stacklab::ui
