// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/scripted_peer.hpp"

#include <algorithm>
#include <numeric>

#include "comm/collectives/allreduce/packed_integers.hpp"
#include "comm/collectives/collective_header.hpp"
#include "gpups/array.hpp"

namespace gpups::fuzz {
namespace {

using cache::Intent;
using cache::Message;
using cache::MessageKind;
using cache::Section;
using cache::tag;

// Kinds: those of the store's messages, and the header of a collective, whose run is `id`. Sections: those of the
// store's transfers, and one for those of collectives.
constexpr int kKinds = 24, kSections = 17;
constexpr MessageKind kHeader{static_cast<std::uint8_t>(MessageKind::kWhereReply) + 1};
constexpr std::uint64_t kCollectiveKind = 11, kCollectiveSection = 8;  // their numbers in scripts

MessageKind kind_of(std::uint64_t choice) {
  choice %= kKinds;
  if (choice == kCollectiveKind) return kHeader;
  return static_cast<MessageKind>(choice > kCollectiveKind ? choice - 1 : choice);
}
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

void ScriptedPeer::corrupt(Message& message) {
  if (exact_ || !script_.rarely(40)) return;
  auto const value = script_.number();
  switch (script_.byte() % 19) {
    case 0:
      message.kind = kind_of(value);
      break;
    case 1:
      message.clock = Clock{static_cast<std::int64_t>(value)};
      break;
    case 2:
      message.id = value;
      break;
    case 3:
      message.samples = value;
      break;
    case 4:
      message.signal = static_cast<std::uint32_t>(value);
      break;
    case 5:
      message.error = script_.text(40);
      break;
    case 6:
      message.parts = value;
      break;
    case 7:
      message.table = TableId{static_cast<std::uint32_t>(value)};
      break;
    case 8:
      message.keys = value;
      break;
    case 9:
      message.bytes = script_.text(40);
      break;
    case 10:
      message.intents.push_back(make_intent(static_cast<std::int64_t>(value)));
      break;
    case 15:
      message.forwards.push_back({Rank{static_cast<std::uint32_t>(script_.number())},
                                  static_cast<cache::RowRole>(value % 4), make_intent(clock_ + 2)});
      break;
    case 16:
      message.routes.push_back({Clock{clock_ + 1}, {{script_.byte() % 2 == 1, script_.byte() % 2 == 1}}});
      break;
    case 17:
      message.route_bytes = value;
      break;
    case 18:
      message.moved_sent.push_back(value);
      break;
    case 11:
      if (!message.bytes.empty()) message.bytes[value % message.bytes.size()] = static_cast<char>(script_.byte());
      break;
    case 12:
      message.key_bytes = message.forward_bytes = value;
      break;
    case 13:
      message.gradients.push_back({value, script_.number(), script_.number()});
      break;
    default:
      if (!message.intents.empty()) message.intents.back().clock = Clock{static_cast<std::int64_t>(value)};
      break;
  }
}

void ScriptedPeer::send(Message message) {
  corrupt(message);
  message.kind == kHeader ? wires_.send_header(message.id, message.bytes) : wires_.send(message);
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

Message ScriptedPeer::any_message() {
  Message message{.kind = kind_of(script_.byte())};
  for (int changes = script_.byte() % 8; changes > 0; --changes) corrupt(message);
  return message;
}

void ScriptedPeer::send_in(bool with_intents) {
  Message message{.kind = MessageKind::kGradientPhase, .clock = Clock{clock_}, .samples = 1};
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
    message.intents.push_back(mine_[clock] = make_intent(clock));
  }
  auto const keys = encode_keys(message);
  message.key_bytes = keys.size();
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
  Message message{.kind = MessageKind::kRefreshPhase, .clock = Clock{clock_}};
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
  Message message{.kind = MessageKind::kLateFetch, .clock = Clock{clock}, .id = next_request_++, .intents = {intent}};
  auto const keys = encode_keys(message);
  message.key_bytes = keys.size();
  send(message);
  if (!keys.empty()) send_bytes(tag(Section::kLateFetchKeys, message.id, 0), keys);
}

void ScriptedPeer::answer() {
  if (unanswered_.empty()) return;
  auto const request = unanswered_.front();
  unanswered_.pop_front();
  if (request.kind == MessageKind::kLateFetch) {
    auto const sent = any_sent(request.intents[0]);
    send({.kind = MessageKind::kLateFetchReply, .clock = request.clock, .id = request.id, .sent = sent});
    send_values(request.intents[0], Section::kLateFetchValues, static_cast<std::int64_t>(request.id), sent);
  } else if (request.kind == MessageKind::kLookup) {
    send({.kind = MessageKind::kLookupReply, .id = request.id});
    send_data(tag(Section::kRequestValues, request.id, 0), float_bytes(request.table, request.keys));
    send_data(tag(Section::kRequestFound, request.id, 0), request.keys);
  } else {
    bool const assign = request.kind == MessageKind::kAssign;
    send({.kind = assign ? MessageKind::kAssignReply : MessageKind::kEraseReply, .id = request.id});
  }
}

void ScriptedPeer::request() {
  static constexpr MessageKind kKinds[] = {MessageKind::kLookup, MessageKind::kAssign, MessageKind::kErase};
  Message message{.kind = kKinds[script_.byte() % std::size(kKinds)], .id = next_request_++};
  message.table = TableId{static_cast<std::uint32_t>(script_.byte() % std::size(kDims))};
  message.keys = script_.rarely(8) ? script_.number() : script_.byte() % 8;
  requests_[message.id] = message;
  send(message);
  send_keys(Section::kRequestKeys, message.id, kMyRank, message.keys);
  if (message.kind == MessageKind::kAssign) {
    send_data(tag(Section::kRequestValues, message.id, kMyRank), float_bytes(message.table, message.keys));
  }
}

void ScriptedPeer::gather() {
  send({.kind = MessageKind::kGather,
        .id = gathers_++,
        .bytes = script_.byte() % 2 == 1 ? std::string(8, '\1') : "",
        .call = call_});
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
  send({.kind = kHeader, .id = id, .bytes = encode(header)});
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
