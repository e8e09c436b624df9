#include "engine/optim/optimiser.h"

#include <algorithm>
#include <cmath>

#include "engine/program/executor.h"
#include "kernels/rounding.h"

namespace stacklab {

double muon_factor(const std::string& scale, std::int64_t rows, std::int64_t cols) {
  if (scale == "match_rms") return 0.2 * std::sqrt(static_cast<double>(std::max(rows, cols)));
  return std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(cols)));
}

Optimiser::Optimiser(const OptimConfig& config, const ParameterTable& table, ProgramSet& set, std::int64_t seed)
    : config_(config), seed_(static_cast<std::uint64_t>(seed)), table_(table) {
  for (const Parameter& p : table.parameters) {
    Slot slot;
    slot.muon = config.matrices == "muon" && p.kind == ParameterKind::matrix;
    // Gains are few, and everything depends on them.
    const bool compact = !slot.muon && p.kind != ParameterKind::gain && config.adam_state != "fp32";
    const DType type = !compact ? real_of(p.view.dtype) : config.adam_state == "int8" ? DType::u8 : DType::bf16;
    const auto state = [&](const char* name, DType dtype, Shape shape) {
      return set.persistent(name + p.name, BufferClass::optimiser, dtype, shape);
    };
    slot.m = state(slot.muon ? "muon_m." : "adam_m.", type, p.view.shape);
    if (!slot.muon) slot.v = state("adam_v.", type, p.view.shape);
    if (type == DType::u8) {
      const Shape blocks = {(p.view.size() + moment_block - 1) / moment_block};
      slot.m_scales = state("adam_m_scales.", real_of(p.view.dtype), blocks);
      slot.v_scales = state("adam_v_scales.", real_of(p.view.dtype), blocks);
    }
    slots_.push_back(slot);
  }
  updates_ = set.persistent("updates", BufferClass::scalar, DType::f64, {1});
}

bool Optimiser::clips_projections() const {
  return config_.qk_clip > 0 && !table_.attention.empty() && !table_.attention.front().q_gain.present();
}

Optimiser::Io Optimiser::append(Builder& p, const std::vector<Value>& gradients) const {
  p.scope("optimiser");
  Io io;
  io.adam_lr = p.input("adam_lr", DType::f64, {1});
  if (std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.muon; }))
    io.muon_lr = p.input("muon_lr", DType::f64, {1});
  io.norm = p.output("grad_norm", DType::f64, {1});
  io.scale = p.output("grad_scale", DType::f64, {1});
  io.changes = p.output("changes", DType::f64, {static_cast<std::int64_t>(slots_.size())});
  const Value partials = p.scratch_value("grad_square_sums", BufferClass::scalar, DType::f64,
                                         {static_cast<std::int64_t>(gradients.size())});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto slot = static_cast<std::int64_t>(i);
    p.sum_squares(gradients[i], partials.row_range(slot, slot + 1));
  }
  p.clip_scale(partials, io.norm, io.scale, updates_, config_.grad_clip);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Parameter& parameter = table_.parameters[i];
    append_update(p, io, i, table_.part_of(gradients[parameter.buffer], parameter));
  }
  append_qk_clip(p, io);
  append_working_copies(p, table_);
  return io;
}

void Optimiser::append_update(Builder& p, const Io& io, std::size_t index, const Value& gradient) const {
  const Parameter& parameter = table_.parameters[index];
  const Slot& slot = slots_[index];
  const auto at = static_cast<std::int64_t>(index);
  const Value change = io.changes.row_range(at, at + 1);
  // Embeddings and gains do not decay.
  const double decay = parameter.kind == ParameterKind::matrix ? config_.weight_decay : 0;
  p.scope(parameter.name);
  if (slot.muon) {
    p.muon({.w = parameter.view,
            .g = gradient,
            .m = slot.m,
            .lr = io.muon_lr,
            .scale = io.scale,
            .change = change,
            .workspace = {},
            .momentum = config_.muon_momentum,
            .weight_decay = decay,
            .factor = muon_factor(config_.muon_scale, parameter.view.rows(), parameter.view.cols()),
            .ns_steps = config_.ns_steps});
    return;
  }
  const auto filled = [&](auto o) {
    o.w = parameter.view, o.g = gradient, o.m = slot.m, o.v = slot.v;
    o.lr = io.adam_lr, o.scale = io.scale, o.updates = updates_, o.change = change;
    o.beta1 = config_.adam_beta1, o.beta2 = config_.adam_beta2, o.eps = config_.adam_eps, o.weight_decay = decay;
    return o;
  };
  if (slot.m.dtype == gradient.dtype) return p.adamw(filled(op::AdamW{}));
  op::AdamWCompact compact = filled(op::AdamWCompact{});
  compact.m_scales = slot.m_scales, compact.v_scales = slot.v_scales;
  compact.seed = seed_ * 0x9e3779b97f4a7c15u + index;
  p.adamw_compact(compact);
}

void Optimiser::append_qk_clip(Builder& p, Io& io) const {
  if (config_.qk_clip <= 0 || table_.attention.empty()) return;
  const AttentionParameters &first = table_.attention.front(), &last = table_.attention.back();
  if (clips_projections()) io.max_logits = p.input("clip_max_logits", first.wq.dtype, {last.layer + 1, first.n_heads});
  for (const AttentionParameters& a : table_.attention) {
    p.scope("qk_clip");
    if (a.q_gain.present()) {
      p.qk_clip_gains({.q_gain = a.q_gain, .k_gain = a.k_gain, .threshold = config_.qk_clip});
    } else {
      Value max_logit = io.max_logits.row_range(a.layer, a.layer + 1);
      max_logit.shape = {a.n_heads};
      p.qk_clip_heads({.wq = a.wq,
                       .wk = a.wk,
                       .max_logit = max_logit,
                       .n_heads = a.n_heads,
                       .n_kv_heads = a.n_kv_heads,
                       .threshold = config_.qk_clip});
    }
  }
}

std::vector<Optimiser::StateTensor> Optimiser::state() const {
  std::vector<StateTensor> tensors;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const std::string& name = table_.parameters[i].name;
    tensors.push_back({(slots_[i].muon ? "muon_m." : "adam_m.") + name, slots_[i].m});
    if (!slots_[i].muon) tensors.push_back({"adam_v." + name, slots_[i].v});
    if (!slots_[i].m_scales.present()) continue;
    tensors.push_back({"adam_m_scales." + name, slots_[i].m_scales});
    tensors.push_back({"adam_v_scales." + name, slots_[i].v_scales});
  }
  tensors.push_back({"updates", updates_});
  return tensors;
}

void Optimiser::clear_state(const Executor& executor) const {
  for (const StateTensor& s : state()) {
    const TensorView bound = executor.bind(s.view);
    std::fill(bound.data, bound.data + bound.bytes(), std::byte{0});
  }
}

}  // namespace stacklab
