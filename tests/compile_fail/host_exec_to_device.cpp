// SPDX-License-Identifier: Apache-2.0
// A function for the device does not accept the execution object of the host.
#include "kernels/runtime/launch.hpp"

void run_on_device(gpups::kernels::DeviceExec);

void call(gpups::kernels::HostExec host, gpups::kernels::DeviceExec device) {
#ifdef WRONG
  (void)device;
  run_on_device(host);
#else
  (void)host;
  run_on_device(device);
#endif
}
