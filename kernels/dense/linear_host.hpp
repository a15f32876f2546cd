// SPDX-License-Identifier: Apache-2.0
// Linear layers on the host: oneDNN computes the products, and loops below do the rest. A call uses only the calling
// thread. Only for linear.cu.
#pragma once

#include <dnnl.h>

#include <cstring>

#include "kernels/base/check.hpp"
#include "kernels/dense/linear.hpp"
#include "kernels/dense/product.hpp"
#include "kernels/runtime/launch.hpp"

#if DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_OMP
#error "this oneDNN was built without OpenMP, so it cannot be limited to one thread: install libdnnl-dev"
#endif

// Functions of libgomp; clang does not find its header.
extern "C" int omp_get_max_threads(void) noexcept;
extern "C" void omp_set_num_threads(int threads) noexcept;

namespace gpups::kernels {

// Limits OpenMP to the calling thread for the lifetime of the object. More threads would use the cores that compute
// other microbatches, and the order of sums would depend on the number of threads.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(OneThread const&) = delete;
  OneThread& operator=(OneThread const&) = delete;

 private:
  int before_;
};

// Computes the product with oneDNN. Throws Error if oneDNN fails.
inline void multiply(MatrixProduct const& p) {
  GPUPS_ASSERT(p.fits());
  OneThread const one;
  auto const size = [](std::size_t n) { return static_cast<dnnl_dim_t>(n); };
  dnnl_status_t const status =
      dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', size(p.out.rows()), size(p.out.columns()),
                 size(p.inner()), 1.0F, p.a.data(), size(p.a.stride()), p.b.data(), size(p.b.stride()),
                 p.accumulate ? 1.0F : 0.0F, p.out.data(), size(p.out.stride()));
  GPUPS_REQUIRE(
      status == dnnl_success,
      "oneDNN rejected a product of ({}, {}) and ({}, {}) with status {} (a layer cannot be computed): if "
      "the status is 2 (out of memory), give the process more memory; otherwise use the version of oneDNN that "
      "tools/install_dependencies installs",
      p.out.rows(), p.inner(), p.inner(), p.out.columns(), static_cast<int>(status));
}

// Adds the bias, and sets negative values to zero. NaN stays NaN.
template <bool kBias, bool kRelu>
void finish_rows(MatrixView<float> out, float const* __restrict bias) {
  for (std::size_t i = 0; i < out.rows(); ++i) {
    float* const __restrict row = out.row(i);
    for (std::size_t j = 0; j < out.columns(); ++j) {
      float const x = kBias ? row[j] + bias[j] : row[j];
      row[j] = kRelu && x < 0.0F ? 0.0F : x;
    }
  }
}

inline void forward(HostExec, LinearForward const& g) {
  if (g.out.rows() == 0) return;
  multiply({.a = g.in, .transpose_a = false, .b = g.weights, .transpose_b = true, .out = g.out});
  if (!g.bias.empty()) {
    g.relu ? finish_rows<true, true>(g.out, g.bias.data()) : finish_rows<true, false>(g.out, g.bias.data());
  } else if (g.relu) {
    finish_rows<false, true>(g.out, nullptr);
  }
}

// Sets gradients to zero where the ReLU returned zero, and adds each column to its sum, in one pass.
template <bool kMask, bool kSum>
void mask_and_sum(MatrixView<float const> out, MatrixView<float> gradient, float* __restrict sums) {
  for (std::size_t i = 0; i < gradient.rows(); ++i) {
    float const* const __restrict value = kMask ? out.row(i) : nullptr;
    float* const __restrict row = gradient.row(i);
    for (std::size_t j = 0; j < gradient.columns(); ++j) {
      float x = row[j];
      if (kMask) row[j] = x = value[j] > 0.0F ? x : 0.0F;
      if (kSum) sums[j] += x;
    }
  }
}

// Applies the ReLU to out_gradient, and sums it into bias_gradient, if the layer has them.
inline void mask_and_sum(LinearBackward const& g) {
  float* const sums = g.bias_gradient.data();
  if (!g.bias_gradient.empty()) std::memset(sums, 0, g.bias_gradient.bytes());
  if (g.relu) {
    g.bias_gradient.empty() ? mask_and_sum<true, false>(g.out, g.out_gradient, nullptr)
                            : mask_and_sum<true, true>(g.out, g.out_gradient, sums);
  } else if (!g.bias_gradient.empty()) {
    mask_and_sum<false, true>({}, g.out_gradient, sums);
  }
}

inline void backward(HostExec, LinearBackward const& g) {
  mask_and_sum(g);
  if (g.in.columns() == 0) return;
  if (g.out_gradient.rows() == 0) {
    for (std::size_t k = 0; k < g.weights_gradient.rows(); ++k) {
      std::memset(g.weights_gradient.row(k), 0, g.weights_gradient.columns() * sizeof(float));
    }
    return;
  }
  multiply({.a = g.out_gradient, .transpose_a = true, .b = g.in, .transpose_b = false, .out = g.weights_gradient});
  if (g.in_gradient.data() == nullptr) return;
  multiply({.a = g.out_gradient,
            .transpose_a = false,
            .b = g.weights,
            .transpose_b = false,
            .out = g.in_gradient,
            .accumulate = g.accumulate});
}

}  // namespace gpups::kernels
