// SPDX-License-Identifier: Apache-2.0
// Where arrays live and work runs: the host, or one CUDA device.
#pragma once

#include <compare>
#include <string>

namespace gpups {

struct Device {
  enum class Kind { kHost, kCuda };

  Kind kind = Kind::kHost;
  int index = 0;  // of the CUDA device; 0 for the host

  static constexpr Device host() { return {}; }
  static constexpr Device cuda(int index) { return {Kind::kCuda, index}; }
  constexpr bool is_host() const { return kind == Kind::kHost; }
  constexpr bool operator==(Device const&) const = default;
};

// "host" or "cuda:0".
std::string to_string(Device device);

// Number of CUDA devices that this build can use now: 0 without CUDA in the build, a driver or a device.
int cuda_device_count();

// Reads "auto", "host", "cuda" or "cuda:1". "auto" is the CUDA device number `local_rank` modulo their count, or the
// host where there is none. Throws Error for other text, or a device that is not there.
Device device_from(std::string const& text, int local_rank = 0);

}  // namespace gpups
