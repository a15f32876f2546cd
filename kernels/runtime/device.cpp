// SPDX-License-Identifier: Apache-2.0
#include "gpups/device.hpp"

#include <charconv>

#include "kernels/base/check.hpp"
#include "kernels/runtime/cuda_runtime.hpp"

namespace gpups {

std::string to_string(Device device) { return device.is_host() ? "host" : fmt::format("cuda:{}", device.index); }

int cuda_device_count() { return cuda::device_count(); }
std::string cuda_device_error() { return cuda::driver_version() == 0 ? std::string() : cuda::device_error(); }

Device device_from(std::string const& text, int local_rank) {
  GPUPS_REQUIRE(local_rank >= 0,
                "a device was requested for local rank {} (the ranks of a machine are numbered from 0): use "
                "RankLocation::local_rank",
                local_rank);
  int const count = cuda_device_count();
  if (text == "host" || (text == "auto" && count == 0)) return Device::host();
  if (text == "auto") return Device::cuda(local_rank % count);

  int index = text == "cuda" && count > 0 ? local_rank % count : 0;
  bool known = text == "cuda";
  if (text.starts_with("cuda:")) {
    auto const* const end = text.data() + text.size();
    auto const [stop, error] = std::from_chars(text.data() + 5, end, index);
    known = error == std::errc{} && stop == end && index >= 0;
  }
  GPUPS_REQUIRE(known, "device '{}' is unknown (it is not the name of a device): use auto, host, cuda or cuda:0", text);
  std::string const error = index < count ? std::string() : cuda_device_error();
  GPUPS_REQUIRE(index < count,
                "device '{}' does not exist ({} CUDA devices were found{}): use host, or check nvidia-smi", text, count,
                error.empty() ? error : ", and CUDA reports '" + error + "'");
  return Device::cuda(index);
}

}  // namespace gpups
