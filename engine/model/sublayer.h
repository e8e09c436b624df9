// A block is two sublayers: a mixer, through which tokens of a document see each other, and a feed-forward part (FFN).
// Each reads the residual stream through its own norm and adds to it. The trunk (stack.cpp) knows none of them by name:
// the config names one of each for every layer, and the registry makes it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/config/run_config.h"
#include "engine/model/parameters.h"
#include "engine/program/builder.h"

namespace stacklab {

// What a Program of the model is fed: T tokens of packed documents.
struct TokenInputs {
  Value ids;         // [T] i32
  Value positions;   // [T] i32
  Value cu_seqlens;  // [D + 1] i32
};

// Appends the way back of what was appended forward. dx: the gradient of the output, which becomes that of the input.
using Backward = std::function<void(Builder& p, const Value& dx)>;

class Sublayer {
 public:
  virtual ~Sublayer() = default;
  struct Applied {
    Value out;  // [T, d] x + f(norm(x)); not present where it is not wanted
    Backward backward;
  };
  // x: [T, d]. max_logit: [Hq], this layer's row of the output that collects them; for attention. want_out: false where
  // the sublayer is applied again for its way back alone.
  virtual Applied apply(Builder& p, const Value& x, const TokenInputs& in, const Value& max_logit,
                        bool want_out) const = 0;
};

struct LayerContext {
  const ModelConfig& config;
  std::int64_t layer = 0;
  std::int64_t max_len = 0;  // longest document that attention will meet, for counting FLOPs
  bool recompute_swiglu = false;
  std::string name() const;  // "blocks.3"
  bool rotary() const;       // every nope_every-th layer has no rotary positions
};

// Exact sizes of one sublayer, from the config alone; its norm of the residual stream is not in them.
struct SublayerSize {
  std::int64_t matrices = 0;       // entries of hidden matrices
  std::int64_t gains = 0;          // entries of gains
  std::int64_t kv = 0;             // elements that are cached for one token
  std::int64_t flops_per_key = 0;  // of one token and one other token of the window, forward and backward, causal half
};

struct SublayerKind {
  std::string_view name;  // as the config says it
  SublayerSize (*size)(const ModelConfig& config);
  std::unique_ptr<Sublayer> (*make)(const LayerContext& context, ParameterBuilder& parameters);
};

// One line for each in registry.cpp.
extern const SublayerKind gqa_mixer;   // gqa.cpp
extern const SublayerKind swiglu_ffn;  // swiglu.cpp

std::span<const SublayerKind* const> mixers();
std::span<const SublayerKind* const> ffns();

// What a layer is made of. The config must have passed check_layers (counts.h).
const SublayerKind& mixer_of(const ModelConfig& config, std::int64_t layer);
const SublayerKind& ffn_of(const ModelConfig& config, std::int64_t layer);

}  // namespace stacklab
