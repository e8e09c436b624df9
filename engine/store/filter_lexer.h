// The words and signs of a filter.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/store/run_filter.h"

namespace stacklab::store {

struct FilterToken {
  enum class Kind { word, quoted, sign, open, close, end };
  Kind kind = Kind::end;
  std::string text;  // of quoted ones: what is within
  std::size_t at = 0, length = 0;
  bool unfinished = false;  // a quote is missing at its end
};

// Ends with one of kind end. Quotes that do not end are marked, not refused: people are still typing.
std::vector<FilterToken> filter_tokens(std::string_view text);

std::optional<RunFilter::Op> filter_op(std::string_view sign);

}  // namespace stacklab::store
