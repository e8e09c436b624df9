// model/: whole models; logits, losses, largest attention logits and every gradient.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/engine/model/model_harness.h"
#include "tests/golden_tests/golden.h"

namespace stacklab::golden {
namespace {

// Twice what the reference's own error is under bf16 autocast. A loss is one number, and its one measured error may be
// small by luck (rounding the weights alone can move it further). So at least the standard error of a mean over the n
// targets counts as measured, when logits err independently: deviation / sqrt(n), with the deviation of logits taken
// from their measured largest error, which among N normal numbers is about sqrt(2 ln N) deviations.
void mixed_precision(const Case& c, const test::ModelOnBatch& m, Comparison& out) {
  const std::vector<double> logits = c.reals("out.logits");
  const double worst_logit = c.measured_bf16("logits");
  out.close("logits", m.logits(), logits, 2 * worst_logit);
  const std::vector<std::int32_t> targets = c.ints("in.targets");
  const auto n = static_cast<double>(std::count_if(targets.begin(), targets.end(), [](auto t) { return t >= 0; }));
  const double by_chance = worst_logit / std::sqrt(2 * std::log(static_cast<double>(logits.size()))) / std::sqrt(n);
  out.close("loss", {m.loss()}, {c.json().at("scalars").at("loss")}, 2 * std::max(c.measured_bf16("loss"), by_chance));
  // The error of the whole gradient, and so of its norm, relative to the norm.
  const double norm = c.json().at("grad_norm"), limit = 2 * c.measured_bf16("grads_norm_rel") * norm;
  const std::vector<Parameter>& parameters = m.model().parameters().parameters;
  double squares = 0, error = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::vector<double> oracle = c.reals("g." + parameters[i].name), g = m.gradient(i);
    for (std::size_t k = 0; k < g.size(); ++k) {
      squares += g[k] * g[k];
      error += (g[k] - oracle[k]) * (g[k] - oracle[k]);
    }
  }
  out.close("gradient norm", {std::sqrt(squares)}, {norm}, limit);
  out.close("norm of the gradient's error", {std::sqrt(error)}, {0.0}, limit);
}

// Kernels rely on what the loader promises.
void check_tokens(const test::PackedTokens& batch, std::int64_t vocab_size) {
  const auto outside = [&](std::int32_t id) { return id < 0 || id >= vocab_size; };
  if (std::any_of(batch.ids.begin(), batch.ids.end(), outside)) throw std::runtime_error("in.ids leave the vocabulary");
  if (std::any_of(batch.targets.begin(), batch.targets.end(), [&](auto t) { return t >= vocab_size; }))
    throw std::runtime_error("in.targets leave the vocabulary");
  const std::vector<std::int32_t>& cu = batch.cu_seqlens;
  if (cu.size() < 2 || cu.front() != 0 || cu.back() != static_cast<std::int32_t>(batch.ids.size()) ||
      !std::is_sorted(cu.begin(), cu.end()))
    throw std::runtime_error("in.cu_seqlens do not rise from 0 to the number of tokens");
  if (batch.targets.size() != batch.ids.size() || batch.positions.size() != batch.ids.size())
    throw std::runtime_error("in.targets or in.position_ids are not like in.ids");
}

void whole_model(const Case& c, const Setup& s, Comparison& out) {
  const ModelConfig config = model_config(c.json().at("config"));
  test::PackedTokens batch;
  batch.ids = c.ints("in.ids");
  batch.targets = c.ints("in.targets");
  const auto width = static_cast<std::int32_t>(c.shape("in.ids")[1]),
             total = static_cast<std::int32_t>(batch.ids.size());
  if (c.has("in.position_ids")) {
    batch.positions = c.ints("in.position_ids");
  } else {
    for (std::int32_t t = 0; t < total; ++t) batch.positions.push_back(t % width);
  }
  if (c.has("in.cu_seqlens")) {
    batch.cu_seqlens = c.ints("in.cu_seqlens");
  } else {
    for (std::int32_t t = 0; t <= total; t += width) batch.cu_seqlens.push_back(t);
  }
  check_tokens(batch, config.vocab_size);
  test::ModelOnBatch m(config, s.mixed ? DType::bf16 : s.real, total,
                       static_cast<std::int64_t>(batch.cu_seqlens.size()) - 1, 7, *s.backend);
  std::size_t in_file = 0;
  for (const SafetensorsEntry& e : c.tensors->entries()) in_file += e.name.starts_with("w.");
  const std::vector<Parameter>& parameters = m.model().parameters().parameters;
  if (parameters.size() != in_file)
    throw std::runtime_error("the case has other parameters than the model of its config");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!(c.shape("w." + parameters[i].name) == parameters[i].view.shape))
      throw std::runtime_error("w." + parameters[i].name + " has another shape than in the model of the config");
    m.set_parameter(i, c.reals("w." + parameters[i].name));
  }
  Shape like_ids = c.shape("in.ids");
  like_ids.dim[static_cast<std::size_t>(like_ids.rank++)] = config.vocab_size;
  if (!(c.shape("out.logits") == like_ids)) throw std::runtime_error("out.logits is not in.ids by the vocabulary");
  m.set_batch(batch);
  m.run();

  if (s.mixed) return mixed_precision(c, m, out);
  const std::vector<double> logits = c.reals("out.logits");
  out.close("logits", m.logits(), logits, allowed(s, logits, c.measured("logits", 2.8e-6).first));
  const auto& scalars = c.json().at("scalars");
  const std::vector<double> losses = {scalars.at("loss"), scalars.at("ce")};
  out.close("loss, ce", {m.loss(), m.ce()}, losses, allowed(s, losses, c.measured("loss", 1.4e-7).first));
  if (c.has("out.max_logit")) {
    // They come out of the same sums as the logits: those's relative error is taken.
    const std::vector<double> oracle = c.reals("out.max_logit");
    out.close("max logits", m.max_logits(), oracle,
              allowed(s, oracle, c.measured("logits", 2.8e-6).second * largest(oracle)));
  }
  const auto& measured = c.json().at("measured_fp32_vs_fp64");
  double squares = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::vector<double> oracle = c.reals("g." + parameters[i].name), g = m.gradient(i);
    // The oracle's gradients were rounded to single precision.
    const double relative =
        s.in_double() ? eps32 : std::max(8 * measured.value("grads_worst_rel_to_own_max", 1.3e-5), 4 * eps32);
    out.close("gradient of " + parameters[i].name, g, oracle, relative * largest(oracle));
    for (const double x : g) squares += x * x;
  }
  const double norm = c.json().at("grad_norm");
  out.close("gradient norm", {std::sqrt(squares)}, {norm},
            norm * (s.in_double() ? 1e-9 : std::max(8 * measured.value("grads_norm_rel", 3.0e-6), 4 * eps32)));
}

}  // namespace

ModelConfig model_config(const nlohmann::json& j) {
  ModelConfig c;
  c.vocab_size = j.at("vocab_size"), c.d_model = j.at("d_model"), c.n_layers = j.at("n_layers"),
  c.n_heads = j.at("n_heads");
  c.n_kv_heads = j.at("n_kv_heads"), c.head_dim = j.at("head_dim"), c.intermediate = j.at("intermediate");
  c.max_seq_len = j.at("max_seq_len"), c.rope_theta = j.at("rope_theta"), c.nope_every = j.at("nope_every");
  c.norm_eps = j.at("norm_eps"), c.qk_norm = j.at("qk_norm"), c.tie_embeddings = j.at("tie_embeddings");
  c.z_loss_coef = j.at("z_loss_coef"), c.logit_soft_cap = j.at("logit_soft_cap"),
  c.attn_soft_cap = j.at("attn_soft_cap");
  c.mixer = j.value("mixer", "gqa"), c.ffn = j.value("ffn", "swiglu");
  return c;
}

std::string missing_mixer(const Case& c) {
  if (!c.json().contains("config") || !c.json()["config"].is_object()) return {};
  const auto& config = c.json()["config"];
  const std::string mixer = config.value("mixer", "gqa");
  if (mixer != "gqa") return "the " + mixer + " mixer is not built yet";
  if (config.value("attn_every", 0) > 0) return "hybrids of two mixers are not built yet";
  for (const char* later : {"moe", "mtp"})
    for (const auto& [key, value] : config.items())
      if (key.find(later) != std::string::npos ||
          (value.is_string() && value.get<std::string>().find(later) != std::string::npos))
        return std::string(later) + " is not built yet";
  if (c.tensors)
    for (const SafetensorsEntry& e : c.tensors->entries())
      for (const char* later : {"mlp.router", "mtp."})
        if (e.name.find(later) != std::string::npos) return std::string(later) + " parameters are not built yet";
  return {};
}

std::vector<Kind> model_kinds() {
  std::vector<Kind> kinds;
  for (const char* name : {"conv", "docmask", "eps", "hybrid", "ignore", "mha", "mla", "moe", "mqa", "mtp", "no_qknorm",
                           "nope", "plain", "positions", "softcap", "theta", "untied"})
    kinds.push_back({std::string("model/") + name, whole_model, {}, true});
  return kinds;
}

}  // namespace stacklab::golden
