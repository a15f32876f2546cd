// SPDX-License-Identifier: Apache-2.0
// The keys and gradients that a scripted peer sends.
#include <algorithm>

#include "tests/fuzz/scripted_peer.hpp"

namespace gpups::fuzz {

using cache::Message;
using cache::MessageKind;

void ScriptedPeer::send_bytes(std::uint64_t tag, std::vector<std::uint8_t> bytes) {
  if (!exact_) {
    if (script_.rarely(10)) return;
    if (script_.rarely(10)) bytes.resize(std::min(script_.number(), kBytesMax));
    if (script_.rarely(10)) tag = script_.number() << 48 | script_.number();
    for (int i = script_.rarely(64) ? script_.byte() % 4 : 0; i > 0 && !bytes.empty(); --i) {
      bytes[script_.number() % bytes.size()] = script_.byte();
    }
  }
  wires_.send_data(tag, bytes);
}

// Rows of sums that are all as wide, of any bytes.
std::vector<std::uint8_t> ScriptedPeer::narrow_rows(std::size_t rows, std::size_t dim) {
  std::size_t const width = script_.byte() % 9, head = (rows + 1) / 2;
  std::vector<std::uint8_t> bytes(std::min<std::size_t>(head + rows * dim * width, kBytesMax), script_.byte());
  std::fill_n(bytes.begin(), std::min(head, bytes.size()), static_cast<std::uint8_t>(width * 17));
  return bytes;
}

// The keys of the batches that a message announces, as they travel.
std::vector<std::uint8_t> ScriptedPeer::name_keys(Message const& message) {
  bool const urgent = message.kind == MessageKind::kUrgent;
  std::vector<std::uint8_t> bytes;
  for (auto const& intent : message.intents) {
    for (auto const& [table, count] : intent.parts) {
      std::vector<Key> keys(std::min<std::size_t>(count, kBytesMax / sizeof(Key)));
      std::uint64_t const first = script_.byte();
      for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = Key{(first + i) << (first % 2 * 40)};
      cache::NamedKeys none(0);
      auto& named = urgent ? none : named_.try_emplace(table, kDictionaryKeys).first->second;
      named.wait_name(stream_, View<Key const>(keys), intent.clock, message.clock, bytes);
    }
  }
  return bytes;
}

}  // namespace gpups::fuzz
