// SPDX-License-Identifier: Apache-2.0
// Scratch memory for kernels and for the algorithms of CUB. For device objects only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/memory_scope.hpp"

namespace gpups::kernels {

// Calls call(scratch, bytes), a function of CUB, twice: first to get the size of its scratch memory, then to queue its
// work. Returns the memory, which must be kept until the stream has done the work.
template <class Call>
Array<std::byte> run_with_scratch(DeviceExec ex, Device device, Call call) {
  ex.counters->count_launch();
  std::size_t bytes = 0;
  check_cuda(call(nullptr, bytes), "sizing scratch memory");
  Array<std::byte> scratch(device, bytes == 0 ? 1 : bytes);
  check_cuda(call(static_cast<void*>(scratch.data()), bytes), "queueing an algorithm of CUB");
  return scratch;
}

// Scratch memory for queued work. Must be kept until the stream has done the work.
class QueuedScratch {
 public:
  QueuedScratch(DeviceExec ex, Device device) : ex_(ex), device_(device) {}

  // Returns memory for `size` elements.
  template <class T>
  T* array(std::size_t size) {
    return reinterpret_cast<T*>(blocks_.emplace_back(device_, size * sizeof(T)).data());
  }
  // Queues an algorithm of CUB, see run_with_scratch().
  template <class Call>
  void run(Call call) {
    blocks_.push_back(run_with_scratch(ex_, device_, call));
  }

 private:
  DeviceExec ex_;
  Device device_;
  std::vector<Array<std::byte>> blocks_;
};

// Scratch memory that is allocated and freed in the order of a stream: it is freed after the work that was queued
// before the destructor, so no thread has to wait.
class StreamScratch {
 public:
  StreamScratch(DeviceExec ex, std::size_t bytes) : stream_(static_cast<cudaStream_t>(ex.stream)) {
    Device const device = keep_memory();
    auto const allocate = [&] { return cudaMallocAsync(&data_, bytes == 0 ? 1 : bytes, stream_); };
    auto result = allocate();
    if (result == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      release_kept_memory(device);
      result = allocate();
    }
    check_cuda(result, "allocating scratch memory");
  }
  ~StreamScratch() { cudaFreeAsync(data_, stream_); }
  StreamScratch(StreamScratch const&) = delete;
  StreamScratch& operator=(StreamScratch const&) = delete;
  void* data() const { return data_; }

 private:
  // Keeps freed memory in the pool of the current device, which it returns. Otherwise it would return to the driver at
  // the next wait, which costs more than the kernel.
  static Device keep_memory() {
    int device = 0;
    cudaMemPool_t pool{};
    std::uint64_t most = ~std::uint64_t{0};
    check_cuda(cudaGetDevice(&device), "reading the current device");
    check_cuda(cudaDeviceGetDefaultMemPool(&pool, device), "reading the memory pool of a device");
    check_cuda(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &most),
               "changing the memory pool of a device");
    return Device::cuda(device);
  }

  cudaStream_t stream_;
  void* data_ = nullptr;
};

// Queues an algorithm of CUB, see run_with_scratch(), whose scratch memory is freed when the stream has done the work.
template <class Call>
void run_in_stream(DeviceExec ex, Call call) {
  std::size_t bytes = 0;
  check_cuda(call(nullptr, bytes), "sizing scratch memory");
  StreamScratch const scratch(ex, bytes);
  ex.counters->count_launch();
  check_cuda(call(scratch.data(), bytes), "queueing an algorithm of CUB");
}

}  // namespace gpups::kernels
