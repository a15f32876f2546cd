// SPDX-License-Identifier: Apache-2.0
// Checks that this build can use the GPUs, and that GPUs can access each other's memory.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <climits>

#include "trainer/base/progress_reporter.hpp"
#include "trainer/doctor/checks.hpp"

namespace gpups::trainer {
namespace {

std::string cuda_version(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

// Returns the least number of a list such as "80;90;100". Later devices can run its code too.
int least_capability(std::string const& architectures) {
  int least = INT_MAX;
  for (char const *at = architectures.data(), *end = at + architectures.size(); at < end; ++at) {
    int one = 0;
    auto const [stop, error] = std::from_chars(at, end, one);
    if (error == std::errc{}) least = std::min(least, one);
    at = std::find(stop, end, ';');
  }
  return least;
}

}  // namespace

Findings check_gpus(Facts const& facts) {
  if (facts.program.cuda_architectures.empty()) {
    if (facts.gpu.kernel_driver.empty()) return {ok("there is no GPU: training runs on the host")};
    return {
        warning("this machine has an NVIDIA driver, but this build has no device code (training runs on the host): "
                "build with nvcc on PATH")};
  }
  if (facts.gpu.gpus.empty()) return {ok("no GPU can be used: training runs on the host")};
  Findings found;
  int const least = least_capability(facts.program.cuda_architectures);
  for (std::size_t i = 0; i < facts.gpu.gpus.size(); ++i) {
    GpuFacts::Gpu const& gpu = facts.gpu.gpus[i];
    if (!gpu.error.empty()) {
      found.push_back(problem(fmt::format("cuda:{} does not respond: {}", i, gpu.error)));
      continue;
    }
    std::string const memory =
        gpu.bytes == 0 ? "" : fmt::format(", {} free of {}", short_bytes(gpu.free_bytes), short_bytes(gpu.bytes));
    std::string const near = gpu.near_cores.empty() ? "" : ", near cores " + gpu.near_cores;
    found.push_back(ok(fmt::format("cuda:{} is at {}: compute capability {}.{}{}{}", i, gpu.address,
                                   gpu.capability / 10, gpu.capability % 10, memory, near)));
    if (gpu.capability < least) {
      found.push_back(
          problem(fmt::format("cuda:{} has compute capability {}.{} (this build has code for {} and later): "
                              "build with GPUPS_CUDA_ARCHITECTURES={}, or use --device host",
                              i, gpu.capability / 10, gpu.capability % 10, least, gpu.capability)));
    }
  }
  return found;
}

Findings check_gpu_driver(Facts const& facts) {
  GpuFacts const& gpu = facts.gpu;
  if (gpu.toolkit_version == 0) return {};
  if (gpu.driver_version == 0) {
    return {
        gpu.kernel_driver.empty()
            ? ok("there is no NVIDIA driver")
            : warning("the kernel has an NVIDIA driver, but its library libcuda.so is missing (no GPU can be used): "
                      "start the container with --gpus all, or install the driver's libraries")};
  }
  // A driver runs programs built with any toolkit of its own major version or an earlier one.
  if (gpu.driver_version / 1000 < gpu.toolkit_version / 1000) {
    return {
        warning(fmt::format("the driver supports CUDA {}, and the program was built with CUDA {} (no GPU can be used): "
                            "update the driver, or build with an older toolkit",
                            cuda_version(gpu.driver_version), cuda_version(gpu.toolkit_version)))};
  }
  return {ok(fmt::format("the driver supports CUDA {}, and the program was built with CUDA {}",
                         cuda_version(gpu.driver_version), cuda_version(gpu.toolkit_version)))};
}

Findings check_gpu_access(Facts const& facts) {
  if (facts.gpu.gpus.size() < 2) return {};
  if (facts.gpu.cannot_reach.empty()) return {ok("all GPUs can access each other's memory")};
  std::string pairs;
  for (auto const& [a, b] : facts.gpu.cannot_reach) {
    pairs += fmt::format("{}cuda:{} and cuda:{}", pairs.empty() ? "" : ", ", a, b);
  }
  return {
      warning(fmt::format("GPUs cannot access each other's memory: {} (they exchange data through the host): see "
                          "nvidia-smi topo -p2p r; disable ACS in the IOMMU settings, or give ranks other GPUs",
                          pairs))};
}

}  // namespace gpups::trainer
