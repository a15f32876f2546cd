// SPDX-License-Identifier: Apache-2.0
// CUB's algorithms with memory of ours. For device objects only.
#pragma once

#include <cstddef>

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

}  // namespace gpups::kernels
