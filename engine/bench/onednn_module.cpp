// A library of its own, so that the program starts without oneDNN and OpenMP.
#include "engine/bench/onednn_module.h"

#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <string>

const char* stacklab_onednn_version() {
  static const std::string text = [] {
    const dnnl::version_t* v = dnnl::version();
    return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  }();
  return text.c_str();
}

void stacklab_onednn_begin(int threads, int only_avx2) {
  if (only_avx2 != 0) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
  omp_set_num_threads(threads);
}

void stacklab_onednn_sgemm(int a_transposed, int b_transposed, std::int64_t m, std::int64_t n, std::int64_t k,
                           const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c) {
  dnnl_sgemm(a_transposed != 0 ? 'T' : 'N', b_transposed != 0 ? 'T' : 'N', m, n, k, 1, a, lda, b, ldb, 0, c, n);
}
