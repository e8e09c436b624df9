#include "engine/optim/optimiser.h"

namespace stacklab {

Optimiser::Optimiser(const OptimConfig& config, const ParameterTable& table, ProgramSet& set)
    : config_(config), table_(table) {
  for (const ParameterBuffer& b : table.buffers) {
    const std::string& name = set.buffers()[static_cast<std::size_t>(b.value.place.buffer)].name;
    const std::string m_name = "adam_m." + name, v_name = "adam_v." + name;
    m_.push_back(set.persistent(m_name, BufferClass::optimiser, b.value.dtype, b.value.shape));
    v_.push_back(set.persistent(v_name, BufferClass::optimiser, b.value.dtype, b.value.shape));
  }
  updates_ = set.persistent("updates", BufferClass::scalar, DType::f64, {1});
}

Optimiser::Io Optimiser::append(Builder& p, const std::vector<Value>& gradients) const {
  p.scope("optimiser");
  Io io;
  io.adam_lr = p.input("adam_lr", DType::f64, {1});
  io.norm = p.output("grad_norm", DType::f64, {1});
  io.scale = p.output("grad_scale", DType::f64, {1});
  const Value partials = p.scratch_value("grad_square_sums", BufferClass::scalar, DType::f64,
                                         {static_cast<std::int64_t>(gradients.size())});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto slot = static_cast<std::int64_t>(i);
    p.sum_squares(gradients[i], partials.row_range(slot, slot + 1));
  }
  p.clip_scale(partials, io.norm, io.scale, updates_, config_.grad_clip);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    p.adamw({.w = table_.buffers[i].value,
             .g = gradients[i],
             .m = m_[i],
             .v = v_[i],
             .lr = io.adam_lr,
             .scale = io.scale,
             .updates = updates_,
             .beta1 = config_.adam_beta1,
             .beta2 = config_.adam_beta2,
             .eps = config_.adam_eps,
             // Embeddings and gains do not decay.
             .weight_decay = table_.buffers[i].kind == ParameterKind::matrix ? config_.weight_decay : 0});
  return io;
}

std::vector<Optimiser::StateTensor> Optimiser::state() const {
  std::vector<StateTensor> tensors;
  for (const Parameter& part : table_.parameters)
    for (std::size_t i = 0; i < table_.buffers.size(); ++i) {
      if (table_.buffers[i].value.place.buffer != part.view.place.buffer) continue;
      const auto of = [&](const Value& moment) {
        Value view = part.view;
        view.place.buffer = moment.place.buffer;
        return view;
      };
      tensors.push_back({"adam_m." + part.name, of(m_[i])});
      tensors.push_back({"adam_v." + part.name, of(v_[i])});
    }
  tensors.push_back({"updates", updates_});
  return tensors;
}

}  // namespace stacklab
