// The rows of one source. Row r is a pure function of (seed, r): any row is had without those before it.
//
// fragment: in each epoch every document comes once, in an order of that epoch; epochs follow each other without a gap,
// and a row is the next seq_len tokens of the stream. A document that does not fit its row is cut into fragments: the
// next row goes on with the next token, which is also the target of the fragment's last token, so that no token and no
// (input, target) pair is ever lost. A document shorter than LoaderShape::min_slot is padded to it, which bounds the
// number of documents in a row. Padding comes after the document's own tokens, has ignored targets and counts as part
// of the document before it: causal attention never sees it.
//
// truncate, drop: no document is cut at a row's end. What is longer than a row loses its tail, or is left out; the rest
// is put where it fits best among the rows that are open, once for all epochs, and each epoch has its own order of
// rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/data/batch.h"
#include "engine/data/dataset.h"

namespace stacklab {

enum class Packing { fragment, truncate, drop };
std::optional<Packing> packing_from_string(std::string_view word);

// What packing does to the documents in one epoch.
struct PackingReport {
  std::int64_t documents = 0;      // that are read
  std::int64_t tokens_in = 0;      // of all documents
  std::int64_t tokens_packed = 0;  // of those, inputs of the epoch
  std::int64_t tokens_lost = 0;    // tokens_in - tokens_packed
  std::int64_t targets = 0;        // tokens that are predicted
  std::int64_t padding = 0;        // that fills slots and rows

  PackingReport& operator+=(const PackingReport& other);
};

class RowStream {
 public:
  // documents must outlive it. stream: apart from other sources with the same seed. Not shuffled: documents in order.
  // Memory: 12 bytes for every document, twice; two more of 8 for truncate and drop.
  RowStream(const TokenDocuments& documents, std::int64_t seq_len, Packing packing, std::uint64_t seed,
            std::uint32_t stream, bool shuffled);
  RowStream(RowStream&&) noexcept;
  RowStream& operator=(RowStream&&) noexcept;
  ~RowStream();

  // Puts row r at token t of the batch, and where its documents begin at cu_seqlens[entries] and after. From any
  // thread. In the only pass of what is not repeated, what lies behind its end is padding.
  void fill(std::int64_t row, bool repeats, std::int64_t t, MicroBatch& batch, std::size_t& entries) const;
  const PackingReport& report() const { return report_; }
  std::int64_t tokens_per_epoch() const { return report_.tokens_packed + report_.padding; }
  std::int64_t rows_per_epoch_rounded_up() const { return (tokens_per_epoch() + seq_len_ - 1) / seq_len_; }

 private:
  struct Epoch;       // an order of the documents, or rows, and where each begins
  struct EpochCache;  // the epochs used last

  void pack();
  std::shared_ptr<const Epoch> epoch(std::int64_t e) const;
  std::vector<std::uint32_t> shuffled_order(std::size_t count, std::uint32_t e) const;
  void fill_fragments(std::int64_t row, bool repeats, std::int64_t t, MicroBatch& batch, std::size_t& entries) const;
  void fill_whole(std::int64_t row, std::int64_t t, MicroBatch& batch, std::size_t& entries) const;
  std::int64_t kept(std::int64_t tokens) const;  // of a document of so many
  std::int64_t slot(std::int64_t tokens) const;  // that they take in a row

  const TokenDocuments* documents_;
  std::int64_t seq_len_;
  Packing packing_;
  std::uint64_t seed_;
  std::uint32_t stream_;
  bool shuffled_;
  PackingReport report_;
  std::vector<std::uint32_t> members_;    // documents of the packed rows, row by row
  std::vector<std::uint32_t> row_begin_;  // [packed rows + 1] among members_
  std::unique_ptr<EpochCache> cache_;
};

}  // namespace stacklab
