// The SwiGLU feed-forward part (Shazeer 2020).
#include "engine/model/sublayer.h"

namespace stacklab {
namespace {

class SwigluFfn final : public Sublayer {
 public:
  SwigluFfn(const LayerContext& context, ParameterBuilder& parameters)
      : scope_(context.name() + ".mlp"), eps_(context.config.norm_eps), recompute_(context.recompute_swiglu) {
    const ModelConfig& c = context.config;
    const std::string name = scope_ + ".";
    norm_ = parameters.gain(context.name() + ".mlp_norm.weight", c.d_model);
    gate_up_ = parameters.merged(name + "gate_up.weight", c.d_model, init_std,
                                 {{name + "gate.weight", c.intermediate}, {name + "up.weight", c.intermediate}});
    down_ = parameters.matrix(name + "down.weight", c.d_model, c.intermediate, residual_init_std(c));
  }

  Applied apply(Builder& p, const Value& x, const TokenInputs&, const Value&, bool want_out) const override {
    p.scope(scope_);
    const auto hidden = p.norm_swiglu(x, norm_, gate_up_, eps_);               // [T, F]
    const Value out = want_out ? p.project_add(hidden.y, down_, x) : Value{};  // x + u Wdown^T
    return {out, [=, this](Builder& b, const Value& dx) {
              b.scope(scope_);
              b.swiglu_project_backward(dx, hidden, down_, recompute_);
              b.norm_swiglu_backward(x, norm_, gate_up_, hidden, eps_, dx);
            }};
  }

 private:
  std::string scope_;
  double eps_;
  bool recompute_;
  Value norm_, gate_up_, down_;
};

SublayerSize size(const ModelConfig& c) { return {.matrices = 3 * c.d_model * c.intermediate}; }

}  // namespace

const SublayerKind swiglu_ffn = {"swiglu", size,
                                 [](const LayerContext& context, ParameterBuilder& p) -> std::unique_ptr<Sublayer> {
                                   return std::make_unique<SwigluFfn>(context, p);
                                 }};

}  // namespace stacklab
