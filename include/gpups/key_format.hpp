// SPDX-License-Identifier: Apache-2.0
// How a batch's keys travel to the ranks that own its rows.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpups/compiler.hpp"

namespace gpups {

// The format of the keys that a rank sends to another. Results do not depend on it.
enum class KeyFormat : std::uint8_t {
  // kPlain to ranks that are threads of this process or processes of this host, and to all ranks if
  // Group::wait_connect_devices() has connected the GPUs; kDictionary to others.
  kAuto,
  kPlain,       // 8 bytes a key, from device to device: no thread of a host looks at a key
  kDictionary,  // 1 or 2 bytes for a key that the receiver knows; threads of the hosts encode and decode the keys
};

inline constexpr KeyFormat kKeyFormats[] = {KeyFormat::kAuto, KeyFormat::kPlain, KeyFormat::kDictionary};

// Returns the name of a format, as in a configuration: "auto", "plain" or "dictionary".
GPUPS_EXPORT char const* name_of(KeyFormat format);
// Returns the format with this name. Throws Error if there is none.
GPUPS_EXPORT KeyFormat key_format(std::string_view name);

}  // namespace gpups
