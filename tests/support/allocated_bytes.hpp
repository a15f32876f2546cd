// SPDX-License-Identifier: Apache-2.0
// The memory of this process.
#pragma once

#include <malloc.h>

#include "gpups/array.hpp"

namespace gpups::test {

// Whether allocated_bytes() is right.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kCountsAllocations = false;  // sanitizers have an allocator of their own
#else
inline constexpr bool kCountsAllocations = true;
#endif

// Returns the bytes in use in this process, without cached blocks of freed arrays.
inline double allocated_bytes() {
  auto const info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) -
         static_cast<double>(memory::usage(Device::host()).bytes_cached);
}

}  // namespace gpups::test
