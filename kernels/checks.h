// What the checks of operations ask of an operand.
#pragma once

#include "kernels/tensor_view.h"

namespace stacklab {

inline bool is(const TensorView& v, DType t, const Shape& s) { return v.dtype == t && v.shape == s; }
inline bool is_real(const TensorView& v) { return v.dtype == DType::f32 || v.dtype == DType::f64; }
// A gradient that is frozen fits anything.
inline bool fits(const GradView& g, DType t, const Shape& s) { return !g.present() || is(g.view, t, s); }
inline bool is_scalar(const TensorView& v) { return is(v, DType::f64, Shape{1}); }

}  // namespace stacklab
