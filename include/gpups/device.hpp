// SPDX-License-Identifier: Apache-2.0
// The devices that hold arrays and run kernels.
#pragma once

#include <compare>
#include <string>

#include "gpups/compiler.hpp"

namespace gpups {

// The host, or one CUDA device. A small value, without resources. The constructors do not check that the device exists.
//
//   Device const device = device_from("auto", group.location().local_rank);  // one GPU for each rank of a host
//   Store store(group, {.device = device});
struct Device {
  enum class Kind { kHost, kCuda };

  Kind kind = Kind::kHost;
  int index = 0;  // CUDA device index; 0 for the host

  static constexpr Device host() { return {}; }
  static constexpr Device cuda(int index) { return {Kind::kCuda, index}; }
  constexpr bool is_host() const { return kind == Kind::kHost; }
  constexpr bool operator==(Device const&) const = default;
};

// Returns "host", or "cuda:0" for CUDA device 0.
GPUPS_EXPORT std::string to_string(Device device);

// Returns the number of usable CUDA devices: 0 if the build has no CUDA, or the machine has no driver or no device.
GPUPS_EXPORT int cuda_device_count();

// Returns what CUDA reports if the machine has a driver of GPUs and no usable device; empty if it has no driver, or a
// device.
GPUPS_EXPORT std::string cuda_device_error();

// Returns the device for "auto", "host", "cuda" or "cuda:1" (any index). "auto" and "cuda" select the CUDA device
// `local_rank` modulo the number of devices; "auto" selects the host if there is no CUDA device. Throws Error for
// another text, a device that does not exist, and a negative local_rank.
GPUPS_EXPORT Device device_from(std::string const& text, int local_rank = 0);

}  // namespace gpups
