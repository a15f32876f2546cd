// SPDX-License-Identifier: Apache-2.0
// cuBLASLt, as far as dense layers use it: products of column-major matrices of floats, with the epilogues for a bias,
// a rectifier, and gradients of a bias.
#include <cublasLt.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/emulator/machine/device_memory.hpp"
#include "tests/emulator/ptx/program.hpp"
#include "tests/emulator/runtime/state.hpp"

namespace gpups::emulator {
namespace {

struct Layout {
  std::uint64_t rows, columns;
  std::int64_t stride;  // elements between columns
};

constexpr int kFloatBits = 24, kTf32Bits = 11, kBFloat16Bits = 8;  // significant ones, of factors

struct Description {
  int bits = kFloatBits;
  bool transposes_a = false, transposes_b = false;
  int epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float* bias = nullptr;

  bool has(int flag) const { return (epilogue & flag) == flag && epilogue != CUBLASLT_EPILOGUE_DEFAULT; }
};

// A matrix in device memory, and its transpose.
template <class T>
struct Operand {
  T* data;
  Layout layout;
  bool transposed = false;

  std::uint64_t rows() const { return transposed ? layout.columns : layout.rows; }
  std::uint64_t columns() const { return transposed ? layout.rows : layout.columns; }
  T& at(std::uint64_t row, std::uint64_t column) const {
    auto const stride = static_cast<std::uint64_t>(layout.stride);
    return transposed ? data[row * stride + column] : data[column * stride + row];
  }
  void check() const {
    if (layout.rows == 0 || layout.columns == 0) return;
    std::uint64_t const elements = (layout.columns - 1) * static_cast<std::uint64_t>(layout.stride) + layout.rows;
    auto const found = find_allocation(data, elements * sizeof(T));
    if (!found || found->kind != MemoryKind::kDevice) {
      throw KernelError{cudaErrorIllegalAddress, "an operand of a product is out of bounds, " + describe_address(data)};
    }
  }
};

struct Product {
  Description how;
  float alpha, beta;
  Operand<float const> a, b;
  Operand<float> result;

  void run() const {
    a.check(), b.check(), result.check();
    if (b.rows() != a.columns() || result.rows() != a.rows() || result.columns() != b.columns()) {
      throw KernelError{cudaErrorInvalidValue, "the operands of a product have shapes that do not fit"};
    }
    for (std::uint64_t column = 0; column < result.columns(); ++column) {
      for (std::uint64_t row = 0; row < result.rows(); ++row) result.at(row, column) = element(row, column);
    }
    if (how.has(CUBLASLT_EPILOGUE_BGRADA)) write_sums_of_a();
    if (how.has(CUBLASLT_EPILOGUE_BGRADB)) write_sums_of_b();
  }

 private:
  // Rounds to the nearest number with how.bits significant bits, to even ones in the middle.
  float rounded(float value) const {
    if (how.bits == kFloatBits || !std::isfinite(value)) return value;
    std::uint32_t const dropped = static_cast<std::uint32_t>(kFloatBits - how.bits),
                        bits = std::bit_cast<std::uint32_t>(value);
    std::uint32_t const half = (1U << (dropped - 1)) - 1 + (bits >> dropped & 1U);
    return std::bit_cast<float>((bits + half) >> dropped << dropped);
  }
  float element(std::uint64_t row, std::uint64_t column) const {
    float sum = 0;
    for (std::uint64_t k = 0; k < a.columns(); ++k)
      sum = std::fma(rounded(a.at(row, k)), rounded(b.at(k, column)), sum);
    sum *= alpha;
    if (beta != 0) sum += beta * result.at(row, column);
    if (how.has(CUBLASLT_EPILOGUE_BIAS)) sum += how.bias[row];
    if (how.has(CUBLASLT_EPILOGUE_RELU) && !(sum > 0)) sum = 0;
    return sum;
  }
  void write_sums_of_a() const {
    for (std::uint64_t row = 0; row < a.rows(); ++row) {
      float sum = 0;
      for (std::uint64_t k = 0; k < a.columns(); ++k) sum += a.at(row, k);
      how.bias[row] = sum;
    }
  }
  void write_sums_of_b() const {
    for (std::uint64_t column = 0; column < b.columns(); ++column) {
      float sum = 0;
      for (std::uint64_t k = 0; k < b.rows(); ++k) sum += b.at(k, column);
      how.bias[column] = sum;
    }
  }
};

Layout const& layout_of(cublasLtMatrixLayout_t layout) { return *reinterpret_cast<Layout const*>(layout); }

}  // namespace
}  // namespace gpups::emulator

using namespace gpups::emulator;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static int none;
  *handle = reinterpret_cast<cublasLtHandle_t>(&none);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
char const* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "an error";
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t stride) {
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{rows, columns, stride});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete &layout_of(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t type, cudaDataType_t) {
  auto* const how = new Description;
  how->bits = type == CUBLAS_COMPUTE_32F_FAST_TF32   ? kTf32Bits
              : type == CUBLAS_COMPUTE_32F_FAST_16BF ? kBFloat16Bits
                                                     : kFloatBits;
  *description = reinterpret_cast<cublasLtMatmulDesc_t>(how);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete reinterpret_cast<Description*>(description);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute, void const* value,
                                              std::size_t) {
  auto& how = *reinterpret_cast<Description*>(description);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      how.transposes_a = *static_cast<int const*>(value) != CUBLAS_OP_N;
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      how.transposes_b = *static_cast<int const*>(value) != CUBLAS_OP_N;
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      how.epilogue = *static_cast<int const*>(value);
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      how.bias = *static_cast<float* const*>(value);
      return CUBLAS_STATUS_SUCCESS;
    default:
      report(cudaErrorInvalidValue, "cublasLt has an attribute of a product that the emulator does not know");
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  static int none;
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(&none);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                    void const*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  results[0] = {};
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, void const* alpha, void const* a,
                              cublasLtMatrixLayout_t a_layout, void const* b, cublasLtMatrixLayout_t b_layout,
                              void const* beta, void const*, cublasLtMatrixLayout_t, void* result,
                              cublasLtMatrixLayout_t result_layout, cublasLtMatmulAlgo_t const*, void*, std::size_t,
                              cudaStream_t stream) {
  RuntimeLock const lock(runtime_mutex());
  Description const how = *reinterpret_cast<Description*>(description);
  Product const product{.how = how,
                        .alpha = *static_cast<float const*>(alpha),
                        .beta = *static_cast<float const*>(beta),
                        .a = {static_cast<float const*>(a), layout_of(a_layout), how.transposes_a},
                        .b = {static_cast<float const*>(b), layout_of(b_layout), how.transposes_b},
                        .result = {static_cast<float*>(result), layout_of(result_layout)}};
  enqueue(stream, [product] { product.run(); });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
