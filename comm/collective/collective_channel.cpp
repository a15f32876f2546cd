// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/collective_channel.hpp"

#include <fmt/core.h>

#include <utility>

#include "comm/wire.hpp"
#include "gpups/error.hpp"

namespace gpups::comm {
namespace {

constexpr ChannelId kId = ChannelId::kCollectives;
constexpr TrafficKind kKind = &ByKind::reductions;

}  // namespace

CollectiveChannel::CollectiveChannel(ProgressEngine& engine, Rank me, int ranks, std::uint64_t ahead_max,
                                     Selector selector)
    : engine_(engine),
      messenger_(engine.messenger()),
      selector_(std::move(selector)),
      collectives_(me, ranks, *this, ahead_max) {
  messenger_.open(kId, *this);
}

void CollectiveChannel::begin(std::shared_ptr<Collective> const& collective, Stream const& stream) {
  engine_.start();
  engine_.post_soon([this, collective, stream] { collectives_.begin(collective, stream); });
}

void CollectiveChannel::wait(Collective const& collective, WaitLimit const& limit) {
  engine_.wait([&collective] { return collective.done.load(); }, limit);
}

std::vector<std::string> CollectiveChannel::wait_explain() {
  if (!engine_.is_started() || engine_.has_failed()) return selector_.explain();  // nothing changes it
  std::vector<std::string> lines;
  engine_.wait_run([&] { lines = selector_.explain(); });
  return lines;
}

bool CollectiveChannel::can_add_up(Device device) const {
  engine_.throw_if_failed();
  return adds(device);
}

void CollectiveChannel::received(Rank from, std::string_view body) {
  CollectiveMessage message;
  try {
    message = decode_collective(body);
  } catch (WireError const& error) {
    throw PeerError(from, fmt::format("rank {} sent what is not a message: {} (nothing it says can be trusted): check "
                                      "that all ranks run the same version",
                                      number(from), error.what()));
  }
  messenger_.received_within(from, kKind, collectives_.heard(from, message.run, message.header));
}

void CollectiveChannel::tell(Rank to, std::uint64_t run, std::string header, std::size_t inside) {
  messenger_.send(kId, to, encode(CollectiveMessage{run, header}), kKind, inside);
}

void CollectiveChannel::send(Stream& stream, Rank to, Id id, View<std::uint8_t const> data,
                             std::shared_ptr<void const> keep, std::function<void()> then) {
  messenger_.send_data(kId, stream, to, tag_of_run(id.run, id.index), data.data(), data.bytes(), kKind, std::move(keep),
                       std::move(then));
}

void CollectiveChannel::take(Stream& stream, Rank from, Id id, std::size_t bytes, Payload::Where where,
                             std::function<void()> then) {
  messenger_.take_data(kId, stream, from, tag_of_run(id.run, id.index), bytes, kKind, std::move(where),
                       std::move(then));
}

bool CollectiveChannel::adds(Device device) const { return messenger_.adds(device); }

void CollectiveChannel::sum(Stream& stream, std::uint64_t run, View<float const> terms, View<float> sums,
                            std::shared_ptr<void const> keep, std::function<void()> then) {
  messenger_.sum_data(kId, stream, tag_of_run(run, 0), terms, sums, kKind, std::move(keep), std::move(then));
}

void CollectiveChannel::count_coding(std::uint64_t plain, std::uint64_t sent) {
  messenger_.count_coding(kKind, plain, sent);
}

std::string encode(CollectiveMessage const& message) {
  Writer writer(2 * sizeof message.run + message.header.size());
  writer.put<std::uint64_t>(message.run);
  writer.put_text(message.header);
  return writer.take();
}

CollectiveMessage decode_collective(std::string_view body) {
  Reader reader(body);
  CollectiveMessage message;
  message.run = reader.get<std::uint64_t>();
  message.header = reader.get_text();
  reader.end();
  return message;
}

std::uint64_t tag_of_run(std::uint64_t run, std::uint64_t index) {
  constexpr unsigned kRunBits = 20, kIndexBits = kTagBits - kRunBits;
  return (run & ((std::uint64_t{1} << kRunBits) - 1)) << kIndexBits |
         (index & ((std::uint64_t{1} << kIndexBits) - 1));
}

}  // namespace gpups::comm
