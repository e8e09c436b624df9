// Streams of TinyWorld: item number `index` of a stream is a pure function of (world, stream, index), so any number of
// items can be had, by several threads, without storing them, and any of them again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/tinyworld.h"

namespace stacklab {

class TinyWorldStream {
 public:
  virtual ~TinyWorldStream() = default;
  virtual WorldDocument item(std::uint64_t index) const = 0;
};

// documents   about entities of the training part
// validation  the same about those held out for validation, never seen in training
// test        likewise
// library     the search corpus: its first search_corpus_items state every fact about library entities
// drills      copying, counting, sorting, arithmetic, comparing, spelling; no entities
// The world must outlive the stream. An unknown name suggests the nearest.
Result<std::unique_ptr<TinyWorldStream>> tinyworld_stream(const TinyWorld& world, std::string_view name);
std::span<const std::string_view> tinyworld_stream_names();
std::uint64_t search_corpus_items(const TinyWorld& world);

// A stream and how often its turn comes, beside the other weights.
struct StreamWeight {
  std::string stream;
  std::int64_t weight = 1;
  bool operator==(const StreamWeight&) const = default;
};
// "documents:9,drills:1"; without a number the weight is 1.
Result<std::vector<StreamWeight>> parse_streams(std::string_view text);
std::string to_string(std::span<const StreamWeight> streams);

// Item k of a mixture, for k from 0: the streams take turns as evenly as their weights allow, each from its own item 0
// on.
class TinyWorldMixture {
 public:
  static Result<TinyWorldMixture> create(const TinyWorld& world, std::span<const StreamWeight> streams);

  // The next n items, made by `threads` threads; the same whatever their number.
  std::vector<WorldDocument> next(std::size_t n, int threads);

 private:
  struct Source {
    std::unique_ptr<TinyWorldStream> stream;
    std::int64_t weight = 1;
    std::uint64_t taken = 0;
  };
  std::vector<Source> sources_;
  std::int64_t total_weight_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace stacklab
