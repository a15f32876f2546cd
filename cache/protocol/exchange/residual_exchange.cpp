// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/exchange/residual_exchange.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "cache/wire/key_coding.hpp"
#include "cache/wire/row_coder.hpp"
#include "comm/base/serialization.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/codec/accumulate_residual.hpp"

namespace gpups::cache {
namespace {

// Adds the sums of a row of a table to those that wait. Throws Error if a sum exceeds 2^62 units.
void add_row(TableOptions const& table, Key key, std::span<std::int64_t const> sums,
             std::map<Key, std::vector<std::int64_t>>& all) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  auto& row = all[key];
  row.resize(sums.size());
  for (std::size_t j = 0; j < sums.size(); ++j) {
    bool const overflows = __builtin_add_overflow(row[j], sums[j], &row[j]);
    GPUPS_REQUIRE(
        !overflows && row[j] <= kMost && row[j] >= -kMost,
        "the residuals of key {} in table '{}' are too large to be added up (a wrong gradient would be sent): "
        "restore a checkpoint into tables with a lower learning rate, or start again with a larger grid_log2",
        number(key), table.name);
  }
}

// Returns the rows with these keys.
ResidualChunk chunk_of(TableId table, std::map<Key, std::vector<std::int64_t>> const& all,
                       std::vector<Key> const& keys) {
  ResidualChunk chunk{.table = table, .kind = ResidualChunk::Kind::kWaits, .keys = keys, .marks = {}, .sums = {}};
  chunk.marks.resize(keys.size() * kernels::kResidualMarks);
  for (Key const key : keys) chunk.sums.insert(chunk.sums.end(), all.at(key).begin(), all.at(key).end());
  return chunk;
}

// Moves the rows with these keys from a chunk to a chunk of the kind kOwned.
ResidualChunk take_owned(ResidualChunk& from, std::size_t dim, std::set<Key> const& keys) {
  ResidualChunk owned{.table = from.table,
                      .kind = ResidualChunk::Kind::kOwned,
                      .threshold = from.threshold,
                      .keys = {},
                      .marks = {},
                      .sums = {}};
  auto others = owned;
  others.kind = from.kind;
  for (std::size_t i = 0; i < from.keys.size(); ++i) {
    auto& to = keys.contains(from.keys[i]) ? owned : others;
    auto const marks = from.marks.begin() + static_cast<std::ptrdiff_t>(i * kernels::kResidualMarks);
    auto const sums = from.sums.begin() + static_cast<std::ptrdiff_t>(i * dim);
    to.keys.push_back(from.keys[i]);
    to.marks.insert(to.marks.end(), marks, marks + kernels::kResidualMarks);
    to.sums.insert(to.sums.end(), sums, sums + static_cast<std::ptrdiff_t>(dim));
  }
  from = std::move(others);
  return owned;
}

std::vector<Key> keys_in(std::map<Key, std::vector<std::int64_t>> const& all) {
  std::vector<Key> keys;
  for (auto const& [key, sums] : all) keys.push_back(key);
  return keys;
}

}  // namespace

// -- senders --

Rank ResidualExchange::home_of(Key key) const {
  return Rank{kernels::home_of(key, static_cast<std::uint32_t>(state_.ranks))};
}

// Returns the ranks to which rows are sent: the homes, and the owners of rows that are at home here.
std::vector<Rank> ResidualExchange::wait_ranks_for(TableId table, std::vector<Key> const& keys) const {
  std::vector<Rank> ranks;
  std::vector<std::size_t> own;
  std::vector<Key> own_keys;
  for (Key const key : keys) {
    ranks.push_back(home_of(key));
    if (ranks.back() != state_.me || !state_.placement.any_moved) continue;
    own.push_back(ranks.size() - 1);
    own_keys.push_back(key);
  }
  if (own.empty()) return ranks;
  auto const owners =
      state_.placement.at(table).wait_owners(state_.stream, View<Key const>(own_keys), state_.round.clock());
  for (std::size_t i = 0; i < own.size(); ++i) ranks[own[i]] = owners[i];
  return ranks;
}

void ResidualExchange::wait_encode() {
  GPUPS_ASSERT(encoded_.empty());
  auto& stream = state_.stream;
  encoded_ = residuals_.wait_take_flushed(
      stream, state_.round.clock(),
      [this](TableId table, std::vector<Key> const& keys) { return wait_ranks_for(table, keys); });
  for (auto const& [table, all] : waiting_) {
    auto const& options = state_.table(table).options();
    auto const keys = keys_in(all);
    auto const ranks = wait_ranks_for(table, keys);
    std::map<Rank, std::vector<Key>> by_rank;
    for (std::size_t i = 0; i < ranks.size(); ++i) by_rank[ranks[i]].push_back(keys[i]);
    for (auto const& [to, some] : by_rank) {
      auto const sums = padded_sums(stream, chunk_of(table, all, some), options.dim);
      auto bytes = RowCoder(options, options.gradient_compression, true).wait_encode(stream, sums, 0);
      encoded_.push_back(
          {table,
           {.to = to, .exact = true, .keys = some, .bytes = std::make_shared<kernels::PackedBytes>(std::move(bytes))}});
    }
  }
}

std::vector<FlushedList> ResidualExchange::send(Rank to, std::vector<std::function<void()>>& sends) {
  std::vector<FlushedList> all;
  for (auto const& [table, rows] : encoded_) {
    if (rows.to == to) all.push_back(queue(table, rows, all.size(), sends));
  }
  return all;
}

FlushedList ResidualExchange::queue(TableId table, ResidualTable::FlushedRows const& rows, std::size_t list,
                                    std::vector<std::function<void()>>& sends) {
  // The receiver sorts the keys that it decodes, and adds the sums in this order.
  GPUPS_ASSERT(std::is_sorted(rows.keys.begin(), rows.keys.end()));
  auto const keys = std::make_shared<std::vector<std::uint8_t>>();
  intents_.encode_known(rows.to, table, View<Key const>(rows.keys), *keys);
  state_.messenger.count_flushed(&Traffic::gradients, keys->size() + rows.bytes->size);
  sends.push_back([=, this, to = rows.to, sums = rows.bytes, step = state_.step()] {
    state_.messenger.send_data(state_.on_host, to, tag(Section::kFlushedKeys, step, list), keys->data(), keys->size(),
                               &Traffic::gradients, keys);
    state_.messenger.send_data(state_.stream, to, tag(Section::kFlushedSums, step, list), sums->memory.data(),
                               sums->size, &Traffic::gradients, sums);
  });
  return {table, rows.keys.size(), keys->size(), rows.bytes->size, rows.exact};
}

// -- receivers --

void ResidualExchange::check(Rank from, std::vector<FlushedList> const& lists) const {
  for (auto const& list : lists) {
    // Restored residuals are sent exactly, even if the table's gradients are not compressed any more.
    if (number(list.table) >= state_.tables.size() ||
        (!state_.table(list.table).options().gradient_compression.enabled() &&
         !(list.exact && has_restored(list.table)))) {
      state_.throw_peer_error(from, "sent residuals for a table without gradient compression");
    }
    auto const& options = state_.table(list.table).options();
    if (!RowCoder(options, options.gradient_compression, list.exact).is_valid_size(list.bytes, list.rows)) {
      state_.throw_peer_error(from, "sent residuals whose size is impossible for their rows");
    }
  }
}

void ResidualExchange::receive(Rank from, std::vector<FlushedList> const& lists, std::function<void()> const& taken) {
  auto const step = state_.step();
  for (std::size_t i = 0; i < lists.size(); ++i) {
    auto const& list = flushed_.emplace_back(ReceivedFlush{from, lists[i], std::make_shared<Array<std::uint8_t>>(),
                                                           std::make_shared<kernels::PackedBytes>()});
    auto const keys_there = [keys = list.keys, size = list.rows.key_bytes] {
      *keys = Array<std::uint8_t>(Device::host(), size);
      return keys->data();
    };
    state_.messenger.receive_data(state_.on_host, from, tag(Section::kFlushedKeys, step, i), list.rows.key_bytes,
                                  keys_there, taken);
    auto const sums_there = [bytes = list.bytes, device = state_.stream.device(), size = list.rows.bytes] {
      *bytes = {.memory = Array<std::uint8_t>(device, size), .size = size};
      return bytes->memory.data();
    };
    state_.messenger.receive_data(state_.stream, from, tag(Section::kFlushedSums, step, i), list.rows.bytes, sums_there,
                                  taken);
  }
}

// Returns the keys of flushed residuals in ascending order, which is the order of their sums. REQUIRES: the intents of
// this round are decoded and none of the next round is, because both change the key dictionary.
std::vector<Key> ResidualExchange::keys_of(ReceivedFlush const& list) try {
  GPUPS_ASSERT(state_.round.applied() == state_.round.clock());
  std::string_view bytes(reinterpret_cast<char const*>(list.keys->data()), list.keys->size());
  auto keys = announced_.decode_known(list.from, list.rows.table, bytes, list.rows.rows);
  if (!bytes.empty()) throw comm::SerializationError("more bytes than its keys need");
  return keys;
} catch (comm::SerializationError const& error) {
  state_.throw_peer_error(list.from, fmt::format("sent residuals with {}", error.what()));
}

// Decodes flushed rows. Returns the sums of those that this rank owns, in `room`; nullopt if it owns none. The next
// step sends the others to their owners.
std::optional<RowSums> ResidualExchange::wait_decode(Rank from, TableId table, ResidualTable::FlushedRows const& rows,
                                                     FlushedSums& room) {
  auto& stream = state_.stream;
  auto const& options = state_.table(table).options();
  std::size_t const n = rows.keys.size();
  room.sums = Matrix<std::int64_t>(stream.device(), n, options.dim);
  memory::fill_bytes(stream, room.sums.view().data(), 0, room.sums.view().flat().bytes());
  RowCoder const coder(options, options.gradient_compression, rows.exact);
  View<std::uint8_t const> const bytes(rows.bytes->memory.data(), rows.bytes->size, stream.device());
  if (!coder.wait_add(stream, bytes, n, {}, room.sums)) {
    state_.throw_peer_error(from, "sent residuals that do not match the number of their rows");
  }
  auto const ranks = wait_ranks_for(table, rows.keys);
  std::vector<Key> own;
  std::vector<std::uint32_t> positions;
  std::vector<std::int64_t> sums;  // with padding
  for (std::size_t i = 0; i < n; ++i) {
    bool const at_home = home_of(rows.keys[i]) == state_.me;
    if (!at_home && ranks[i] != from)
      state_.throw_peer_error(from, "sent residuals of rows to a rank that is not their home");
    if (!at_home || ranks[i] == state_.me) {
      own.push_back(rows.keys[i]);
      positions.push_back(static_cast<std::uint32_t>(i));
      continue;
    }
    if (sums.empty()) sums = to_host(stream, room.sums.view().flat());
    std::span<std::int64_t const> const row(sums.data() + i * room.sums.view().stride(), options.dim);
    add_row(options, rows.keys[i], row, relayed_[table]);
  }
  if (own.empty()) return std::nullopt;
  auto listed = wait_resolved(to_device(stream, own), table, room);
  if (own.size() == n) return listed;
  room.positions = to_device(stream, positions);
  listed.positions = room.positions;
  return listed;
}

// Finds or reserves the rows of `keys`; row i of room.sums belongs to keys[i]. They count as no occurrences.
RowSums ResidualExchange::wait_resolved(View<Key const> keys, TableId table, FlushedSums& room) {
  auto& stream = state_.stream;
  room.ids = Array<std::uint32_t>(stream.device(), keys.size());
  state_.table(table).wait_resolve(stream, keys, room.ids);
  room.counts = Array<std::int64_t>(stream.device(), keys.size());
  memory::fill_bytes(stream, room.counts.data(), 0, room.counts.bytes());
  return {.ids = room.ids, .sums = room.sums, .counts = room.counts};
}

// -- a step --

// Returns the keys of rows that have moved to this rank before the step.
Array<Key> ResidualExchange::wait_arrived(TableId table) const {
  auto& stream = state_.stream;
  std::vector<Key> keys;
  auto const found = state_.batches.find(state_.round.clock());
  if (found != state_.batches.end()) {
    for (auto const& part : found->second.batch->parts) {
      if (part.table != table || part.arriving.size() == 0) continue;
      auto const of_part = to_host(stream, keys_at(stream, part, part.arriving.positions).view());
      keys.insert(keys.end(), of_part.begin(), of_part.end());
    }
  }
  if (auto const owned = restored_owned_.find(table); owned != restored_owned_.end()) {
    keys.insert(keys.end(), owned->second.begin(), owned->second.end());
  }
  return to_device(stream, keys);
}

void ResidualExchange::wait_begin_apply(bool rejected) {
  if (state_.round.all().samples > 0) samples_ = state_.round.all().samples;
  resends_all_values_ = residuals_.sends_all() && !rejected;
  residuals_.wait_end_step(state_.stream, rejected);
  if (!rejected) return;
  // The rows may move again before the next step, so their residuals are sent like others.
  for (std::uint32_t t = 0; t < state_.tables.size(); ++t) {
    if (residuals_.has(TableId{t})) send_early(TableId{t}, to_host(state_.stream, wait_arrived(TableId{t}).view()));
  }
}

void ResidualExchange::wait_append(TableId table, std::vector<RowSums>& lists, std::deque<FlushedSums>& room) {
  auto& stream = state_.stream;
  auto const append = [&](Rank from, ResidualTable::FlushedRows const& rows) {
    auto const sums = wait_decode(from, table, rows, room.emplace_back());
    if (sums) lists.push_back(*sums);
  };
  for (auto const& list : flushed_) {
    if (list.rows.table != table) continue;
    GPUPS_ASSERT(list.keys->size() == list.rows.key_bytes && list.bytes->memory.size() == list.rows.bytes);
    append(list.from, {.to = state_.me, .exact = list.rows.exact, .keys = keys_of(list), .bytes = list.bytes});
  }
  for (auto const& [of_table, rows] : encoded_) {
    if (of_table == table && rows.to == state_.me) append(state_.me, rows);
  }
  if (!residuals_.has(table)) return;
  auto const arrived = wait_arrived(table);
  if (arrived.size() == 0) return;
  auto taken = of(table).wait_take(stream, arrived);
  if (taken.keys.size() == 0) return;
  auto& memory = room.emplace_back();
  memory.sums = std::move(taken.sums);
  lists.push_back(wait_resolved(taken.keys, table, memory));
}

void ResidualExchange::end_apply(bool rejected) {
  flushed_.clear();
  encoded_.clear();
  restored_owned_.clear();
  if (rejected) return;
  waiting_ = std::exchange(relayed_, {});
  restored_tables_.clear();
  state_.has_restored = false;
}

// -- rows that are deleted --

std::vector<Key> ResidualExchange::wait_keys(TableId table) const {
  auto keys = residuals_.wait_keys(state_.stream, table);
  auto const waiting = waiting_.find(table);
  if (waiting != waiting_.end()) {
    for (Key const key : keys_in(waiting->second)) keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

void ResidualExchange::wait_drop(TableId table, View<Key const> keys) {
  residuals_.wait_drop(state_.stream, table, keys);
  auto const waiting = waiting_.find(table);
  auto const owned = restored_owned_.find(table);
  if (waiting == waiting_.end() && owned == restored_owned_.end()) return;
  auto const dropped = to_host(state_.stream, keys);
  if (waiting != waiting_.end()) {
    for (Key const key : dropped) waiting->second.erase(key);
  }
  if (owned != restored_owned_.end()) {
    std::set<Key> const all(dropped.begin(), dropped.end());
    std::erase_if(owned->second, [&](Key key) { return all.contains(key); });
  }
}

// -- checkpoints --

void ResidualExchange::wait_save(ResidualFile& file) const {
  file.writer = state_.me;
  file.writers = static_cast<std::uint32_t>(state_.ranks);
  file.samples = samples_;
  file.resends_all_values = resends_all_values_;
  for (auto& chunk : residuals_.wait_save(state_.stream)) {
    auto const arrived = to_host(state_.stream, wait_arrived(chunk.table).view());
    bool const is_sent = chunk.kind == ResidualChunk::Kind::kEarly || arrived.empty();
    auto owned = is_sent ? ResidualChunk()
                         : take_owned(chunk, state_.table(chunk.table).dim(), {arrived.begin(), arrived.end()});
    file.chunks.push_back(std::move(chunk));
    if (!owned.keys.empty()) file.chunks.push_back(std::move(owned));
  }
  for (auto const& [table, all] : waiting_) {
    if (!all.empty()) file.chunks.push_back(chunk_of(table, all, keys_in(all)));
  }
}

void ResidualExchange::wait_load(ResidualFile const& file) {
  samples_ = file.samples;
  bool const same_ranks = file.writers == static_cast<std::uint32_t>(state_.ranks);
  if (same_ranks && file.writer == state_.me) resends_all_values_ = file.resends_all_values;
  for (auto const& chunk : file.chunks) {
    auto const& options = state_.table(chunk.table).options();
    if (same_ranks && options.gradient_compression.enabled() && chunk.kind != ResidualChunk::Kind::kWaits) {
      if (file.writer != state_.me) continue;
      of(chunk.table).wait_load(state_.stream, chunk);
      if (chunk.kind == ResidualChunk::Kind::kOwned) restored_owned_[chunk.table] = chunk.keys;
      continue;
    }
    restored_tables_.insert(chunk.table);
    state_.has_restored = true;
    std::span<std::int64_t const> const sums(chunk.sums);
    for (std::size_t i = 0; i < chunk.keys.size(); ++i) {
      if (home_of(chunk.keys[i]) != state_.me) continue;
      add_row(options, chunk.keys[i], sums.subspan(i * options.dim, options.dim), waiting_[chunk.table]);
    }
  }
}

}  // namespace gpups::cache
