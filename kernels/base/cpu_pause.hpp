// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpups::kernels {

// Pauses the calling thread for a moment, in which the core's other hardware thread has all of the core. The calling
// thread keeps its core; after a yield, it could lose the core for milliseconds to other processes.
inline void cpu_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace gpups::kernels
