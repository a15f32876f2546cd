// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/collective_channel.hpp"

#include <fmt/core.h>

#include <utility>

#include "comm/base/serialization.hpp"
#include "gpups/error.hpp"

namespace gpups::comm {
namespace {

constexpr ChannelId kId = ChannelId::kCollectives;
constexpr TrafficKind kKind = &TrafficByKind::allreduces;

}  // namespace

CollectiveChannel::CollectiveChannel(ProgressEngine& engine, Rank me, int ranks, std::uint64_t ahead_max,
                                     Selector selector)
    : engine_(engine),
      messenger_(engine.messenger()),
      selector_(std::move(selector)),
      collectives_(me, ranks, *this, ahead_max) {
  messenger_.open(kId, *this);
}

void CollectiveChannel::begin(std::shared_ptr<CollectiveTask> const& collective, Stream const& stream) {
  engine_.start();
  engine_.post_soon([this, collective, stream] { collectives_.begin(collective, stream); });
}

void CollectiveChannel::wait(CollectiveTask const& collective, WaitLimit const& limit) {
  engine_.wait([&collective] { return collective.done.load(); }, limit);
}

std::vector<std::string> CollectiveChannel::wait_explain() {
  if (!engine_.is_started() || engine_.has_failed()) return selector_.explain();  // no other thread changes it then
  std::vector<std::string> lines;
  engine_.wait_invoke([&] { lines = selector_.explain(); });
  return lines;
}

bool CollectiveChannel::can_add_up(Device device) const {
  engine_.throw_if_failed();
  return can_allreduce(device);
}

void CollectiveChannel::received(Rank from, std::string_view body) {
  CollectiveMessage message;
  try {
    message = decode_collective(body);
  } catch (SerializationError const& error) {
    throw PeerError(from, fmt::format("rank {} sent an invalid message: {} (none of its messages can be trusted): "
                                      "check that all ranks run the same version",
                                      number(from), error.what()));
  }
  messenger_.received_within(from, kKind, collectives_.on_header(from, message.sequence, message.header));
}

void CollectiveChannel::send_header(Rank to, std::uint64_t sequence, std::string header, std::size_t inline_bytes) {
  messenger_.send(kId, to, encode(CollectiveMessage{sequence, header}), kKind, inline_bytes);
}

void CollectiveChannel::send(Stream& stream, Rank to, MessageId id, View<std::uint8_t const> data,
                             std::shared_ptr<void const> keep, std::function<void()> then) {
  messenger_.send_data(kId, stream, to, collective_tag(id.sequence, id.index), data.data(), data.bytes(), kKind,
                       std::move(keep), std::move(then));
}

void CollectiveChannel::receive_bulk(Stream& stream, Rank from, MessageId id, std::size_t bytes,
                                     BulkTransport::Allocate allocate, std::function<void()> then) {
  messenger_.receive_data(kId, stream, from, collective_tag(id.sequence, id.index), bytes, kKind, std::move(allocate),
                          std::move(then));
}

bool CollectiveChannel::can_allreduce(Device device) const { return messenger_.can_allreduce(device); }

void CollectiveChannel::sum(Stream& stream, std::uint64_t sequence, FabricSum const& arrays,
                            std::shared_ptr<void const> keep, std::function<void()> then) {
  messenger_.sum_data(kId, stream, collective_tag(sequence, 0), arrays, kKind, std::move(keep), std::move(then));
}

void CollectiveChannel::count_compression(std::uint64_t uncompressed_bytes, std::uint64_t sent) {
  messenger_.count_compression(kKind, uncompressed_bytes, sent);
}

std::string encode(CollectiveMessage const& message) {
  Writer writer(2 * sizeof message.sequence + message.header.size());
  writer.put<std::uint64_t>(message.sequence);
  writer.put_text(message.header);
  return writer.take();
}

CollectiveMessage decode_collective(std::string_view body) {
  Reader reader(body);
  CollectiveMessage message;
  message.sequence = reader.get<std::uint64_t>();
  message.header = reader.get_text();
  reader.end();
  return message;
}

std::uint64_t collective_tag(std::uint64_t sequence, std::uint64_t index) {
  constexpr unsigned kSequenceBits = 20, kIndexBits = kTagBits - kSequenceBits;
  return (sequence & ((std::uint64_t{1} << kSequenceBits) - 1)) << kIndexBits |
         (index & ((std::uint64_t{1} << kIndexBits) - 1));
}

}  // namespace gpups::comm
