// Packed batches from the documents of one or several sources. Everything is a pure function of (seed, step), so a
// resumed run reads exactly on, from any step, without reading what came before.
//
// A step is rows of seq_len tokens; each row is of one source (row_schedule.h) and is that source's next row
// (row_stream.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/data/batch.h"
#include "engine/data/dataset.h"
#include "engine/data/row_schedule.h"
#include "engine/data/row_stream.h"

namespace stacklab {

struct LoaderSource {
  std::string name;
  double weight = 1;  // of the rows, relative to the others'
  const TokenDocuments* documents = nullptr;
};

struct LoaderOrder {
  std::uint64_t seed = 0;
  // Training: a new order each epoch, from the seed; a source that ends begins again. Else (validation) one pass in
  // the order given: what is left of the last step, and every step after it, is padding.
  bool shuffled = true;
  Packing packing = Packing::fragment;
};

class BatchLoader {
 public:
  // The documents must outlive the loader. Training fails when a source holds fewer than seq_len + 1 tokens, both when
  // there is no target. A pass over several sources keeps their weights and ends where the first of them does; over
  // one, it scores every target exactly once.
  static Result<BatchLoader> create(const std::vector<LoaderSource>& sources, LoaderShape shape, LoaderOrder order);
  static Result<BatchLoader> training(const Dataset& data, LoaderShape shape, std::uint64_t seed, Packing packing);
  // Long documents are cut, whatever training does with them. A source without held-out documents is left out.
  static Result<BatchLoader> validation(const Dataset& data, LoaderShape shape);

  // The batch of step s (from 0), in any order of calls, from any thread.
  StepBatch step(std::int64_t s) const;
  // The same into a batch that was filled before: nothing is allocated, unless the step is the first of its epoch.
  void fill(std::int64_t s, StepBatch& batch) const;
  const LoaderShape& shape() const { return shape_; }
  // Of all sources, and of each.
  const PackingReport& report() const { return report_; }
  struct SourceReport {
    std::string name;
    PackingReport packing;
    std::int64_t tokens = 0;  // read in so many steps, padding included
    double epochs = 0;        // how often that is all of it
  };
  std::vector<SourceReport> source_reports(std::int64_t steps) const;
  std::int64_t tokens_per_epoch() const { return report_.tokens_packed + report_.padding; }
  // Steps of a pass; of training, those after which one source has been read.
  std::int64_t steps_per_epoch_rounded_up() const { return (rows_ + shape_.step_rows() - 1) / shape_.step_rows(); }

 private:
  BatchLoader() = default;
  void fill_row(std::int64_t row, std::int64_t t, MicroBatch& batch, std::size_t& entries) const;

  std::vector<std::string> names_;
  std::vector<RowStream> streams_;
  RowSchedule schedule_;
  LoaderShape shape_;
  bool repeats_ = false;
  std::int64_t rows_ = 0;  // of a pass
  PackingReport report_;
};

// Whether a micro-batch keeps the promises above: sizes, cu_seqlens rising from 0 to T and staying there, a document
// boundary at every row, positions from 0 in every fragment. The error says which entry does not.
Status check_micro_batch(const MicroBatch& batch, const LoaderShape& shape);

}  // namespace stacklab
