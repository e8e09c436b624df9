// The language in which runs are looked for: "lr > 1e-4 and tag:ablation and not state:failed". A column, a key of the
// config or a metric is compared with a value; words alone are looked for in names and notes; and, or, not, brackets.
// What has no value (a loss before the first step) is neither equal nor unequal to anything.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "engine/base/result.h"

namespace stacklab {

struct RunFilter {
  enum class Kind { all, any, no, number, text, state, tag, is, word };
  enum class Op { equal, unequal, less, at_most, greater, at_least, contains };
  Kind kind = Kind::all;         // of no parts: every run
  std::vector<RunFilter> parts;  // of all and any; of no: one
  std::string key;               // of a comparison, in full: "loss", "optim.adam_lr", "metric.grad_norm"
  Op op = Op::equal;
  double number = 0;  // of a number: NaN for those measured and not a number
  std::string text;   // of all other comparisons, and the word

  static RunFilter compare(std::string key, Op op, double number) {
    return {.kind = Kind::number, .parts = {}, .key = std::move(key), .op = op, .number = number, .text = {}};
  }

  bool matches_all() const { return kind == Kind::all && parts.empty(); }
};

// What is wrong, and where: bytes at .. at + length of the text.
struct FilterError {
  std::string what, remedy;
  std::size_t at = 0, length = 0;
};

// Empty text: every run.
tl::expected<RunFilter, FilterError> parse_run_filter(std::string_view text);
// The error as a command line shows it, with the place.
Error to_error(const FilterError& error, std::string_view text);

// Whether it asks for runs that are archived or deleted, which are left out otherwise.
bool asks_for(const RunFilter& filter, std::string_view is);

// Everything that can be compared.
struct FilterKey {
  enum class Type { number, boolean, time, text, state, tag, is };
  std::string key;
  Type type = Type::number;
  std::string help;
  std::vector<std::string> choices = {};  // of texts, where there are no others
  bool may_be_nan = false;
};
const std::vector<FilterKey>& filter_keys();
// Short forms count: "lr", "n_layers", "grad_norm". Null: there is none.
const FilterKey* find_filter_key(std::string_view name);

// What a workspace has to offer for values.
struct FilterWords {
  std::vector<std::string> tags, metrics, names;
};

struct FilterCompletion {
  std::string text;  // to be put in place of from .. to
  std::string help;
};
struct FilterCompletions {
  std::size_t from = 0, to = 0;  // bytes
  std::vector<FilterCompletion> choices;
};
// What may stand where the cursor (in bytes) is: keys, signs, values.
FilterCompletions complete_run_filter(std::string_view text, std::size_t cursor, const FilterWords& words);

}  // namespace stacklab
