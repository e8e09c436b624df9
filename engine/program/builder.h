// Appends operations to a Program. One method per operation: it makes the result's buffer, asks the backend what it
// wants beside the operands, and records the operation. A call whose shapes do not fit is a mistake in model code and
// throws std::logic_error.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "engine/program/program.h"
#include "kernels/backend.h"

namespace stacklab {

// What a Program does with the gradients of parameters.
enum class Gradients {
  none,        // forward only
  step,        // step buffers, written in this Program and used up in it
  assign,      // persistent: the first micro-batch of a step
  accumulate,  // persistent: the following ones
};

class Builder {
 public:
  // backend must outlive the Builder; a Program may be built for a device that is not there.
  Builder(ProgramSet& set, const Backend& backend, std::string program_name, Gradients gradients);
  // Closes the last segment. Must be called once; the Program is complete then.
  int finish();

  void segment(std::string name);
  // Names the part of the model that the following operations belong to.
  void scope(std::string label) { label_ = recomputing_ ? std::move(label) + " again" : std::move(label); }
  // Whether what follows was computed before in this Program, and is computed again instead of being kept.
  void recomputing(bool on) { recomputing_ = on; }

  // Buffers. Inputs are written by the host before the Program starts, or between segments; outputs are read from the
  // end of the segment that writes them until the step arena's next Program.
  Value input(std::string name, DType dtype, Shape shape);
  Value output(std::string name, DType dtype, Shape shape);

  // Where the gradient of a parameter goes, and whether this contribution assigns or accumulates; not present for a
  // frozen one.
  GradView grad(const Value& parameter);
  void freeze(const Value& parameter) { frozen_[parameter.place.buffer] = true; }
  // The finished gradient, for the optimiser. Not present when nothing contributed.
  Value gradient(const Value& parameter) const;

  struct Product {
    Value y, saved;
  };
  struct Attended {
    Value out, lse, saved;
  };

  Value embedding(const Value& ids, const Value& table);
  void embedding_backward(const Value& ids, const Value& dx, const Value& table);

  // y = rmsnorm(x) gain w^T: [T, N]
  Product norm_matmul(const Value& x, const Value& gain, const Value& w, double eps);
  // Adds to dx, the gradient of the residual stream.
  void norm_matmul_backward(const Value& dy, const Value& x, const Value& gain, const Value& w, const Product& forward,
                            double eps, const Value& dx);

  // max_logit: [Hq], a row of the output that collects them
  Attended attention(const Value& qkv, const Value& q_gain, const Value& k_gain, const Value& positions,
                     const Value& cu_seqlens, const AttentionShape& shape, const Value& max_logit);
  Value attention_backward(const Value& dout, const Value& qkv, const Value& q_gain, const Value& k_gain,
                           const Value& positions, const Value& cu_seqlens, const AttentionShape& shape,
                           const Attended& forward);

  // x + a w^T
  Value project_add(const Value& a, const Value& w, const Value& x);
  // The gradient of a; that of x is dout itself.
  Value project_add_backward(const Value& dout, const Value& a, const Value& w);

  // y = silu(gate) * up of the normalised x: [T, F]
  Product norm_swiglu(const Value& x, const Value& gain, const Value& w_gate_up, double eps);
  // Gradients of x + y w^T: that of x is dout itself, that of y goes on to norm_swiglu_backward within what forward
  // saved. again: y is not kept for this, but made again.
  void swiglu_project_backward(const Value& dout, const Product& forward, const Value& w, bool again);
  void norm_swiglu_backward(const Value& x, const Value& gain, const Value& w_gate_up, const Product& forward,
                            double eps, const Value& dx);

  Value logits(const Value& x, const Value& gain, const Value& w, double eps, double soft_cap);

  struct HeadOptions {
    std::int64_t chunk = 0;  // tokens
    double eps = 0, soft_cap = 0, z_coef = 0;
  };
  // Writes sums (an output); returns the gradient of x, not present when the Program has no gradients.
  Value loss_head(const Value& x, const Value& gain, const Value& w, const Value& targets, const Value& coefficients,
                  const Value& sums, const HeadOptions& options);

  void sum_squares(const Value& g, const Value& out);
  void clip_scale(const Value& partials, const Value& norm, const Value& scale, const Value& updates, double max_norm);
  void adamw(op::AdamW operation);
  void adamw_compact(op::AdamWCompact operation);
  // to = from in the type of to
  void cast(const Value& from, const Value& to);
  void muon(op::Muon operation);
  void qk_clip_heads(op::QkClipHeads operation);
  void qk_clip_gains(op::QkClipGains operation);

  // A step buffer that no other method makes.
  Value scratch_value(std::string name, BufferClass cls, DType dtype, Shape shape);

 private:
  Value step_buffer(std::string name, BufferClass cls, DType dtype, Shape shape);
  Value activation(std::string_view name, DType dtype, Shape shape);
  // Gives the operation its workspace and what it saves, if it has such operands, and records it. Returns what it
  // saves.
  template <class AnyOp>
  Value append(AnyOp operation);

  ProgramSet& set_;
  const Backend& backend_;
  int index_;
  Program program_;
  std::string label_;
  bool recomputing_ = false;
  Gradients gradients_;
  std::map<std::int32_t, Value> gradient_of_;  // by the parameter's buffer
  std::map<std::int32_t, bool> frozen_;
};

}  // namespace stacklab
