// The optimiser segment of a step: gradient norm, clipping, and one AdamW update for each parameter buffer.
#pragma once

#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/model/parameters.h"
#include "engine/program/builder.h"

namespace stacklab {

class Optimiser {
 public:
  Optimiser(const OptimConfig& config, const ParameterTable& table, ProgramSet& set);

  struct Io {
    Value adam_lr;  // [1] f64 input
    Value norm;     // [1] f64 output: before clipping
    Value scale;    // [1] f64 output: 0 when the step was skipped for a norm that is not finite
  };
  // gradients: one for each buffer of the table, in its order.
  Io append(Builder& p, const std::vector<Value>& gradients) const;

  // State as checkpoints name it, in the table's parts: "adam_m.blocks.0.attn.wq.weight".
  struct StateTensor {
    std::string name;
    Value view;
  };
  std::vector<StateTensor> state() const;
  const Value& updates() const { return updates_; }  // [1] f64: updates applied

 private:
  OptimConfig config_;
  const ParameterTable& table_;
  std::vector<Value> m_, v_;  // like table_.buffers
  Value updates_;
};

}  // namespace stacklab
