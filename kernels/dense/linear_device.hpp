// SPDX-License-Identifier: Apache-2.0
// Linear layers on a GPU: cuBLASLt computes the products, with bias and ReLU in the same pass; a kernel of gpups sums
// the gradient of the bias. Only for linear.cu.
#pragma once

#include "kernels/dense/cublas_device.hpp"
#include "kernels/dense/linear.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

inline void forward(DeviceExec ex, LinearForward const& g) {
  if (g.out.rows() == 0) return;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  if (g.bias.empty()) {
    if (g.relu) epilogue = CUBLASLT_EPILOGUE_RELU;
  } else {
    epilogue = g.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  }
  Cublas::of(ex).multiply(
      {.a = g.in, .transpose_a = false, .b = g.weights, .transpose_b = true, .out = g.out, .precision = g.precision},
      epilogue, g.bias.data());
}

// Sets the gradients of 16 columns to zero where the ReLU returned zero, and sums the columns into the bias gradient.
// Each team of the block sums every n-th row; then the sums of the teams are added in a fixed tree.
__device__ inline void mask_and_sum(LinearBackward const& g, std::size_t first) {
  __shared__ float share[kBlockThreadsMax];
  std::size_t const j = first + threadIdx.x % kLanes;
  float sum = 0;
  if (j < g.out_gradient.columns()) {
    for (std::size_t i = threadIdx.x / kLanes; i < g.out_gradient.rows(); i += kBlockThreadsMax / kLanes) {
      float gradient = g.out_gradient.row(i)[j];
      if (g.relu) {  // stores unchanged gradients too: almost every sector has one that changes
        gradient = g.out.row(i)[j] > 0.0F ? gradient : 0.0F;
        g.out_gradient.row(i)[j] = gradient;
      }
      sum += gradient;
    }
  }
  share[threadIdx.x] = sum;
  for (unsigned half = kBlockThreadsMax / 2; half >= kLanes; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) share[threadIdx.x] += share[threadIdx.x + half];
  }
  if (threadIdx.x < kLanes && j < g.bias_gradient.size()) g.bias_gradient[j] = share[threadIdx.x];
  __syncthreads();
}

inline void backward(DeviceExec ex, LinearBackward const& g) {
  std::size_t const inputs = g.weights.columns(), outputs = g.weights.rows();
  if (g.relu || !g.bias_gradient.empty()) {
    each_block(ex, (outputs + kLanes - 1) / kLanes,
               [g] GPUPS_FN(std::size_t chunk) { mask_and_sum(g, chunk * kLanes); });
  }
  if (inputs == 0) return;
  if (g.out_gradient.rows() == 0) {
    each(ex, outputs * inputs,
         [g, inputs] GPUPS_FN(std::size_t e) { g.weights_gradient.row(e / inputs)[e % inputs] = 0.0F; });
    return;
  }
  Cublas& cublas = Cublas::of(ex);
  cublas.multiply({.a = g.out_gradient,
                   .transpose_a = true,
                   .b = g.in,
                   .transpose_b = false,
                   .out = g.weights_gradient,
                   .precision = g.precision});
  if (g.in_gradient.data() == nullptr) return;
  cublas.multiply({.a = g.out_gradient,
                   .transpose_a = false,
                   .b = g.weights,
                   .transpose_b = false,
                   .out = g.in_gradient,
                   .accumulate = g.accumulate,
                   .precision = g.precision});
}

}  // namespace gpups::kernels
