// The Stack model: pre-norm blocks of a mixer and a feed-forward part, with a tied or untied head. Declares its
// parameters in a ProgramSet and appends its forward and backward pass to Programs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/model/parameters.h"
#include "engine/model/sublayer.h"
#include "engine/program/builder.h"

namespace stacklab {

class Executor;

struct LossInputs {
  Value targets;       // [T] i32, negative: ignored
  Value coefficients;  // [T] dL/dlog p
};

// What backward computes again instead of keeping it.
struct Recompute {
  std::int64_t blocks = 0;  // of each stretch of so many blocks, its input alone is kept; 0: everything is
  bool swiglu = false;      // in the FFN, gate and up are kept and their product is made again
};

class StackModel {
 public:
  // storage: f32, f64, or bf16 for mixed precision (bf16 matrices with f32 masters, f32 residual stream). max_len: the
  // longest document that attention will meet, for counting FLOPs. The config must have passed check_layers.
  StackModel(const ModelConfig& config, DType storage, std::int64_t max_len, ProgramSet& set, Recompute recompute = {},
             Masters masters = {});

  const ModelConfig& config() const { return config_; }
  const ParameterTable& parameters() const { return table_; }
  // The type of the residual stream, of losses and of gradients of parameters.
  DType real() const { return real_; }

  struct State {
    std::vector<Backward> sublayers;  // in order; those of blocks that are computed again are not there
    std::vector<Value> inputs;        // of the stretches that are
    Value x;                          // residual stream after the last block, before the final norm
  };

  // max_logits: [n_layers, n_heads], an output of the Program
  State forward(Builder& p, const TokenInputs& in, const Value& max_logits) const;
  // Writes sums (see op::LossHead); returns the gradient of state.x where the Program has gradients.
  Value loss(Builder& p, const State& state, const LossInputs& in, const Value& sums, std::int64_t chunk) const;
  Value logits(Builder& p, const State& state) const;
  // dx: the gradient of state.x; used up.
  void backward(Builder& p, const TokenInputs& in, const State& state, const Value& dx) const;

 private:
  // Blocks begin .. end on state.x; their ways back are appended to state.sublayers. again: for these alone, and
  // max_logits has a row for each of these blocks only.
  void apply(Builder& p, State& state, std::int64_t begin, std::int64_t end, const TokenInputs& in,
             const Value& max_logits, bool again) const;
  const Value& head() const { return config_.tie_embeddings ? embedding_ : lm_head_; }

  ModelConfig config_;
  DType real_;
  Recompute recompute_;
  ParameterTable table_;
  Value embedding_, final_norm_, lm_head_;
  Value lookup_;  // the embedding where rows of it become the residual stream: the master, in full precision
  std::vector<std::unique_ptr<Sublayer>> sublayers_;  // of each layer its mixer, then its FFN
};

// Draws the initial parameters: a function of the seed, the parameter's name order and the element, whatever the
// layout. Working copies are the caller's matter (append_working_copies).
void initialise(const ParameterTable& table, std::uint64_t seed, const Executor& executor);

}  // namespace stacklab
