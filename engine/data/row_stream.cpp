#include "engine/data/row_stream.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

#include "engine/base/philox.h"

namespace stacklab {
namespace {

// Keeps these numbers apart from those of weights with the same seed.
constexpr std::uint32_t shuffle_stream = 0x73687566;
// The order in which documents are packed into rows comes from an epoch that no run reaches.
constexpr std::uint32_t packing_epoch = 0xffffffff;
constexpr std::size_t open_rows = 512;

// Tokens p .. p + n - 1 of a document of `length`, at token t of the batch; behind the length comes padding.
void put_tokens(const TokenDocument& document, std::int64_t length, std::int64_t p, std::int64_t t, std::int64_t n,
                std::int64_t fragment, MicroBatch& batch) {
  const auto at = [&](std::int64_t i) { return static_cast<std::size_t>(i); };
  const std::int64_t whole = std::min(n, length - p), next = std::min(n, length - p - 1);
  if (whole > 0) document.copy(at(p), at(whole), batch.ids.data() + t);
  if (next > 0) document.copy(at(p + 1), at(next), batch.targets.data() + t);
  for (std::int64_t i = 0; i < n; ++i) batch.positions[at(t + i)] = static_cast<std::int32_t>(t + i - fragment);
}

}  // namespace

std::optional<Packing> packing_from_string(std::string_view word) {
  if (word == "fragment") return Packing::fragment;
  if (word == "truncate") return Packing::truncate;
  if (word == "drop") return Packing::drop;
  return {};
}

PackingReport& PackingReport::operator+=(const PackingReport& other) {
  documents += other.documents;
  tokens_in += other.tokens_in;
  tokens_packed += other.tokens_packed;
  tokens_lost += other.tokens_lost;
  targets += other.targets;
  padding += other.padding;
  return *this;
}

struct RowStream::Epoch {
  std::int64_t number = 0;
  std::vector<std::uint32_t> order;
  std::vector<std::int64_t> start;  // [documents + 1] of each document's slot in the epoch; fragment only
};

struct RowStream::EpochCache {
  std::mutex mutex;
  std::array<std::shared_ptr<const Epoch>, 2>
      recent;  // a step may touch the end of one epoch and the start of the next
};

RowStream::RowStream(const TokenDocuments& documents, std::int64_t seq_len, Packing packing, std::uint64_t seed,
                     std::uint32_t stream, bool shuffled)
    : documents_(&documents),
      seq_len_(seq_len),
      packing_(packing),
      seed_(seed),
      stream_(stream),
      shuffled_(shuffled),
      cache_(std::make_unique<EpochCache>()) {
  for (std::size_t d = 0; d < documents.size(); ++d) {
    const std::int64_t tokens = documents.document_tokens(d), used = kept(tokens);
    report_.tokens_in += tokens;
    if (used == 0) continue;
    ++report_.documents;
    report_.tokens_packed += used;
    report_.targets += used - 1;
    report_.padding += slot(used) - used;
  }
  report_.tokens_lost = report_.tokens_in - report_.tokens_packed;
  if (packing_ != Packing::fragment) pack();
}
RowStream::RowStream(RowStream&&) noexcept = default;
RowStream& RowStream::operator=(RowStream&&) noexcept = default;
RowStream::~RowStream() = default;

std::int64_t RowStream::kept(std::int64_t tokens) const {
  if (packing_ == Packing::fragment || tokens <= seq_len_) return tokens;
  return packing_ == Packing::truncate ? seq_len_ : 0;
}

std::int64_t RowStream::slot(std::int64_t tokens) const {
  const std::int64_t least = std::max(tokens, LoaderShape::min_slot);
  return packing_ == Packing::fragment ? least : std::min(least, seq_len_);
}

// Fisher-Yates; each draw is a function of (seed, epoch, place), so any epoch can be had without those before it.
std::vector<std::uint32_t> RowStream::shuffled_order(std::size_t count, std::uint32_t e) const {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  if (!shuffled_ || count < 2) return order;
  const Philox random(seed_, shuffle_stream + stream_, e);
  for (std::size_t i = count - 1; i > 0; --i) std::swap(order[i], order[random.below(i, i + 1)]);
  return order;
}

// Best fit among a bounded number of open rows: a document goes where it leaves the least room.
void RowStream::pack() {
  std::set<std::pair<std::int64_t, std::uint32_t>> open;        // room left, row
  std::vector<std::pair<std::uint32_t, std::uint32_t>> placed;  // row, document
  std::uint32_t rows = 0;
  for (const std::uint32_t d : shuffled_order(documents_->size(), packing_epoch)) {
    const std::int64_t used = kept(documents_->document_tokens(d));
    if (used == 0) continue;
    const std::int64_t needed = slot(used);
    auto best = open.lower_bound({needed, 0});
    if (best == open.end()) {
      if (open.size() == open_rows) open.erase(open.begin());
      best = open.emplace(seq_len_, rows++).first;
    }
    auto [room, row] = *best;
    open.erase(best);
    placed.emplace_back(row, d);
    if (room -= needed; room > 0) open.emplace(room, row);
  }
  std::ranges::stable_sort(placed, {}, &std::pair<std::uint32_t, std::uint32_t>::first);
  row_begin_.assign(rows + 1, 0);
  for (const auto& [row, d] : placed) {
    members_.push_back(d);
    ++row_begin_[row + 1];
  }
  std::partial_sum(row_begin_.begin(), row_begin_.end(), row_begin_.begin());
  report_.padding = rows * seq_len_ - report_.tokens_packed;
}

std::shared_ptr<const RowStream::Epoch> RowStream::epoch(std::int64_t e) const {
  const std::size_t place = static_cast<std::size_t>(e % 2);
  {
    const std::lock_guard lock(cache_->mutex);
    const auto& known = cache_->recent[place];
    if (known && known->number == e) return known;
  }
  auto made = std::make_shared<Epoch>();
  made->number = e;
  if (packing_ == Packing::fragment) {
    made->order = shuffled_order(documents_->size(), static_cast<std::uint32_t>(e));
    made->start.reserve(made->order.size() + 1);
    made->start.push_back(0);
    for (const std::uint32_t d : made->order)
      made->start.push_back(made->start.back() + slot(documents_->document_tokens(d)));
  } else {
    made->order = shuffled_order(row_begin_.size() - 1, static_cast<std::uint32_t>(e));
  }
  const std::lock_guard lock(cache_->mutex);
  cache_->recent[place] = made;
  return made;
}

void RowStream::fill(std::int64_t row, bool repeats, std::int64_t t, MicroBatch& batch, std::size_t& entries) const {
  if (packing_ == Packing::fragment)
    fill_fragments(row, repeats, t, batch, entries);
  else
    fill_whole(row, t, batch, entries);
}

void RowStream::fill_fragments(std::int64_t row, bool repeats, std::int64_t t, MicroBatch& batch,
                               std::size_t& entries) const {
  const std::int64_t per_epoch = tokens_per_epoch(), row_begin = t, row_end = t + seq_len_;
  std::int64_t fragment = t;
  while (t < row_end) {
    const std::int64_t at = row * seq_len_ + (t - row_begin);
    if (!repeats && at >= per_epoch) break;
    const std::int64_t in_epoch = at % per_epoch;
    const std::shared_ptr<const Epoch> now = epoch(at / per_epoch);
    std::size_t k = static_cast<std::size_t>(std::upper_bound(now->start.begin(), now->start.end(), in_epoch) -
                                             now->start.begin() - 1);
    std::int64_t p = in_epoch - now->start[k];
    for (; k < now->order.size() && t < row_end; ++k, p = 0) {
      const TokenDocument document = documents_->document(now->order[k]);
      const std::int64_t n = std::min(row_end - t, now->start[k + 1] - now->start[k] - p);
      fragment = t;
      batch.cu_seqlens[entries++] = static_cast<std::int32_t>(t);
      put_tokens(document, static_cast<std::int64_t>(document.size()), p, t, n, fragment, batch);
      t += n;
    }
  }
  // Past the end of the only pass: padding, as part of the last fragment if the row has one.
  if (t == row_begin) batch.cu_seqlens[entries++] = static_cast<std::int32_t>(t);
  for (; t < row_end; ++t) batch.positions[static_cast<std::size_t>(t)] = static_cast<std::int32_t>(t - fragment);
}

void RowStream::fill_whole(std::int64_t row, std::int64_t t, MicroBatch& batch, std::size_t& entries) const {
  const std::int64_t rows = static_cast<std::int64_t>(row_begin_.size()) - 1, row_end = t + seq_len_;
  const std::uint32_t packed = epoch(row / rows)->order[static_cast<std::size_t>(row % rows)];
  for (std::uint32_t m = row_begin_[packed]; m < row_begin_[packed + 1]; ++m) {
    const TokenDocument document = documents_->document(members_[m]);
    const std::int64_t used = kept(static_cast<std::int64_t>(document.size()));
    const bool last = m + 1 == row_begin_[packed + 1];
    const std::int64_t n = last ? row_end - t : slot(used);
    batch.cu_seqlens[entries++] = static_cast<std::int32_t>(t);
    put_tokens(document, used, 0, t, n, t, batch);
    t += n;
  }
}

}  // namespace stacklab
