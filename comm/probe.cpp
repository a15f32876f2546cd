// SPDX-License-Identifier: Apache-2.0
#include "comm/probe.hpp"

#include <chrono>
#include <string>

#include "comm/patience.hpp"
#include "gpups/array.hpp"
#include "gpups/error.hpp"

namespace gpups::comm {
namespace {

constexpr double kTimeoutS = 60;  // of one payload
constexpr int kWarmup = 16;       // echoes before those that count: connections are made by the first

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Rank as_rank(int number) { return Rank{static_cast<std::uint32_t>(number)}; }

void wait_done(Payload& payload, Transfer transfer, int peer) {
  Patience patience(kTimeoutS);
  while (!payload.done(transfer)) {
    if (payload.progress() || patience.wait()) continue;
    throw PeerError(as_rank(peer), "bulk data does not move between ranks 0 and " + std::to_string(peer) +
                                       " (messages do): set UCX_TLS to leave out ways that do not work here");
  }
}

// Rank 0's part of the talk with `peer`.
Speed wait_lead(Talk& talk, Payload& payload, Stream& stream, Array<std::byte>& room, int peer,
                ProbeSizes const& sizes) {
  Speed speed;
  Clock::time_point start;
  for (int i = -kWarmup; i < sizes.echoes; ++i) {
    if (i == 0) start = Clock::now();
    talk.wait_send(peer, "12345678");
    talk.wait_receive(peer);
  }
  speed.latency_us = seconds_since(start) * 1e6 / (2.0 * sizes.echoes);

  std::string const body(sizes.message_bytes, 'm');
  start = Clock::now();
  for (int i = 0; i < sizes.messages; ++i) talk.wait_send(peer, body);
  talk.wait_receive(peer);  // it has them all
  speed.messages_bytes_per_s = static_cast<double>(sizes.message_bytes) * sizes.messages / seconds_since(start);

  for (int i = -1; i < sizes.payloads; ++i) {
    if (i == 0) start = Clock::now();
    wait_done(payload, payload.send(stream, as_rank(peer), 1, room.data(), room.size()), peer);
  }
  talk.wait_receive(peer);
  speed.payloads_bytes_per_s = static_cast<double>(sizes.payload_bytes) * sizes.payloads / seconds_since(start);
  return speed;
}

// The other one's part.
void wait_follow(Talk& talk, Payload& payload, Stream& stream, Array<std::byte>& room, ProbeSizes const& sizes) {
  for (int i = 0; i < kWarmup + sizes.echoes; ++i) talk.wait_send(0, talk.wait_receive(0));
  for (int i = 0; i < sizes.messages; ++i) talk.wait_receive(0);
  talk.wait_send(0, "all");
  for (int i = 0; i < sizes.payloads + 1; ++i) {
    wait_done(payload, payload.receive_at(stream, Rank{0}, 1, room.data(), room.size()), talk.rank());
  }
  stream.wait();
  talk.wait_send(0, "all");
}

}  // namespace

std::vector<Speed> wait_probe(Talk& talk, Payload& payload, Stream& stream, ProbeSizes const& sizes) {
  std::vector<Speed> speeds;
  Array<std::byte> room(stream.device(), sizes.payload_bytes);
  if (talk.rank() != 0) {
    wait_follow(talk, payload, stream, room, sizes);
  } else {
    for (int peer = 1; peer < talk.size(); ++peer) {
      speeds.push_back(wait_lead(talk, payload, stream, room, peer, sizes));
    }
  }
  talk.wait_tell("over");  // nobody leaves before
  return speeds;
}

}  // namespace gpups::comm
