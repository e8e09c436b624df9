// The Stack model: pre-norm blocks of grouped-query attention and SwiGLU, with a tied or untied head. Declares its
// parameters in a ProgramSet and appends its forward and backward pass to Programs.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/model/parameters.h"
#include "engine/program/builder.h"

namespace stacklab {

class Executor;

// What a Program of the model is fed: T tokens of packed documents.
struct TokenInputs {
  Value ids;         // [T] i32
  Value positions;   // [T] i32
  Value cu_seqlens;  // [D + 1] i32
};

struct LossInputs {
  Value targets;       // [T] i32, negative: ignored
  Value coefficients;  // [T] dL/dlog p
};

class StackModel {
 public:
  // dtype: f32 or f64. max_len: the longest document that attention will meet, for counting FLOPs.
  StackModel(const ModelConfig& config, DType dtype, std::int64_t max_len, ProgramSet& set);

  const ModelConfig& config() const { return config_; }
  const ParameterTable& parameters() const { return table_; }

  // Everything that backward needs of forward.
  struct BlockState {
    Value x;  // residual stream into the block
    Builder::Product qkv;
    Builder::Attended attention;
    Value middle;  // residual stream between attention and FFN
    Builder::Product hidden;
  };
  struct State {
    std::vector<BlockState> blocks;
    Value x;  // residual stream after the last block, before the final norm
  };

  // max_logits: [n_layers, n_heads], an output of the Program
  State forward(Builder& p, const TokenInputs& in, const Value& max_logits) const;
  // Writes sums (see op::LossHead); returns the gradient of state.x where the Program has gradients.
  Value loss(Builder& p, const State& state, const LossInputs& in, const Value& sums, std::int64_t chunk) const;
  Value logits(Builder& p, const State& state) const;
  // dx: the gradient of state.x; used up.
  void backward(Builder& p, const TokenInputs& in, const State& state, const Value& dx) const;

 private:
  struct BlockWeights {
    Value attn_norm, qkv, q_norm, k_norm, o;
    Value mlp_norm, gate_up, down;
  };
  AttentionShape attention_shape(std::int64_t layer) const;
  BlockState block_forward(Builder& p, std::int64_t layer, const Value& x, const TokenInputs& in,
                           const Value& max_logit, Value& out) const;
  void block_backward(Builder& p, std::int64_t layer, const BlockState& s, const TokenInputs& in,
                      const Value& dx) const;
  const Value& head() const { return config_.tie_embeddings ? embedding_ : lm_head_; }

  ModelConfig config_;
  std::int64_t max_len_;
  ParameterTable table_;
  Value embedding_, final_norm_, lm_head_;
  std::vector<BlockWeights> blocks_;
};

// Draws the initial parameters: a function of the seed, the parameter's name order and the element, whatever the
// layout.
void initialise(const ParameterTable& table, std::uint64_t seed, const Executor& executor);

}  // namespace stacklab
