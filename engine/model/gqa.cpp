// Grouped-query attention (Ainslie et al. 2023): QK-norm, rotary positions, softmax inside documents.
#include <cmath>

#include "engine/model/sublayer.h"

namespace stacklab {
namespace {

class GroupedQueryAttention final : public Sublayer {
 public:
  GroupedQueryAttention(const LayerContext& context, ParameterBuilder& parameters)
      : scope_(context.name() + ".attn"), eps_(context.config.norm_eps) {
    const ModelConfig& c = context.config;
    const std::string name = scope_ + ".";
    const std::int64_t queries = c.n_heads * c.head_dim, keys = c.n_kv_heads * c.head_dim;
    norm_ = parameters.gain(context.name() + ".attn_norm.weight", c.d_model);
    qkv_ = parameters.merged(name + "wqkv.weight", c.d_model, init_std,
                             {{name + "wq.weight", queries}, {name + "wk.weight", keys}, {name + "wv.weight", keys}});
    o_ = parameters.matrix(name + "wo.weight", c.d_model, queries, residual_init_std(c));
    if (c.qk_norm) {
      q_gain_ = parameters.gain(name + "q_norm.weight", c.head_dim);
      k_gain_ = parameters.gain(name + "k_norm.weight", c.head_dim);
    }
    parameters.attention({context.layer, parameters.master(name + "wq.weight"), parameters.master(name + "wk.weight"),
                          q_gain_, k_gain_, c.n_heads, c.n_kv_heads});
    shape_.n_heads = c.n_heads;
    shape_.n_kv_heads = c.n_kv_heads;
    shape_.head_dim = c.head_dim;
    shape_.max_len = context.max_len;
    shape_.rope = context.rotary();
    shape_.rope_theta = c.rope_theta;
    shape_.scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim));
    shape_.soft_cap = c.attn_soft_cap;
    shape_.norm_eps = c.norm_eps;
  }

  Applied apply(Builder& p, const Value& x, const TokenInputs& in, const Value& max_logit,
                bool want_out) const override {
    p.scope(scope_);
    const auto qkv = p.norm_matmul(x, norm_, qkv_, eps_);  // [T, (Hq + 2 Hk) Dh]
    const auto attended =
        p.attention(qkv.y, q_gain_, k_gain_, in.positions, in.cu_seqlens, shape_, max_logit);  // [T, Hq Dh]
    const Value out = want_out ? p.project_add(attended.out, o_, x) : Value{};                 // x + a Wo^T
    return {out, [=, this](Builder& b, const Value& dx) {
              b.scope(scope_);
              const Value da = b.project_add_backward(dx, attended.out, o_);
              const Value dqkv =
                  b.attention_backward(da, qkv.y, q_gain_, k_gain_, in.positions, in.cu_seqlens, shape_, attended);
              b.norm_matmul_backward(dqkv, x, norm_, qkv_, qkv, eps_, dx);
            }};
  }

 private:
  std::string scope_;
  double eps_;
  Value norm_, qkv_, o_, q_gain_, k_gain_;
  AttentionShape shape_;
};

SublayerSize size(const ModelConfig& c) {
  const std::int64_t queries = c.n_heads * c.head_dim, keys = c.n_kv_heads * c.head_dim;
  // Two products (scores, values), the causal half of each, times 2 for multiply-add and 3 for forward and backward.
  return {.matrices = c.d_model * (queries + 2 * keys) + queries * c.d_model,
          .gains = c.qk_norm ? 2 * c.head_dim : 0,
          .kv = 2 * keys,
          .flops_per_key = 6 * queries};
}

}  // namespace

const SublayerKind gqa_mixer = {"gqa", size,
                                [](const LayerContext& context, ParameterBuilder& p) -> std::unique_ptr<Sublayer> {
                                  return std::make_unique<GroupedQueryAttention>(context, p);
                                }};

}  // namespace stacklab
