// SPDX-License-Identifier: Apache-2.0
// Kernels with planted faults, and right ones beside them.
#pragma once

#include <cuda_runtime_api.h>

namespace gpups::emulator::test {

// Each queues a kernel on the stream, of `threads` threads in blocks of at most 256, unless it says otherwise.

// Writes out[i] = i for i < threads.
void launch_number(cudaStream_t stream, int* out, int threads);
// One block of 256 threads reverses 0, 1, ..., 255 in shared memory; without a barrier, it reads what is not written.
void launch_reverse(cudaStream_t stream, int* out, bool with_barrier);
// One warp: each lane reads a value of lane 0. With a fault, half of the lanes are at another instruction.
void launch_broadcast(cudaStream_t stream, int* out, bool in_branch);
// One warp shuffles with a mask that does not have all of the lanes that take part.
void launch_shuffle_with_wrong_mask(cudaStream_t stream, int* out);
// Half of a block waits at a barrier, and the other half at a warp instruction with lanes of the first half.
void launch_deadlock(cudaStream_t stream, int* out);
// Reads a float at a byte address, which may be misaligned.
void launch_read_float(cudaStream_t stream, char const* at, float* out);
// Adds one to *sum from every thread: with an atomic operation, or by a load and a store.
void launch_add_one(cudaStream_t stream, int* sum, int threads, bool atomic);
// Reads row-major (threads, 32) floats: each thread reads column 0 of its row (strided), or its own element of row 0.
void launch_read_column(cudaStream_t stream, float const* rows, float* out, int threads, bool strided);
// One thread reads four elements: each is the index of the next one (chained), or all before it uses the first.
void launch_read_steps(cudaStream_t stream, int* out, bool chained);
// Each thread writes its number at `stride` times its number in shared memory. One warp.
void launch_shared_stride(cudaStream_t stream, int* out, int stride);

}  // namespace gpups::emulator::test
