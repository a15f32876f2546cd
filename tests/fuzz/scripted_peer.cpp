// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/scripted_peer.hpp"

#include <algorithm>
#include <numeric>

#include "comm/collectives/allreduce/packed_integers.hpp"
#include "comm/collectives/collective_header.hpp"
#include "gpups/array.hpp"
#include "kernels/base/overloaded.hpp"

namespace gpups::fuzz {
namespace {

using cache::Intent;
using cache::RowRequestKind;
using cache::Section;
using cache::tag;

// Sections in scripts: those of the store's transfers, and one for those of collectives.
constexpr int kSections = 17;
constexpr std::uint64_t kCollectiveSection = 8;

Section section_of(std::uint64_t choice) {
  return static_cast<Section>(choice > kCollectiveSection ? choice - 1 : choice);
}

struct AnyTag {
  test::ChannelId channel;
  std::uint64_t tag;
};
AnyTag any_tag(Script& script) {
  std::uint64_t const high = script.number() << 48, all = high | script.number();
  std::uint64_t const section = all >> 60, part = all >> 48 & 0xFFF;
  if (section == kCollectiveSection) return {test::ChannelId::kCollectives, all & ~(~std::uint64_t{0} << 60)};
  return {test::ChannelId::kStore, tag(section_of(section), all & ~(~std::uint64_t{0} << 48), part)};
}

}  // namespace

// -- messages and data that the peer sends --

void ScriptedPeer::send(AnyMessage message) {
  corrupt(message);
  std::visit(kernels::Overloaded{[this](cache::Message const& one) { wires_.send(one); },
                                 [this](EncodedHeader const& one) { wires_.send_header(one.id, one.bytes); }},
             message);
  last_ = std::move(message);
}

void ScriptedPeer::send_data(std::uint64_t tag, std::size_t bytes) {
  if (exact_) return wires_.send_data(tag, std::min(bytes, kBytesMax));
  if (script_.rarely(10)) return;
  if (script_.rarely(10)) bytes = script_.number();
  AnyTag to{test::ChannelId::kStore, tag};
  if (script_.rarely(10)) to = any_tag(script_);
  wires_.send_data(to.tag, std::min(bytes, kBytesMax), script_.rarely(64) ? script_.byte() : std::uint8_t{0},
                   to.channel);
}

void ScriptedPeer::send_keys(Section section, std::uint64_t number, std::uint64_t part, std::size_t count) {
  if (count == 0) return;
  if (!exact_ && script_.rarely(20)) return send_data(tag(section, number, part), count * sizeof(Key));
  std::vector<std::uint64_t> keys(std::min(count, kBytesMax / sizeof(Key)));
  std::iota(keys.begin(), keys.end(), script_.byte());
  wires_.send_words(tag(section, number, part), keys);
}

Intent ScriptedPeer::make_intent(std::int64_t clock) {
  Intent intent{.clock = Clock{clock}, .parts = {}};
  for (int parts = script_.byte() % 4; parts > 0; --parts) {
    auto const table = script_.rarely(4) ? script_.number() : script_.byte() % std::size(kDims);
    auto const keys = script_.rarely(8) ? script_.number() : script_.byte() % 8;
    intent.parts.push_back({TableId{static_cast<std::uint32_t>(table)}, keys});
  }
  return intent;
}

// The first byte is the number of a kind in scripts, or an unknown channel.
void ScriptedPeer::send_any_bytes() {
  std::string bytes = script_.text(255);
  auto const first = bytes.empty() ? std::uint8_t{0xFF} : static_cast<std::uint8_t>(bytes.front());
  if (first >= 2 * kKinds) return wires_.send_bytes(bytes);
  if (first == kCollectiveKind) return wires_.send_on(test::ChannelId::kCollectives, bytes.substr(1));
  if (first < kKinds) bytes.front() = static_cast<char>(kind_of(first));
  wires_.send_on(test::ChannelId::kStore, bytes);
}

void ScriptedPeer::send_any_data() {
  auto const [channel, tag] = any_tag(script_);
  if (channel == test::ChannelId::kStore) return send_data(tag, script_.number());
  wires_.send_data(tag, std::min(script_.number(), kBytesMax), 0, channel);
}

AnyMessage ScriptedPeer::any_message() {
  auto message = empty_message(script_.byte());
  for (int changes = script_.byte() % 8; changes > 0; --changes) corrupt(message);
  return message;
}

void ScriptedPeer::send_in(bool with_intents) {
  cache::GradientPhase message{.clock = Clock{clock_}, .report = {.samples = 1}};
  struct Part {
    std::vector<std::uint8_t> sums, occurrences;
  };
  std::vector<Part> parts;
  auto const mine = mine_.find(clock_);
  if (mine != mine_.end()) {
    for (auto const& [table, keys] : mine->second.parts) {
      auto& part = parts.emplace_back();
      std::uint64_t sent = 0;
      if (keys > 0) {
        part.sums = options_of(table).gradient_compression.enabled()
                        ? residual_rows(table, std::min(keys, kBytesMax), sent)
                        : packed_rows(std::min(keys, kBytesMax), dim_of(table));
      }
      if (keys > 0 && counts_occurrences(table))
        part.occurrences = packed_rows((std::min(keys, kBytesMax) + 15) / 16, 16);
      message.gradients.push_back({part.sums.size(), part.occurrences.size(), sent});
    }
  }
  for (int i = with_intents ? script_.byte() % 4 : 0; i > 0; --i) {
    auto const clock = clock_ + 1 + script_.byte() % 4;
    if (mine_.contains(clock)) continue;
    message.intents.batches.push_back(mine_[clock] = make_intent(clock));
  }
  auto const keys = encode_keys(message.intents.batches, false);
  message.intents.key_bytes = keys.size();
  auto const late = add_flushed(message);  // encoded with the slots of these keys
  send(message);
  sent_in_ = true;
  std::vector<std::uint8_t> body;
  auto const add = [&](std::vector<std::uint8_t> const& section) {
    if (section.empty()) return;
    body.resize(cache::after_section(0, body.size()));
    body.insert(body.end(), section.begin(), section.end());
  };
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (options_of(mine->second.parts[p].table).gradient_compression.enabled()) {
      if (!parts[p].sums.empty()) send_bytes(tag(Section::kGradients, word(message.clock), p), parts[p].sums);
    } else {
      add(parts[p].sums);
    }
    add(parts[p].occurrences);
  }
  if (!body.empty()) send_bytes(tag(Section::kGradientBody, word(message.clock), 0), body);
  for (std::size_t list = 0; list < late.size(); ++list) {
    send_bytes(tag(Section::kFlushedKeys, word(message.clock), list), late[list].keys);
    send_bytes(tag(Section::kFlushedSums, word(message.clock), list), late[list].sums);
  }
  if (!keys.empty()) send_bytes(tag(Section::kKeys, word(message.clock), 0), keys);
}

void ScriptedPeer::send_out() {
  Clock const next{clock_ + 1};
  auto const request = requested_.find(clock_ + 1);
  bool const values = request != requested_.end() && !late_fetched_[clock_ + 1];
  cache::RefreshPhase message{.clock = Clock{clock_}};
  if (values) message.parts = request->second.parts.size(), message.sent = any_sent(request->second);
  send(message);
  if (values) send_values(request->second, Section::kValues, number(next), message.sent);
  ++clock_;
  sent_in_ = false;
}

void ScriptedPeer::fetch_late() {
  auto const clock = clock_ + script_.byte() % 2;
  auto const intent = make_intent(clock);
  mine_[clock] = intent;
  auto const id = next_request_++;
  auto const keys = encode_keys({intent}, true);
  send(cache::LateFetch{.id = id, .intent = intent, .key_bytes = keys.size()});
  if (!keys.empty()) send_bytes(tag(Section::kLateFetchKeys, id, 0), keys);
}

void ScriptedPeer::answer() {
  if (unanswered_.empty()) return;
  auto const request = unanswered_.front();
  unanswered_.pop_front();
  std::visit([this](auto const& one) { answer(one); }, request);
}

void ScriptedPeer::answer(cache::LateFetch const& request) {
  auto const sent = any_sent(request.intent);
  send(cache::LateFetchReply{.clock = request.intent.clock, .id = request.id, .sent = sent});
  send_values(request.intent, Section::kLateFetchValues, static_cast<std::int64_t>(request.id), sent);
}

void ScriptedPeer::answer(cache::RowRequestHeader const& request) {
  send(cache::RowReplyHeader{.kind = request.kind, .id = request.id});
  if (request.kind != RowRequestKind::kLookup) return;
  send_data(tag(Section::kRequestValues, request.id, 0), float_bytes(request.table, request.keys));
  send_data(tag(Section::kRequestFound, request.id, 0), request.keys);
}

void ScriptedPeer::request() {
  static constexpr RowRequestKind kRequests[] = {RowRequestKind::kLookup, RowRequestKind::kAssign,
                                                 RowRequestKind::kErase};
  cache::RowRequestHeader message{.kind = kRequests[script_.byte() % std::size(kRequests)], .id = next_request_++};
  message.table = TableId{static_cast<std::uint32_t>(script_.byte() % std::size(kDims))};
  message.keys = script_.rarely(8) ? script_.number() : script_.byte() % 8;
  requests_[message.id] = message;
  send(message);
  send_keys(Section::kRequestKeys, message.id, kMyRank, message.keys);
  if (message.kind == RowRequestKind::kAssign) {
    send_data(tag(Section::kRequestValues, message.id, kMyRank), float_bytes(message.table, message.keys));
  }
}

void ScriptedPeer::gather() {
  auto const choice = script_.byte() % 32;
  std::string const bytes = choice % 2 == 1 ? std::string(8, '\1') : "";
  bool const more = choice == 31;
  send(cache::GatherPart{.id = gathers_, .call = call_, .bytes = bytes, .more = more});
  if (!more) ++gathers_;
}

// Sends the peer's part of the next allreduce, with as many elements as rank 0 has, if rank 0 has begun it.
void ScriptedPeer::sum() {
  auto const id = sums_++;
  auto const elements = id < sums_received_.size() ? sums_received_[id] : script_.byte() % 8;
  send_header(id, {.signature = comm::Signature{comm::CollectiveKind::kSumIntegers, elements, {}}});
  if (elements == 0) return;
  // Zeros are packed as widths alone: all of a short array, or rank 0's slice and the peer's slice of a long one.
  std::string const zeros(8, '\0');
  std::uint64_t const messages = comm::fits_eager(2, comm::packed_bytes_max(elements)) ? 1 : 2;
  for (std::uint64_t i = 0; i < messages; ++i)
    send_header(id, {.message = comm::CollectiveHeader::MessagePart{i, 8, zeros}});
}
void ScriptedPeer::send_header(std::uint64_t id, comm::CollectiveHeader const& header) {
  send(EncodedHeader{id, encode(header)});
}

bool ScriptedPeer::cooperate() {
  bool const taken = receive_all();
  exact_ = true;
  bool did = true;
  if (!unanswered_.empty()) {
    answer();
  } else if (gathers_ < gathers_received_) {
    gather();
  } else if (sums_ < sums_received_.size()) {
    sum();
  } else if (received_in_ >= clock_ && !sent_in_) {
    send_in(true);
  } else if (received_in_ >= clock_ && received_out_ >= clock_ - 1 && sent_in_) {
    send_out();
  } else {
    did = taken;
  }
  exact_ = false;
  return did;
}

void ScriptedPeer::act(std::uint8_t action) {
  exact_ = false;  // an error may have interrupted cooperate()
  switch (action % kActions) {
    case 0:
      cooperate();
      return;
    case 1:
      cooperates_ = !cooperates_;
      return;
    case 2:
      return send_in(true);
    case 3:
      return send_out();
    case 4:
      return fetch_late();
    case 5:
      return answer();
    case 6:
      return request();
    case 7:
      return gather();
    case 8:
      receive_all();
      if (script_.rarely(64)) sum();
      return;
    case 9:
      return send(last_);
    case 10:
      return send(any_message());
    case 11:
      return send_any_bytes();
    case 12:
      return send_any_data();
    case 13: {
      auto const [channel, tag] = any_tag(script_);
      return wires_.receive_data(tag, script_.number() % kBytesMax, channel);
    }
    case 14:
      return wires_.leave(script_.text(40));
    default:
      return send_keys(section_of(script_.byte() % kSections), script_.number(), script_.byte() % 4,
                       script_.byte() % 8);
  }
}

}  // namespace gpups::fuzz
