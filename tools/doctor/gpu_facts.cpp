// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <string>

#include "comm/bootstrap/core_affinity.hpp"
#include "gpups/device.hpp"
#include "gpups/error.hpp"
#include "kernels/runtime/cuda_runtime.hpp"
#include "tools/doctor/facts.hpp"

namespace gpups::tools {
namespace {

trainer::GpuFacts::Gpu read_gpu(int device, bool own) {
  trainer::GpuFacts::Gpu gpu;
  try {
    gpu.address = cuda::pci_address(device);
    gpu.capability = cuda::capability(device);
    gpu.near_cores = comm::format_core_list(comm::cores_near_rank(comm::cores_near_gpus(), device));
    if (own) {
      auto const memory = cuda::memory_info(device);
      gpu.free_bytes = memory.free;
      gpu.bytes = memory.total;
    }
  } catch (Error const& error) {
    gpu.error = error.what();
  }
  return gpu;
}

bool can_reach(int a, int b) {
  try {
    return cuda::can_reach(a, b) && cuda::can_reach(b, a);
  } catch (Error const&) {
    return true;  // read_gpu() has stored the error of the device
  }
}

}  // namespace

trainer::GpuFacts read_gpus(int own) {
  trainer::GpuFacts facts;
  std::ifstream in("/proc/driver/nvidia/version");
  std::getline(in, facts.kernel_driver);
  facts.driver_version = cuda::driver_version();
  facts.toolkit_version = cuda::toolkit_version();
  int const count = cuda_device_count();
  for (int device = 0; device < count; ++device) {
    facts.gpus.push_back(read_gpu(device, device == own));
    for (int other = 0; other < device; ++other) {
      if (!can_reach(other, device)) facts.cannot_reach.emplace_back(other, device);
    }
  }
  return facts;
}

}  // namespace gpups::tools
