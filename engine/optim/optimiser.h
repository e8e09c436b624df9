// The optimiser segment of a step: gradient norm, clipping, one update for each parameter, QK-clip. Hidden matrices
// follow Muon or AdamW as the config says, each logical matrix on its own (merged ones are never orthogonalised as
// one); the rest follows AdamW.
#pragma once

#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/model/parameters.h"
#include "engine/program/builder.h"

namespace stacklab {

class Executor;

class Optimiser {
 public:
  // seed: of what is rounded by chance.
  Optimiser(const OptimConfig& config, const ParameterTable& table, ProgramSet& set, std::int64_t seed = 0);

  struct Io {
    Value adam_lr, muon_lr;  // [1] f64 inputs
    Value max_logits;        // [layers up to the last with attention, n_heads] input: largest of all micro-batches; not
                             // present without QK-clip of projections
    Value norm;              // [1] f64 output: before clipping
    Value scale;             // [1] f64 output: 0 when the step was skipped for a norm that is not finite
    Value changes;           // [parameters] f64 output: sum of squares of what each update took
  };
  // gradients: one for each buffer of the table, in its order.
  Io append(Builder& p, const std::vector<Value>& gradients) const;

  // State as checkpoints name it: "adam_m.blocks.0.attn_norm.weight", "muon_m.blocks.0.attn.wq.weight", "updates";
  // "adam_m_scales." and "adam_v_scales." of moments in 8 bits.
  struct StateTensor {
    std::string name;
    Value view;
  };
  std::vector<StateTensor> state() const;
  // Sets all of it to 0, as it is before the first update.
  void clear_state(const Executor& executor) const;
  const Value& updates() const { return updates_; }  // [1] f64: updates applied

 private:
  struct Slot {
    bool muon = false;
    Value m, v;                // like the parameter; v for AdamW only
    Value m_scales, v_scales;  // of moments in 8 bits
  };
  bool clips_projections() const;
  void append_update(Builder& p, const Io& io, std::size_t index, const Value& gradient) const;
  void append_qk_clip(Builder& p, Io& io) const;

  OptimConfig config_;
  std::uint64_t seed_;
  const ParameterTable& table_;
  std::vector<Slot> slots_;  // like table_.parameters
  Value updates_;
};

// The factor on Muon's orthogonalised update (rows = outputs): match_rms 0.2 sqrt(max(rows, cols)) (Moonlight),
// original sqrt(max(1, rows / cols)) (Jordan).
double muon_factor(const std::string& scale, std::int64_t rows, std::int64_t cols);

}  // namespace stacklab
