// SPDX-License-Identifier: Apache-2.0
// cuBLASLt for one stream: its handle, its workspace, and one algorithm for each shape, chosen once. For device objects
// only.
//
// Numbers are multiplied as they are (no TF32), and partial sums are never added in an order of chance: the same shapes
// and values give the same bits on the same kind of GPU with the same version of the library.
#pragma once

#include <cublasLt.h>

#include <array>
#include <map>

#include "gpups/array.hpp"
#include "kernels/cuda_runtime.hpp"
#include "kernels/dense/product.hpp"
#include "kernels/space.hpp"

namespace gpups::kernels {

class Cublas {
 public:
  // The one of a stream, made at its first use.
  static Cublas& of(DeviceExec ex);

  Cublas(Device device, cudaStream_t stream);
  ~Cublas();
  Cublas(Cublas const&) = delete;
  Cublas& operator=(Cublas const&) = delete;

  // Queues the product, and what the epilogue does with `bias`, (columns).
  void multiply(MatrixProduct const& product, cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT,
                float const* bias = nullptr);

 private:
  struct Plan;
  // Everything that an algorithm is chosen by: sizes, strides, transpositions, epilogue, accumulation.
  using Shape = std::array<std::size_t, 10>;
  Plan make_plan(MatrixProduct const& product, cublasLtEpilogue_t epilogue, float const* bias) const;

  cudaStream_t stream_;
  cublasLtHandle_t handle_ = nullptr;
  Array<std::byte> workspace_;
  std::map<Shape, Plan> plans_;
};

}  // namespace gpups::kernels
