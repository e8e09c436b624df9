#include "engine/program/builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

namespace stacklab {
namespace {

template <class T>
concept HasWorkspace = requires(T& o) {
  o.workspace;
};
// Forward saves; backward is given what was saved.
template <class T>
concept Saves = requires(T& o) {
  o.saved;
}
&&(std::is_same_v<T, op::NormMatmul> || std::is_same_v<T, op::Attention> || std::is_same_v<T, op::NormSwiglu>);

std::string shape_text(const TensorView& v) {
  std::string text = std::string(name_of(v.dtype)) + " [";
  for (int i = 0; i < v.shape.rank; ++i) text += fmt::format("{}{}", i ? ", " : "", v.shape[i]);
  return text + "]";
}

[[noreturn]] void reject(const Op& operation, const std::string& label, const std::string& why) {
  std::string text = fmt::format("[{}] in {}: {}", name_of(operation), label, why);
  for_each_operand(operation, [&](std::string_view operand, const TensorView& v, Access) {
    text += fmt::format("; {} {}", operand, shape_text(v));
  });
  throw std::logic_error(text);
}

}  // namespace

Builder::Builder(ProgramSet& set, const Backend& backend, std::string program_name, Gradients gradients)
    : set_(set), backend_(backend), index_(static_cast<int>(set.programs_.size())), gradients_(gradients) {
  program_.name = std::move(program_name);
}

int Builder::finish() {
  const int count = static_cast<int>(program_.ops.size());
  if (!program_.segments.empty()) program_.segments.back().end = count;
  for (Buffer& b : set_.buffers_) {
    if (b.storage != Storage::step || b.program != index_) continue;
    if (b.cls == BufferClass::input) b.first_use = 0;
    if (b.cls == BufferClass::output) b.last_use = count - 1;
  }
  set_.programs_.push_back(std::move(program_));
  return index_;
}

void Builder::segment(std::string name) {
  const int here = static_cast<int>(program_.ops.size());
  if (!program_.segments.empty()) program_.segments.back().end = here;
  program_.segments.push_back({std::move(name), here, here});
}

Value Builder::step_buffer(std::string name, BufferClass cls, DType dtype, Shape shape) {
  return set_.add_buffer({.name = std::move(name),
                          .cls = cls,
                          .storage = Storage::step,
                          .dtype = dtype,
                          .shape = shape,
                          .program = index_});
}

Value Builder::input(std::string name, DType dtype, Shape shape) {
  return step_buffer(std::move(name), BufferClass::input, dtype, shape);
}

Value Builder::output(std::string name, DType dtype, Shape shape) {
  return step_buffer(std::move(name), BufferClass::output, dtype, shape);
}

Value Builder::scratch_value(std::string name, BufferClass cls, DType dtype, Shape shape) {
  return step_buffer(std::move(name), cls, dtype, shape);
}

Value Builder::activation(std::string_view name, DType dtype, Shape shape) {
  return step_buffer(label_.empty() ? std::string(name) : label_ + "." + std::string(name), BufferClass::activation,
                     dtype, shape);
}

GradView Builder::grad(const Value& parameter) {
  const std::int32_t root = parameter.place.buffer;
  if (gradients_ == Gradients::none || frozen_.contains(root)) return {};
  const auto known = gradient_of_.find(root);
  if (known != gradient_of_.end()) return {known->second, true};
  const Buffer& owner = set_.buffers_[static_cast<std::size_t>(root)];
  const std::string name = owner.name + ".grad";
  Value g;
  if (gradients_ == Gradients::step) {
    g = step_buffer(name, BufferClass::gradient, real_of(owner.dtype), owner.shape);
  } else {
    const auto at = std::find_if(set_.buffers_.begin(), set_.buffers_.end(), [&](const Buffer& b) {
      return b.storage == Storage::persistent && b.cls == BufferClass::gradient && b.name == name;
    });
    if (at == set_.buffers_.end()) {
      g = set_.persistent(name, BufferClass::gradient, real_of(owner.dtype), owner.shape);
    } else {
      g.dtype = at->dtype, g.shape = at->shape;
      g.place = {static_cast<std::int32_t>(at - set_.buffers_.begin()), 0};
    }
  }
  gradient_of_.emplace(root, g);
  return {g, gradients_ == Gradients::accumulate};
}

Value Builder::gradient(const Value& parameter) const {
  const auto known = gradient_of_.find(parameter.place.buffer);
  return known == gradient_of_.end() ? Value{} : known->second;
}

template <class AnyOp>
Value Builder::append(AnyOp operation) {
  const Needs needs = backend_.needs(Op(operation));
  Value saved;
  if constexpr (Saves<AnyOp>) {
    if (needs.saved > 0)
      saved = operation.saved = activation(std::string(AnyOp::name) + ".saved", DType::u8, {needs.saved});
  }
  if constexpr (HasWorkspace<AnyOp>) {
    if (needs.workspace > 0)
      operation.workspace = step_buffer(fmt::format("{}.{}.workspace", label_, AnyOp::name), BufferClass::workspace,
                                        DType::u8, {needs.workspace});
  }
  const Op record = operation;
  if (const char* why = check(record)) reject(record, label_, why);
  const int here = static_cast<int>(program_.ops.size());
  for_each_operand(record, [&](std::string_view operand, const TensorView& v, Access) {
    if (v.place.buffer < 0) reject(record, label_, std::string(operand) + " has no buffer");
    Buffer& b = set_.buffers_[static_cast<std::size_t>(v.place.buffer)];
    if (b.storage != Storage::step) return;
    if (b.program != index_) reject(record, label_, std::string(operand) + " belongs to another Program");
    if (b.first_use < 0) b.first_use = here;
    b.last_use = here;
  });
  program_.ops.push_back({record, label_});
  return saved;
}

Value Builder::embedding(const Value& ids, const Value& table) {
  const Value x = activation("x", real_of(table.dtype), {ids.rows(), table.cols()});
  append(op::Embedding{.ids = ids, .table = table, .x = x});
  return x;
}

void Builder::embedding_backward(const Value& ids, const Value& dx, const Value& table) {
  const GradView dtable = grad(table);
  if (dtable.present()) append(op::EmbeddingBackward{.ids = ids, .dx = dx, .dtable = dtable});
}

Builder::Product Builder::norm_matmul(const Value& x, const Value& gain, const Value& w, double eps) {
  Product out;
  out.y = activation("norm_matmul", w.dtype, {x.rows(), w.rows()});
  out.saved =
      append(op::NormMatmul{.x = x, .gain = gain, .w = w, .y = out.y, .saved = {}, .workspace = {}, .eps = eps});
  return out;
}

void Builder::norm_matmul_backward(const Value& dy, const Value& x, const Value& gain, const Value& w,
                                   const Product& forward, double eps, const Value& dx) {
  append(op::NormMatmulBackward{.dy = dy,
                                .x = x,
                                .gain = gain,
                                .w = w,
                                .saved = forward.saved,
                                .dx = {dx, true},
                                .dgain = grad(gain),
                                .dw = grad(w),
                                .workspace = {},
                                .eps = eps});
}

Builder::Attended Builder::attention(const Value& qkv, const Value& q_gain, const Value& k_gain, const Value& positions,
                                     const Value& cu_seqlens, const AttentionShape& shape, const Value& max_logit) {
  Attended a;
  a.out = activation("attention", qkv.dtype, {qkv.rows(), shape.n_heads * shape.head_dim});
  a.lse = activation("lse", real_of(qkv.dtype), {qkv.rows(), shape.n_heads});
  a.saved = append(op::Attention{.qkv = qkv,
                                 .q_gain = q_gain,
                                 .k_gain = k_gain,
                                 .positions = positions,
                                 .cu_seqlens = cu_seqlens,
                                 .out = a.out,
                                 .lse = a.lse,
                                 .max_logit = max_logit,
                                 .saved = {},
                                 .workspace = {},
                                 .shape = shape});
  return a;
}

Value Builder::attention_backward(const Value& dout, const Value& qkv, const Value& q_gain, const Value& k_gain,
                                  const Value& positions, const Value& cu_seqlens, const AttentionShape& shape,
                                  const Attended& forward) {
  const Value dqkv = activation("attention.grad", qkv.dtype, qkv.shape);
  append(op::AttentionBackward{.dout = dout,
                               .qkv = qkv,
                               .q_gain = q_gain,
                               .k_gain = k_gain,
                               .positions = positions,
                               .cu_seqlens = cu_seqlens,
                               .out = forward.out,
                               .lse = forward.lse,
                               .saved = forward.saved,
                               .dqkv = dqkv,
                               .dq_gain = q_gain.present() ? grad(q_gain) : GradView{},
                               .dk_gain = k_gain.present() ? grad(k_gain) : GradView{},
                               .workspace = {},
                               .shape = shape});
  return dqkv;
}

Value Builder::project_add(const Value& a, const Value& w, const Value& x) {
  const Value out = activation("project_add", x.dtype, x.shape);
  append(op::ProjectAdd{.a = a, .w = w, .x = x, .out = out});
  return out;
}

Value Builder::project_add_backward(const Value& dout, const Value& a, const Value& w) {
  const Value da = activation("project_add.grad", a.dtype, a.shape);
  append(op::ProjectAddBackward{.dout = dout, .a = a, .w = w, .da = da, .dw = grad(w)});
  return da;
}

Builder::Product Builder::norm_swiglu(const Value& x, const Value& gain, const Value& w_gate_up, double eps) {
  Product out;
  out.y = activation("swiglu", w_gate_up.dtype, {x.rows(), w_gate_up.rows() / 2});
  out.saved = append(op::NormSwiglu{
      .x = x, .gain = gain, .w_gate_up = w_gate_up, .u = out.y, .saved = {}, .workspace = {}, .eps = eps});
  return out;
}

void Builder::swiglu_project_backward(const Value& dout, const Product& forward, const Value& w, bool again) {
  append(op::SwigluProjectBackward{.dout = dout,
                                   .w = w,
                                   .u = again ? Value{} : forward.y,
                                   .saved = forward.saved,
                                   .dw = grad(w),
                                   .workspace = {},
                                   .u_type = forward.y.dtype});
}

void Builder::norm_swiglu_backward(const Value& x, const Value& gain, const Value& w_gate_up, const Product& forward,
                                   double eps, const Value& dx) {
  append(op::NormSwigluBackward{.x = x,
                                .gain = gain,
                                .w_gate_up = w_gate_up,
                                .saved = forward.saved,
                                .dx = {dx, true},
                                .dgain = grad(gain),
                                .dw = grad(w_gate_up),
                                .workspace = {},
                                .eps = eps});
}

Value Builder::logits(const Value& x, const Value& gain, const Value& w, double eps, double soft_cap) {
  const Value out = output("logits", x.dtype, {x.rows(), w.rows()});
  append(op::Logits{.x = x, .gain = gain, .w = w, .logits = out, .workspace = {}, .eps = eps, .soft_cap = soft_cap});
  return out;
}

Value Builder::loss_head(const Value& x, const Value& gain, const Value& w, const Value& targets,
                         const Value& coefficients, const Value& sums, const HeadOptions& options) {
  Value dx;
  if (gradients_ != Gradients::none) dx = activation("x.grad", x.dtype, x.shape);
  append(op::LossHead{.x = x,
                      .gain = gain,
                      .w = w,
                      .targets = targets,
                      .coefficients = coefficients,
                      .sums = sums,
                      .dx = dx,
                      .dgain = grad(gain),
                      .dw = grad(w),
                      .workspace = {},
                      .chunk = options.chunk,
                      .eps = options.eps,
                      .soft_cap = options.soft_cap,
                      .z_coef = options.z_coef});
  return dx;
}

void Builder::sum_squares(const Value& g, const Value& out) { append(op::SumSquares{.g = g, .out = out}); }

void Builder::clip_scale(const Value& partials, const Value& norm, const Value& scale, const Value& updates,
                         double max_norm) {
  append(op::ClipScale{.partials = partials, .norm = norm, .scale = scale, .updates = updates, .max_norm = max_norm});
}

void Builder::adamw(op::AdamW operation) { append(operation); }
void Builder::adamw_compact(op::AdamWCompact operation) { append(operation); }
void Builder::cast(const Value& from, const Value& to) { append(op::Cast{.from = from, .to = to}); }
void Builder::muon(op::Muon operation) { append(operation); }
void Builder::qk_clip_heads(op::QkClipHeads operation) { append(operation); }
void Builder::qk_clip_gains(op::QkClipGains operation) { append(operation); }

}  // namespace stacklab
