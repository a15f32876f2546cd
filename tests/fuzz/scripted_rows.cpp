// SPDX-License-Identifier: Apache-2.0
// The keys, gradients and changes of rows that a scripted peer sends.
#include <algorithm>
#include <cstring>
#include <deque>

#include "cache/protocol/exchange/value_exchange.hpp"
#include "cache/wire/gradient_section.hpp"
#include "tests/fuzz/scripted_peer.hpp"

namespace gpups::fuzz {
namespace {

using cache::Intent;
using cache::Section;
using cache::tag;

// Returns a list whose first key follows again, `times` times in all, which is invalid if that is more than once.
std::vector<std::uint8_t> repeated_key(Key key, std::size_t times) {
  std::size_t const head = 1 + (times + 3) / 4;
  std::vector<std::uint8_t> list(head + times * sizeof key, 0xFF);  // gaps that are too large, after the first one
  list[0] = 7;                                                      // gaps have 8 bytes
  std::memcpy(list.data() + head, &key, sizeof key);
  return list;
}

}  // namespace

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

// Returns packed rows of equal width, with any bytes as sums.
std::vector<std::uint8_t> ScriptedPeer::packed_rows(std::size_t rows, std::size_t dim) {
  std::size_t const width = script_.byte() % 9, head = (rows + 1) / 2;
  std::vector<std::uint8_t> bytes(std::min<std::size_t>(head + rows * dim * width, kBytesMax), script_.byte());
  std::fill_n(bytes.begin(), std::min(head, bytes.size()), static_cast<std::uint8_t>(width * 17));
  return bytes;
}

// -- tables with residuals --

// Returns equal sums of any magnitude, some larger than a row may have.
Matrix<std::int64_t> ScriptedPeer::any_sums(std::size_t rows, std::size_t dim) {
  Matrix<std::int64_t> sums(stream_.device(), rows, dim);
  auto const sum = static_cast<std::int64_t>(script_.byte()) << script_.byte() % 54;
  memory::fill_bytes(stream_, sums.view().data(), 0, sums.view().flat().bytes());
  for (std::size_t i = 0; i < rows; ++i) std::fill_n(sums.view().row(i), dim, sum);
  return sums;
}

// Returns the gradients of some rows of a part.
std::vector<std::uint8_t> ScriptedPeer::residual_rows(TableId table, std::size_t rows, std::uint64_t& sent) {
  std::vector<std::uint32_t> numbers;
  std::uint32_t const each = 1 + script_.byte() % 3;
  for (std::uint32_t i = 0; i < rows; i += each) numbers.push_back(i);
  sent = numbers.size();
  auto const section = cache::GradientSection(options_of(table))
                           .wait_write(stream_, to_device(stream_, numbers), rows,
                                       any_sums(sent, kDims[number(table) % std::size(kDims)]));
  return to_host(stream_, section.memory.view().slice(0, section.size));
}

// Sometimes adds lists of flushed rows to the message, mostly of the table with residuals.
std::vector<ScriptedPeer::FlushedRows> ScriptedPeer::add_flushed(cache::GradientPhase& message) {
  std::vector<FlushedRows> lists(script_.rarely(64) ? 1 + script_.byte() % 2 : 0);
  for (auto& list : lists) {
    TableId const table{script_.rarely(32) ? 0U : 2U};
    auto const options = options_of(table);
    std::vector<Key> keys;
    for (std::uint64_t key = script_.byte(), n = 1 + script_.byte() % 5; n > 0; --n) keys.push_back(Key{key++});
    encoders_.try_emplace(table, kDictionaryKeys).first->second.encode_known(View<Key const>(keys), list.keys);
    if (script_.rarely(16)) list.keys = repeated_key(keys[0], keys.size());
    bool const exact = script_.byte() % 2 == 1;
    auto const coded = cache::RowCoder(options, options.gradient_compression, exact)
                           .wait_encode(stream_, any_sums(keys.size(), options.dim), 0);
    list.sums = to_host(stream_, coded.memory.view().slice(0, coded.size));
    message.flushed.push_back({table, keys.size(), list.keys.size(), list.sums.size(), exact});
  }
  return lists;
}

// Returns how many rows of each part are sent; empty: all.
std::vector<std::uint64_t> ScriptedPeer::any_sent(cache::Intent const& intent) {
  std::vector<std::uint64_t> sent(intent.parts.size(), 0);
  bool fewer = script_.rarely(64);
  for (auto const& [table, keys] : intent.parts) fewer = fewer || options_of(table).refresh_compression.enabled();
  for (std::size_t p = 0; p < sent.size(); ++p) {
    auto const keys = intent.parts[p].keys;
    if (keys == 0) continue;
    sent[p] = exact_ || !script_.rarely(32) ? script_.byte() % (std::min(keys, kBytesMax) + 1) : script_.number();
  }
  return fewer ? sent : std::vector<std::uint64_t>();
}

namespace {

// Sets the bits of the first `count` rows of a bitmap, and clears the others.
void mark_first(std::uint8_t* bitmap, std::size_t rows, std::size_t count) {
  std::fill_n(bitmap, (rows + 31) / 32 * 4, std::uint8_t{0});
  for (std::size_t i = 0; i < count; ++i) bitmap[i / 8] |= static_cast<std::uint8_t>(1U << i % 8);
}

}  // namespace

// Returns the layout of the values for an intent; nullopt if there are none: too many keys, or too many rows sent.
std::optional<cache::ValueBody> ScriptedPeer::values_of(Intent const& intent, std::vector<std::uint64_t> const& sent) {
  std::deque<TableOptions> tables;
  std::vector<cache::ValueBody::PartRows> parts;
  for (std::size_t p = 0; p < intent.parts.size(); ++p) {
    auto const& [table, keys] = intent.parts[p];
    std::uint64_t const rows = p < sent.size() ? sent[p] : keys;
    if (keys >= kBytesMax || rows > keys) return std::nullopt;
    parts.push_back({&tables.emplace_back(options_of(table)), keys, rows});
  }
  return cache::ValueBody(parts);
}

void ScriptedPeer::take_values(Intent const& intent, Section section, std::int64_t clock,
                               std::vector<std::uint64_t> const& sent) {
  auto const body = values_of(intent, sent);
  if (!body || body->bytes() == 0) return;
  wires_.receive_data(tag(section, static_cast<std::uint64_t>(clock), 0), body->bytes());
}

// Sends any bytes as codes or values, and marks the first rows as sent.
void ScriptedPeer::send_values(Intent const& intent, Section section, std::int64_t clock,
                               std::vector<std::uint64_t> const& sent) {
  auto const there = tag(section, static_cast<std::uint64_t>(clock), 0);
  auto const body = values_of(intent, sent);
  if (!body) return send_bytes(there, std::vector<std::uint8_t>(script_.byte()));
  if (body->bytes() == 0) return;
  std::vector<std::uint8_t> bytes(body->bytes(), script_.byte());
  for (std::size_t p = 0; p < intent.parts.size(); ++p) {
    auto const& [table, keys] = intent.parts[p];
    std::uint64_t const rows = p < sent.size() ? sent[p] : keys;
    if (keys == 0) continue;
    if (!options_of(table).refresh_compression.enabled()) {
      if (body->has_bitmaps()) mark_first(bytes.data() + 4 * body->bitmap_first(p), keys, rows);
    } else {
      std::size_t const end = body->section_first(p) + body->section_size(p);
      mark_first(bytes.data() + end - (keys + 31) / 32 * 4, keys, rows);
    }
  }
  send_bytes(there, bytes);
}

// Returns the encoded keys of batches that a message announces.
std::vector<std::uint8_t> ScriptedPeer::encode_keys(std::vector<Intent> const& batches, bool late) {
  std::vector<std::uint8_t> bytes;
  for (auto const& intent : batches) {
    for (auto const& [table, count] : intent.parts) {
      std::vector<Key> keys(std::min<std::size_t>(count, kBytesMax / sizeof(Key)));
      std::uint64_t const first = script_.byte();
      for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = Key{(first + i) << (first % 2 * 40)};
      cache::KeyEncoder none(0);
      auto& encoder = late ? none : encoders_.try_emplace(table, kDictionaryKeys).first->second;
      encoder.encode(View<Key const>(keys), bytes);
    }
  }
  return bytes;
}

}  // namespace gpups::fuzz
