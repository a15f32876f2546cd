// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/tests/planted_kernels.hpp"

namespace gpups::emulator::test {
namespace {

constexpr int kBlock = 256, kWarp = 32;
constexpr unsigned kAllLanes = ~0U;

__device__ int thread_number() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }
int blocks_for(int threads) { return (threads + kBlock - 1) / kBlock; }

__global__ void number(int* out, int threads) {
  int const i = thread_number();
  if (i < threads) out[i] = i;
}

__global__ void reverse(int* out, bool with_barrier) {
  __shared__ int values[kBlock];
  int const i = static_cast<int>(threadIdx.x);
  values[i] = i;
  if (with_barrier) __syncthreads();
  out[i] = values[kBlock - 1 - i];
}

__global__ void broadcast(int* out, bool in_branch) {
  int const lane = static_cast<int>(threadIdx.x);
  int value = 0;
  if (!in_branch) {
    value = __shfl_sync(kAllLanes, lane + 100, 0);
  } else if (lane < kWarp / 2) {
    value = __shfl_sync(kAllLanes, lane + 100, 0);  // the other lanes never arrive here
  } else {
    value = __shfl_sync(kAllLanes, lane + 200, 0) + 1;
  }
  out[lane] = value;
}

__global__ void shuffle_with_wrong_mask(int* out) {
  int const lane = static_cast<int>(threadIdx.x);
  out[lane] = __shfl_xor_sync(0xFFFFU, lane, 1);
}

__global__ void deadlock(int* out) {
  int const i = static_cast<int>(threadIdx.x);
  if (i % 2 == 0) __syncthreads();
  out[i] = __shfl_sync(kAllLanes, i, 0);
  if (i % 2 != 0) __syncthreads();
}

__global__ void read_float(char const* at, float* out) { *out = *reinterpret_cast<float const*>(at); }

__global__ void add_one(int* sum, int threads, bool atomic) {
  if (thread_number() >= threads) return;
  if (atomic) {
    atomicAdd(sum, 1);
  } else {
    int volatile* const plain = sum;
    *plain = *plain + 1;
  }
}

__global__ void read_column(float const* rows, float* out, int threads, bool strided) {
  int const i = thread_number();
  if (i < threads) out[i] = strided ? rows[32 * i] : rows[i];
}

__global__ void read_steps(int* out, bool chained) {
  constexpr int kSteps = 4;
  int sum = 0;
  if (chained) {
    for (int step = 0; step < kSteps; ++step) sum = out[sum];
  } else {
    int values[kSteps];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) values[step] = out[step];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) sum += values[step];
  }
  out[0] = sum;
}

__global__ void shared_stride(int* out, int stride) {
  __shared__ int values[kWarp * kWarp];
  int const lane = static_cast<int>(threadIdx.x);
  values[lane * stride] = lane;
  __syncwarp();
  out[lane] = values[lane * stride];
}

}  // namespace

void launch_number(cudaStream_t stream, int* out, int threads) {
  number<<<blocks_for(threads), kBlock, 0, stream>>>(out, threads);
}
void launch_reverse(cudaStream_t stream, int* out, bool with_barrier) {
  reverse<<<1, kBlock, 0, stream>>>(out, with_barrier);
}
void launch_broadcast(cudaStream_t stream, int* out, bool in_branch) {
  broadcast<<<1, kWarp, 0, stream>>>(out, in_branch);
}
void launch_shuffle_with_wrong_mask(cudaStream_t stream, int* out) {
  shuffle_with_wrong_mask<<<1, kWarp, 0, stream>>>(out);
}
void launch_deadlock(cudaStream_t stream, int* out) { deadlock<<<1, kWarp, 0, stream>>>(out); }
void launch_read_float(cudaStream_t stream, char const* at, float* out) { read_float<<<1, 1, 0, stream>>>(at, out); }
void launch_add_one(cudaStream_t stream, int* sum, int threads, bool atomic) {
  add_one<<<blocks_for(threads), kBlock, 0, stream>>>(sum, threads, atomic);
}
void launch_read_column(cudaStream_t stream, float const* rows, float* out, int threads, bool strided) {
  read_column<<<blocks_for(threads), kBlock, 0, stream>>>(rows, out, threads, strided);
}
void launch_read_steps(cudaStream_t stream, int* out, bool chained) { read_steps<<<1, 1, 0, stream>>>(out, chained); }
void launch_shared_stride(cudaStream_t stream, int* out, int stride) {
  shared_stride<<<1, kWarp, 0, stream>>>(out, stride);
}

}  // namespace gpups::emulator::test
