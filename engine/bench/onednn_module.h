// What stacklab_onednn.so offers. Plain C: it is looked up by name.
#pragma once

#include <cstdint>

extern "C" {

// "2.6.3"
const char* stacklab_onednn_version();
// Once, before the first product: threads, and 1 to use nothing wider than AVX2.
void stacklab_onednn_begin(int threads, int only_avx2);
// C = A B, row-major; transposed: A is given as [K, M], B as [N, K].
void stacklab_onednn_sgemm(int a_transposed, int b_transposed, std::int64_t m, std::int64_t n, std::int64_t k,
                           const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c);
}
