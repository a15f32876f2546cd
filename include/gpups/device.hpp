// SPDX-License-Identifier: Apache-2.0
// A device that holds arrays and runs kernels: the host, or one CUDA device.
#pragma once

#include <compare>
#include <string>

namespace gpups {

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
std::string to_string(Device device);

// Returns the number of usable CUDA devices: 0 if the build has no CUDA, or the machine has no driver or no device.
int cuda_device_count();

// Parses "auto", "host", "cuda" or "cuda:1". "auto" and "cuda" select the CUDA device `local_rank` modulo the number of
// devices; "auto" selects the host if there is none. Throws Error for any other text and for a device that does not
// exist.
Device device_from(std::string const& text, int local_rank = 0);

}  // namespace gpups
