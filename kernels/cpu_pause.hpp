// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpups::kernels {

// Lets a core's other thread have it for a moment. To give it up would be to lose it for milliseconds where there is
// other work.
inline void cpu_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace gpups::kernels
