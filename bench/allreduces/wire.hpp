// SPDX-License-Identifier: Apache-2.0
// Bytes that the network interfaces of this process's machine, or namespace, have sent.
#pragma once

#include <cstdint>

namespace gpups::bench {

// Of all interfaces together, headers of TCP/IP included; 0 where the kernel does not say.
std::uint64_t wire_bytes_sent();

}  // namespace gpups::bench
