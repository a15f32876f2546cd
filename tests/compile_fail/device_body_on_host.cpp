// SPDX-License-Identifier: Apache-2.0
// Code from the host compiler cannot launch device work; only nvcc compiles launches.
#include "kernels/runtime/launch.hpp"

void call(gpups::kernels::HostExec host, gpups::kernels::DeviceExec device) {
#ifdef WRONG
  (void)host;
  gpups::kernels::each(device, 1, [](std::size_t) {});
#else
  (void)device;
  gpups::kernels::each(host, 1, [](std::size_t) {});
#endif
}
