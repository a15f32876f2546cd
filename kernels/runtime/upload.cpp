// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/upload.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/runtime/cuda_runtime.hpp"
#include "kernels/runtime/stream_impl.hpp"

namespace gpups::kernels {

namespace {

constexpr std::size_t kLeastBytes = std::size_t{64} << 10;

}  // namespace

UploadBuffer::~UploadBuffer() = default;

void UploadBuffer::wait() noexcept {
  for (auto& block : blocks_) {
    if (block.event == nullptr) continue;
    try {
      cuda::wait_event(block.device, block.event);
    } catch (...) {  // the copy has failed, so it does not read the block
    }
    cuda::destroy_event(block.device, block.event);
    block.event = nullptr;
  }
}

UploadBuffer::PinnedBlock& UploadBuffer::take(int device, std::size_t bytes) {
  for (auto& block : blocks_) {
    if (block.bytes < bytes || (block.event != nullptr && !cuda::event_done(device, block.event))) continue;
    if (block.event != nullptr) cuda::destroy_event(device, block.event);
    block.event = nullptr;
    return block;
  }
  std::size_t const size = std::bit_ceil(std::max(bytes, kLeastBytes));
  return blocks_.emplace_back(PinnedBlock{allocate_pinned(Device::cuda(device), size), size, device, nullptr});
}

void UploadBuffer::copy(int device, void* stream, void* to, void const* from, std::size_t bytes) {
  if (bytes == 0) return;
  PinnedBlock& block = take(device, bytes);
  std::memcpy(block.memory.get(), from, bytes);
  cuda::copy(device, stream, to, block.memory.get(), bytes);
  block.event = cuda::record_event(device, stream);
}

void upload_bytes(Stream& stream, void* to, void const* from, std::size_t bytes) {
  if (bytes == 0) return;
  auto& impl = stream.impl();
  if (impl.device.is_host()) return void(std::memcpy(to, from, bytes));
  impl.counters->count_host_copy(bytes);
  impl.uploads.copy(impl.device.index, impl.cuda, to, from, bytes);
}

}  // namespace gpups::kernels
