// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/upload.hpp"

#include <cstring>

#include "kernels/runtime/stream_impl.hpp"

namespace gpups::kernels {

void upload_bytes(Stream& stream, void* to, void const* from, std::size_t bytes) {
  if (bytes == 0) return;
  auto& impl = stream.impl();
  if (impl.device.is_host()) return void(std::memcpy(to, from, bytes));
  impl.counters->count_host_copy();
  impl.uploads.copy(impl.device.index, impl.cuda, to, from, bytes);
}

}  // namespace gpups::kernels
