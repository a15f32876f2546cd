// SPDX-License-Identifier: Apache-2.0
// Measures latency and bandwidth between rank 0 and each other rank.
#pragma once

#include <cstddef>
#include <vector>

#include "comm/bulk/bulk_transport.hpp"
#include "comm/transport/control_channel.hpp"

namespace gpups::comm {

// How much is sent to each rank. A payload is a transfer of the bulk transport.
struct LinkBenchmarkSizes {
  int echoes = 200;  // of 8 bytes
  int messages = 32;
  std::size_t message_bytes = std::size_t{1} << 20;
  int payloads = 8;
  std::size_t payload_bytes = std::size_t{16} << 20;
};

// The measurement of one link.
struct LinkSpeed {
  double latency_us = 0;  // of a message, half a round trip
  double messages_bytes_per_s = 0;
  double payloads_bytes_per_s = 0;
};

// Collective; all ranks pass the same sizes, and a stream of the device that their bulk transport is used with. On rank
// 0, returns the measurements with ranks 1, 2, ..., which are measured one after the other; on other ranks, nothing.
// Throws PeerError if a rank does not answer.
std::vector<LinkSpeed> wait_benchmark_links(ControlChannel& channel, BulkTransport& bulk, Stream& stream,
                                            LinkBenchmarkSizes const& sizes = {});

}  // namespace gpups::comm
