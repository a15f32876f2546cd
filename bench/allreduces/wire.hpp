// SPDX-License-Identifier: Apache-2.0
// The bytes that the network interfaces of this machine, or network namespace, have sent.
#pragma once

#include <cstdint>

namespace gpups::bench {

// Returns the sum over all interfaces, including headers of TCP/IP; 0 if the kernel does not provide it.
std::uint64_t wire_bytes_sent();

}  // namespace gpups::bench
