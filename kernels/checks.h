// What the checks of operations ask of an operand.
#pragma once

#include "kernels/tensor_view.h"

namespace stacklab {

inline bool is(const TensorView& v, DType t, const Shape& s) { return v.dtype == t && v.shape == s; }
inline bool is_real(const TensorView& v) { return v.dtype == DType::f32 || v.dtype == DType::f64; }
// Kept in the type that is computed in, or in bf16 beside f32.
inline bool is_stored(DType t, DType real) { return t == real || (t == DType::bf16 && real == DType::f32); }
inline bool is_stored(const TensorView& v, DType real, const Shape& s) {
  return is_stored(v.dtype, real) && v.shape == s;
}
// A gradient that is frozen fits anything.
inline bool fits(const GradView& g, DType t, const Shape& s) { return !g.present() || is(g.view, t, s); }
inline bool is_scalar(const TensorView& v) { return is(v, DType::f64, Shape{1}); }

}  // namespace stacklab
