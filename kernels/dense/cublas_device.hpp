// SPDX-License-Identifier: Apache-2.0
// cuBLASLt for one stream: its handle, its workspace, and one algorithm for each shape, which is selected at the first
// use of the shape. For device objects only.
//
// Inputs are rounded as ProductPrecision says, and the order of all sums is fixed: equal shapes and values give equal
// bits on GPUs of one kind with one version of the library.
#pragma once

#include <cublasLt.h>

#include <array>
#include <map>

#include "gpups/array.hpp"
#include "kernels/dense/product.hpp"
#include "kernels/runtime/cuda_runtime.hpp"
#include "kernels/runtime/space.hpp"

namespace gpups::kernels {

// The products of one stream. For one thread at a time, as the stream itself.
class Cublas {
 public:
  // Returns the object of a stream, and creates it at the first call.
  static Cublas& of(DeviceExec ex);

  Cublas(Device device, cudaStream_t stream, StreamCounters* counters);
  // Blocks until the stream is done, since it may still use the workspace.
  ~Cublas();
  Cublas(Cublas const&) = delete;
  Cublas& operator=(Cublas const&) = delete;

  // Queues the product and the epilogue, which may use `bias`, (columns). Throws Error if the library cannot compute
  // it.
  void multiply(MatrixProduct const& product, cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT,
                float const* bias = nullptr);

 private:
  struct Plan;
  // All inputs of the selection of an algorithm: sizes, strides, transpositions, epilogue, accumulation, precision.
  using Shape = std::array<std::size_t, 11>;
  Plan make_plan(MatrixProduct const& product, cublasLtEpilogue_t epilogue, float const* bias) const;

  cudaStream_t stream_;
  StreamCounters* counters_;  // of the stream
  cublasLtHandle_t handle_ = nullptr;
  Array<std::byte> workspace_;
  std::map<Shape, Plan> plans_;
};

}  // namespace gpups::kernels
