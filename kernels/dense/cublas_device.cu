// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense/cublas_device.hpp"

#include <memory>
#include <string>

#include "gpups/error.hpp"
#include "kernels/base/assert.hpp"

namespace gpups::kernels {
namespace {

void check_cublas(cublasStatus_t status, char const* doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(std::string("cuBLASLt failed with '") + cublasLtGetStatusString(status) + "' (while " + doing +
              "): check that the driver supports this version of CUDA, and that the device has free memory");
}

// Owns a descriptor of the library; each kind has its own C function that destroys it.
template <class T, cublasStatus_t (*kDestroy)(T)>
struct Destroy {
  using pointer = T;
  void operator()(T descriptor) const { (void)kDestroy(descriptor); }
};
template <class T, cublasStatus_t (*kDestroy)(T)>
using Owned = std::unique_ptr<T, Destroy<T, kDestroy>>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Operation = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

// Returns the layout of a matrix. The library stores matrices by columns, so it sees the transpose of our matrix of
// rows.
Layout layout_of(MatrixView<float const> matrix) {
  cublasLtMatrixLayout_t layout = nullptr;
  check_cublas(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, matrix.columns(), matrix.rows(),
                                          static_cast<std::int64_t>(matrix.stride())),
               "describing a matrix");
  return Layout(layout);
}

template <class T>
void set(Operation const& operation, cublasLtMatmulDescAttributes_t attribute, T value) {
  check_cublas(cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof value),
               "describing a product");
}

template <class T>
void set(Preference const& preference, cublasLtMatmulPreferenceAttributes_t attribute, T value) {
  check_cublas(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
               "setting the limits of the selection of an algorithm");
}

cublasComputeType_t compute_type(ProductPrecision precision) {
  switch (precision) {
    case ProductPrecision::kTf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case ProductPrecision::kBFloat16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
    default:
      return CUBLAS_COMPUTE_32F;
  }
}

Operation operation_of(MatrixProduct const& p, cublasLtEpilogue_t epilogue) {
  cublasLtMatmulDesc_t made = nullptr;
  check_cublas(cublasLtMatmulDescCreate(&made, compute_type(p.precision), CUDA_R_32F), "describing a product");
  Operation operation(made);
  // out^T = b^T a^T, so the library's first factor is b.
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  return operation;
}

// The alignment of rows of matrices that callers guarantee, in bytes.
constexpr std::uint32_t kRowAlignment = 16;

Preference preference_of(std::size_t workspace_bytes, std::uint32_t out_alignment) {
  cublasLtMatmulPreference_t made = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&made), "setting the limits of the selection of an algorithm");
  Preference preference(made);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  for (auto const in : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES}) {
    set(preference, in, kRowAlignment);
  }
  for (auto const out : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(preference, out, out_alignment);
  }
  return preference;
}

// The size that NVIDIA recommends for Hopper and later; older devices need less.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

}  // namespace

struct Cublas::Plan {
  Operation operation;
  Layout a, b, out;
  cublasLtMatmulAlgo_t algorithm;
};

Cublas::Cublas(Device device, cudaStream_t stream, StreamCounters* counters)
    : stream_(stream), counters_(counters), workspace_(device, kWorkspaceBytes) {
  check_cublas(cublasLtCreate(&handle_), "creating a handle");
}

Cublas::~Cublas() {
  (void)cudaStreamSynchronize(stream_);  // the workspace may be in use
  plans_.clear();
  (void)cublasLtDestroy(handle_);
}

Cublas::Plan Cublas::make_plan(MatrixProduct const& p, cublasLtEpilogue_t epilogue, float const* bias) const {
  Plan plan{operation_of(p, epilogue), layout_of(p.a), layout_of(p.b), layout_of(p.out), {}};
  if (bias != nullptr) set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  Preference const preference =
      preference_of(workspace_.size(), p.out.columns() == 1 ? std::uint32_t{sizeof(float)} : kRowAlignment);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  check_cublas(cublasLtMatmulAlgoGetHeuristic(handle_, plan.operation.get(), plan.b.get(), plan.a.get(), plan.out.get(),
                                              plan.out.get(), preference.get(), 1, &best, &found),
               "choosing an algorithm for a layer");
  check_cublas(found > 0 ? best.state : CUBLAS_STATUS_NOT_SUPPORTED, "choosing an algorithm for a layer");
  plan.algorithm = best.algo;
  return plan;
}

void Cublas::multiply(MatrixProduct const& p, cublasLtEpilogue_t epilogue, float const* bias) {
  GPUPS_ASSERT(p.fits());
  Shape const shape{p.out.rows(),
                    p.out.columns(),
                    p.inner(),
                    p.a.stride(),
                    p.b.stride(),
                    p.out.stride(),
                    std::size_t{p.transpose_a},
                    std::size_t{p.transpose_b},
                    static_cast<std::size_t>(epilogue),
                    std::size_t{p.accumulate},
                    static_cast<std::size_t>(p.precision)};
  auto found = plans_.find(shape);
  if (found == plans_.end()) found = plans_.emplace(shape, make_plan(p, epilogue, bias)).first;
  Plan const& plan = found->second;
  if (bias != nullptr) set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  counters_->count_launch();
  float const one = 1, kept = p.accumulate ? 1 : 0;
  check_cublas(cublasLtMatmul(handle_, plan.operation.get(), &one, p.b.data(), plan.b.get(), p.a.data(), plan.a.get(),
                              &kept, p.out.data(), plan.out.get(), p.out.data(), plan.out.get(), &plan.algorithm,
                              workspace_.data(), workspace_.size(), stream_),
               "queueing the product of a layer");
}

Cublas& Cublas::of(DeviceExec ex) {
  std::shared_ptr<void>& of_stream = *ex.library;
  if (of_stream == nullptr) {
    int device = 0;
    check_cuda(cudaGetDevice(&device), "querying the current device");
    of_stream = std::make_shared<Cublas>(Device::cuda(device), static_cast<cudaStream_t>(ex.stream), ex.counters);
  }
  return *static_cast<Cublas*>(of_stream.get());
}

}  // namespace gpups::kernels
