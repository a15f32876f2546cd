// SPDX-License-Identifier: Apache-2.0
#include "comm/bulk/link_benchmark.hpp"

#include <chrono>
#include <string>

#include "comm/base/deadline.hpp"
#include "gpups/array.hpp"
#include "gpups/error.hpp"

namespace gpups::comm {
namespace {

constexpr double kTimeoutS = 60;  // for one transfer
constexpr int kWarmup = 16;       // round trips before the measurement; the first ones create connections

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Rank peer_rank(int number) { return Rank{static_cast<std::uint32_t>(number)}; }

void wait_done(BulkTransport& bulk, Transfer transfer, int peer) {
  Deadline deadline(kTimeoutS);
  while (!bulk.done(transfer)) {
    if (bulk.progress() || deadline.wait()) continue;
    throw PeerError(peer_rank(peer), "bulk data do not arrive between ranks 0 and " + std::to_string(peer) +
                                         " (messages do): set UCX_TLS to exclude transports that do not work here");
  }
}

// Rank 0 in the measurement with `peer`.
LinkSpeed wait_measure(ControlChannel& channel, BulkTransport& bulk, Stream& stream, Array<std::byte>& buffer, int peer,
                       LinkBenchmarkSizes const& sizes) {
  LinkSpeed speed;
  Clock::time_point start;
  for (int i = -kWarmup; i < sizes.echoes; ++i) {
    if (i == 0) start = Clock::now();
    channel.wait_send(peer, "12345678");
    channel.wait_receive(peer);
  }
  speed.latency_us = seconds_since(start) * 1e6 / (2.0 * sizes.echoes);

  std::string const body(sizes.message_bytes, 'm');
  start = Clock::now();
  for (int i = 0; i < sizes.messages; ++i) channel.wait_send(peer, body);
  channel.wait_receive(peer);  // the peer has received all
  speed.messages_bytes_per_s = static_cast<double>(sizes.message_bytes) * sizes.messages / seconds_since(start);

  for (int i = -1; i < sizes.payloads; ++i) {
    if (i == 0) start = Clock::now();
    wait_done(bulk, bulk.send(stream, peer_rank(peer), 1, buffer.data(), buffer.size()), peer);
  }
  channel.wait_receive(peer);
  speed.payloads_bytes_per_s = static_cast<double>(sizes.payload_bytes) * sizes.payloads / seconds_since(start);
  return speed;
}

// The other rank in the measurement.
void wait_echo(ControlChannel& channel, BulkTransport& bulk, Stream& stream, Array<std::byte>& buffer,
               LinkBenchmarkSizes const& sizes) {
  for (int i = 0; i < kWarmup + sizes.echoes; ++i) channel.wait_send(0, channel.wait_receive(0));
  for (int i = 0; i < sizes.messages; ++i) channel.wait_receive(0);
  channel.wait_send(0, "all");
  for (int i = 0; i < sizes.payloads + 1; ++i) {
    wait_done(bulk, bulk.receive_into(stream, Rank{0}, 1, buffer.data(), buffer.size()), channel.rank());
  }
  stream.wait();
  channel.wait_send(0, "all");
}

}  // namespace

std::vector<LinkSpeed> wait_benchmark_links(ControlChannel& channel, BulkTransport& bulk, Stream& stream,
                                            LinkBenchmarkSizes const& sizes) {
  std::vector<LinkSpeed> speeds;
  Array<std::byte> buffer(stream.device(), sizes.payload_bytes);
  if (channel.rank() != 0) {
    wait_echo(channel, bulk, stream, buffer, sizes);
  } else {
    for (int peer = 1; peer < channel.size(); ++peer) {
      speeds.push_back(wait_measure(channel, bulk, stream, buffer, peer, sizes));
    }
  }
  channel.wait_broadcast("over");  // all ranks stay until the last measurement
  return speeds;
}

}  // namespace gpups::comm
