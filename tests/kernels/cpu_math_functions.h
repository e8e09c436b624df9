// The vector functions of math-inl.h as plain ones, on the instruction set in use.
#pragma once

#include <cstdint>

namespace stacklab::test {

enum class Function { exp, sigmoid, silu_slope, tanh, log };
void apply(Function f, const float* x, float* y, std::int64_t n);
void sin_cos(const double* x, double* sine, double* cosine, std::int64_t n);

}  // namespace stacklab::test
