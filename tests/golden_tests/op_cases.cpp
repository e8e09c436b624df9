// ops/: single operations and their gradients.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/golden_tests/golden.h"

namespace stacklab::golden {
namespace {

void compare(Comparison& out, const Case& c, const Setup& s, const std::string& what, const std::vector<double>& got,
             const std::string& tensor, const std::string& quantity, double group_worst) {
  const std::vector<double> oracle = c.reals(tensor);
  const auto [absolute, relative] = c.measured(quantity, group_worst);
  out.close(what, got, oracle, allowed(s, oracle, absolute >= 0 ? absolute : relative * largest(oracle)));
}

void attention(const Case& c, const Setup& s, Comparison& out) {
  const auto& config = c.json().at("config");
  Tensor q = Tensor::real(s, c, "in.q"), k = Tensor::real(s, c, "in.k"), v = Tensor::real(s, c, "in.v");
  Tensor dy = Tensor::real(s, c, "in.dy"), cu_q = Tensor::ints(c, "in.cu_q"), cu_k = Tensor::ints(c, "in.cu_k");
  Tensor y = Tensor::zeros(s, c.shape("out")), lse = Tensor::zeros(s, c.shape("out.lse"));
  Tensor max_logit = Tensor::zeros(s, c.shape("out.max_logit"));
  const RaggedShape shape{
      .scale = config.at("scale"), .soft_cap = config.at("soft_cap"), .window = config.at("window"), .max_len = 0};
  run(s, op::RaggedAttention{.q = q.view(),
                             .k = k.view(),
                             .v = v.view(),
                             .cu_q = cu_q.view(),
                             .cu_k = cu_k.view(),
                             .out = y.view(),
                             .lse = lse.view(),
                             .max_logit = max_logit.view(),
                             .workspace = {},
                             .shape = shape});
  Tensor dq = Tensor::zeros(s, c.shape("in.q")), dk = Tensor::zeros(s, c.shape("in.k")),
         dv = Tensor::zeros(s, c.shape("in.v"));
  run(s, op::RaggedAttentionBackward{.dout = dy.view(),
                                     .q = q.view(),
                                     .k = k.view(),
                                     .v = v.view(),
                                     .cu_q = cu_q.view(),
                                     .cu_k = cu_k.view(),
                                     .out = y.view(),
                                     .lse = lse.view(),
                                     .dq = dq.view(),
                                     .dk = dk.view(),
                                     .dv = dv.view(),
                                     .shape = shape});
  compare(out, c, s, "out", y.values(), "out", "out", 1.9e-6);
  compare(out, c, s, "lse", lse.values(), "out.lse", "lse", 1.8e-7);
  compare(out, c, s, "max_logit", max_logit.values(), "out.max_logit", "max_logit", 1.8e-7);
  compare(out, c, s, "dq", dq.values(), "g.q", "dq", 2.8e-6);
  compare(out, c, s, "dk", dk.values(), "g.k", "dk", 4.0e-6);
  compare(out, c, s, "dv", dv.values(), "g.v", "dv", 9.5e-7);
}

void embedding(const Case& c, const Setup& s, Comparison& out) {
  Tensor table = Tensor::real(s, c, "in.weight"), ids = Tensor::ints(c, "in.ids"), dy = Tensor::real(s, c, "in.dy");
  Tensor x = Tensor::zeros(s, c.shape("out")), dtable = Tensor::zeros(s, c.shape("in.weight"));
  run(s, op::Embedding{.ids = ids.view(), .table = table.view(), .x = x.view()});
  run(s, op::EmbeddingBackward{.ids = ids.view(), .dx = dy.view(), .dtable = {dtable.view(), false}});
  out.exactly("out", x.values(), c.reals("out"));
  const std::vector<double> oracle = c.reals("g.weight");
  out.close("dweight", dtable.values(), oracle, allowed(s, oracle, 0));
  // Rows that nobody used are exactly 0.
  std::vector<double> unused, zero;
  for (std::size_t i = 0; i < oracle.size(); ++i)
    if (oracle[i] == 0) unused.push_back(dtable.values()[i]), zero.push_back(0);
  out.exactly("unused rows", unused, zero);
}

void loss_head(const Case& c, const Setup& s, Comparison& out) {
  const auto& config = c.json().at("config");
  const double z_coef = config.at("z_coef"), soft_cap = config.at("soft_cap");
  Tensor hidden = Tensor::real(s, c, "in.hidden"), weight = Tensor::real(s, c, "in.weight"),
         targets = Tensor::ints(c, "in.targets");
  const std::int64_t rows = c.shape("in.hidden")[0];
  const std::vector<std::int32_t> ids = c.ints("in.targets");
  const auto n = std::count_if(ids.begin(), ids.end(), [](std::int32_t t) { return t >= 0; });
  std::vector<double> each;
  for (const std::int32_t t : ids) each.push_back(t >= 0 ? -1.0 / static_cast<double>(n) : 0);
  Tensor coefficients = Tensor::zeros(s, Shape{rows});
  coefficients.set(each);
  Tensor logits = Tensor::zeros(s, c.shape("out.logits"));
  run(s, op::Logits{.x = hidden.view(),
                    .gain = {},
                    .w = weight.view(),
                    .logits = logits.view(),
                    .workspace = {},
                    .eps = 0,
                    .soft_cap = soft_cap});
  compare(out, c, s, "logits", logits.values(), "out.logits", "logits", 1.6e-7);
  for (const std::int64_t chunk : {rows, std::int64_t{2}}) {
    Tensor sums(DType::f64, Shape{2}), dh = Tensor::zeros(s, c.shape("in.hidden")),
                                       dw = Tensor::zeros(s, c.shape("in.weight"));
    run(s, op::LossHead{.x = hidden.view(),
                        .gain = {},
                        .w = weight.view(),
                        .targets = targets.view(),
                        .coefficients = coefficients.view(),
                        .sums = sums.view(),
                        .dx = dh.view(),
                        .dgain = {},
                        .dw = {dw.view(), false},
                        .workspace = {},
                        .chunk = chunk,
                        .eps = 0,
                        .soft_cap = soft_cap,
                        .z_coef = z_coef});
    const std::vector<double> oracle = c.reals("out.ce_z_loss");
    const auto [absolute, relative] = c.measured("loss", 8.8e-8);
    const double limit = allowed(s, oracle, absolute >= 0 ? absolute : relative * largest(oracle));
    out.close("ce, loss", {sums.values()[0], sums.values()[0] + sums.values()[1]}, {oracle[0], oracle[2]}, limit);
    compare(out, c, s, "dhidden", dh.values(), "g.hidden", "dh", 1.2e-6);
    compare(out, c, s, "dweight", dw.values(), "g.weight", "dw", 1.3e-6);
  }
}

void rmsnorm(const Case& c, const Setup& s, Comparison& out) {
  const double eps = c.json().at("config").at("eps");
  Tensor x = Tensor::real(s, c, "in.x"), w = Tensor::real(s, c, "in.w"), dy = Tensor::real(s, c, "in.dy");
  Tensor y = Tensor::zeros(s, c.shape("in.x")), dx = Tensor::zeros(s, c.shape("in.x")),
         dw = Tensor::zeros(s, c.shape("in.w"));
  run(s, op::RmsNorm{.x = x.view(), .gain = w.view(), .y = y.view(), .eps = eps});
  run(s, op::RmsNormBackward{.dy = dy.view(),
                             .x = x.view(),
                             .gain = w.view(),
                             .dx = {dx.view(), false},
                             .dgain = {dw.view(), false},
                             .workspace = {},
                             .eps = eps});
  const std::int64_t width = c.shape("in.x")[1];
  const auto relative = [&](const char* quantity, double worst) {
    return s.in_double() ? 1e-9 : std::max(8 * c.measured(quantity, worst).second, 4 * eps32);
  };
  out.rows_close("out", y.values(), c.reals("out"), width, relative("out", 1.2e-7));
  // With one element a row's gradient is a difference of equal terms: what is left is judged by the terms, dy gain /
  // rms.
  if (width > 1) out.rows_close("dx", dx.values(), c.reals("g.x"), width, relative("dx", 1.0e-7));
  compare(out, c, s, "dw", dw.values(), "g.w", "dw", 1.3e-6);
}

void rope(const Case& c, const Setup& s, Comparison& out) {
  const double theta = c.json().at("config").at("theta");
  Tensor x = Tensor::real(s, c, "in.x"), dy = Tensor::real(s, c, "in.dy"), positions = Tensor::ints(c, "in.positions");
  Tensor y = Tensor::zeros(s, c.shape("in.x")), dx = Tensor::zeros(s, c.shape("in.x"));
  run(s, op::Rope{.x = x.view(),
                  .positions = positions.view(),
                  .y = y.view(),
                  .workspace = {},
                  .theta = theta,
                  .inverse = false});
  run(s, op::Rope{.x = dy.view(),
                  .positions = positions.view(),
                  .y = dx.view(),
                  .workspace = {},
                  .theta = theta,
                  .inverse = true});
  const std::vector<std::int32_t> p = c.ints("in.positions");
  const auto width = static_cast<std::size_t>(c.shape("in.x").size() / c.shape("in.x")[0]);
  // An angle in single precision is off by up to 6e-8 of the position.
  for (std::size_t t = 0; t < p.size(); ++t) {
    const auto row = [&](const std::vector<double>& v) {
      return std::vector<double>(v.begin() + static_cast<std::ptrdiff_t>(t * width),
                                 v.begin() + static_cast<std::ptrdiff_t>((t + 1) * width));
    };
    for (const auto& [what, got, tensor] :
         {std::tuple("out", y.values(), "out"), std::tuple("dx", dx.values(), "g.x")}) {
      const std::vector<double> oracle = row(c.reals(tensor));
      const double angle_error = 6e-8 * static_cast<double>(p[t]) * largest(oracle);
      out.close(std::string(what) + " at position " + std::to_string(p[t]), row(got), oracle,
                allowed(s, oracle, angle_error / 2));
    }
  }
}

void qknorm_rope(const Case& c, const Setup& s, Comparison& out) {
  const auto& config = c.json().at("config");
  const Shape shape = c.shape("in.x");
  Tensor x = Tensor::real(s, c, "in.x"), w = Tensor::real(s, c, "in.w");
  Tensor normalised = Tensor::zeros(s, shape), y = Tensor::zeros(s, shape), positions(DType::i32, Shape{shape[0]});
  const auto rows = [&](Tensor& t) {
    TensorView v = t.view();
    v.shape = Shape{shape[0] * shape[1], shape[2]};
    return v;
  };
  for (std::int64_t t = 0; t < shape[0]; ++t) positions.view().as<std::int32_t>()[t] = static_cast<std::int32_t>(t);
  run(s, op::RmsNorm{.x = rows(x), .gain = w.view(), .y = rows(normalised), .eps = config.at("eps")});
  run(s, op::Rope{.x = normalised.view(),
                  .positions = positions.view(),
                  .y = y.view(),
                  .workspace = {},
                  .theta = config.at("theta"),
                  .inverse = false});
  const std::vector<double> oracle = c.reals("out");
  // The last position's angles are off by up to 6e-8 of it.
  out.close("out", y.values(), oracle,
            allowed(s, oracle, (1.0e-7 + 6e-8 * static_cast<double>(shape[0])) * largest(oracle) / 8));
}

void swiglu(const Case& c, const Setup& s, Comparison& out) {
  Tensor gate = Tensor::real(s, c, "in.gate"), up = Tensor::real(s, c, "in.up"), dy = Tensor::real(s, c, "in.dy");
  const Shape shape = c.shape("in.gate");
  Tensor u = Tensor::zeros(s, shape), dgate = Tensor::zeros(s, shape), dup = Tensor::zeros(s, shape);
  run(s, op::Swiglu{.gate = gate.view(), .up = up.view(), .u = u.view()});
  run(s, op::SwigluBackward{
             .du = dy.view(), .gate = gate.view(), .up = up.view(), .dgate = dgate.view(), .dup = dup.view()});
  compare(out, c, s, "out", u.values(), "out", "out", 5e-8);
  compare(out, c, s, "dgate", dgate.values(), "g.gate", "dgate", 8.4e-8);
  compare(out, c, s, "dup", dup.values(), "g.up", "dup", 2.7e-8);
}

}  // namespace

std::vector<Kind> op_kinds() {
  return {{"ops/attention", attention, {}},
          {"ops/embedding", embedding, {}},
          {"ops/loss_head", loss_head, {}},
          {"ops/rmsnorm", rmsnorm, {}},
          {"ops/rope", rope, {}},
          {"ops/rope_scaling", {}, "rope scaling is not built yet"},
          {"ops/qknorm_rope", qknorm_rope, {}},
          {"ops/swiglu", swiglu, {}},
          {"ops/moe", {}, "the moe FFN is not built yet"},
          {"ops/shortconv", {}, "the conv mixer is not built yet"}};
}

}  // namespace stacklab::golden
