// SPDX-License-Identifier: Apache-2.0
// Memory for the time of a kernel, and CUB's algorithms with memory of ours. For device objects only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

// Calls call(scratch, bytes), a function of CUB, first for the size of its scratch memory, then to queue its work.
// Returns the memory, which must stay until the stream has done that work.
template <class Call>
Array<std::byte> run_with_scratch(Device device, Call call) {
  std::size_t bytes = 0;
  check_cuda(call(nullptr, bytes), "sizing scratch memory");
  Array<std::byte> scratch(device, bytes == 0 ? 1 : bytes);
  check_cuda(call(static_cast<void*>(scratch.data()), bytes), "queueing an algorithm of CUB");
  return scratch;
}

// Memory for work that is queued. To be kept until the stream has done it.
class QueuedScratch {
 public:
  explicit QueuedScratch(Device device) : device_(device) {}

  template <class T>
  T* array(std::size_t size) {
    return reinterpret_cast<T*>(blocks_.emplace_back(device_, size * sizeof(T)).data());
  }
  // Queues an algorithm of CUB, as run_with_scratch().
  template <class Call>
  void run(Call call) {
    blocks_.push_back(run_with_scratch(device_, call));
  }

 private:
  Device device_;
  std::vector<Array<std::byte>> blocks_;
};

// Memory in the order of a stream: it is freed when what was queued before that has been done, so nothing need wait.
class StreamScratch {
 public:
  StreamScratch(DeviceExec ex, std::size_t bytes) : stream_(static_cast<cudaStream_t>(ex.stream)) {
    keep_memory();
    check_cuda(cudaMallocAsync(&data_, bytes == 0 ? 1 : bytes, stream_), "allocating scratch memory");
  }
  ~StreamScratch() { cudaFreeAsync(data_, stream_); }
  StreamScratch(StreamScratch const&) = delete;
  StreamScratch& operator=(StreamScratch const&) = delete;
  void* data() const { return data_; }

 private:
  // Or what is freed would go back to the driver at the next wait, which costs more than the kernel.
  static void keep_memory() {
    int device = 0;
    cudaMemPool_t pool{};
    std::uint64_t most = ~std::uint64_t{0};
    check_cuda(cudaGetDevice(&device), "asking for the device");
    check_cuda(cudaDeviceGetDefaultMemPool(&pool, device), "asking for scratch memory");
    check_cuda(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &most), "keeping scratch memory");
  }

  cudaStream_t stream_;
  void* data_ = nullptr;
};

}  // namespace gpups::kernels
