// SPDX-License-Identifier: Apache-2.0
// How fast rank 0 and each other rank reach each other.
#pragma once

#include <cstddef>
#include <vector>

#include "comm/bulk/bulk_transport.hpp"
#include "comm/transport/control_channel.hpp"

namespace gpups::comm {

struct LinkBenchmarkSizes {
  int echoes = 200;  // of 8 bytes
  int messages = 32;
  std::size_t message_bytes = std::size_t{1} << 20;
  int payloads = 8;
  std::size_t payload_bytes = std::size_t{16} << 20;
};

struct LinkSpeed {
  double latency_us = 0;  // of a message, one way
  double messages_bytes_per_s = 0;
  double payloads_bytes_per_s = 0;
};

// Every rank calls it with the same sizes, and with a stream of the device that its bulk transports are on. Returns, at
// rank 0, what was measured with ranks 1, 2, ..., one after the other; nothing elsewhere.
std::vector<LinkSpeed> wait_benchmark_links(ControlChannel& channel, BulkTransport& bulk, Stream& stream,
                                            LinkBenchmarkSizes const& sizes = {});

}  // namespace gpups::comm
