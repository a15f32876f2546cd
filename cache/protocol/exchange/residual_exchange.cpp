// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/exchange/residual_exchange.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "cache/wire/key_coding.hpp"
#include "cache/wire/row_coder.hpp"
#include "comm/base/serialization.hpp"
#include "kernels/base/check.hpp"

namespace gpups::cache {
namespace {

// Returns the selected rows of a chunk, in ascending order of their keys.
template <class Selects>
ResidualChunk select_rows(ResidualChunk const& chunk, Rank peer, std::size_t dim, Selects const& selects) {
  ResidualChunk selected{.table = chunk.table, .peer = peer, .keys = {}, .marks = {}, .sums = {}};
  for (std::size_t const i : order_by_value(View<Key const>(chunk.keys))) {
    if (!selects(chunk.keys[i])) continue;
    selected.keys.push_back(chunk.keys[i]);
    auto const marks = chunk.marks.begin() + static_cast<std::ptrdiff_t>(i * kernels::kResidualMarks);
    selected.marks.insert(selected.marks.end(), marks, marks + kernels::kResidualMarks);
    auto const sums = chunk.sums.begin() + static_cast<std::ptrdiff_t>(i * dim);
    selected.sums.insert(selected.sums.end(), sums, sums + static_cast<std::ptrdiff_t>(dim));
  }
  return selected;
}

}  // namespace

std::vector<FlushedList> ResidualExchange::wait_send(Rank owner, std::vector<std::function<void()>>& sends) {
  std::vector<FlushedList> all;
  for (auto const& [table, flushed] : residuals_.wait_take_flushed(state_.stream, owner, state_.round.clock())) {
    all.push_back(wait_queue(owner, table, flushed, all.size(), sends));
  }
  for (auto const& chunk : restored_) {
    if (chunk.peer != owner) continue;
    auto const& options = state_.table(chunk.table).options();
    auto const sums = padded_sums(state_.stream, chunk, options.dim);
    auto bytes = RowCoder(options, options.gradient_compression, true).wait_encode(state_.stream, sums, 0);
    ResidualTable::FlushedRows const flushed{
        .exact = true, .keys = chunk.keys, .bytes = std::make_shared<kernels::PackedBytes>(std::move(bytes))};
    all.push_back(wait_queue(owner, chunk.table, flushed, all.size(), sends));
  }
  return all;
}

FlushedList ResidualExchange::wait_queue(Rank owner, TableId table, ResidualTable::FlushedRows const& rows,
                                         std::size_t list, std::vector<std::function<void()>>& sends) {
  // The owner sorts the keys that it decodes, and adds the sums in this order.
  GPUPS_ASSERT(std::is_sorted(rows.keys.begin(), rows.keys.end()));
  auto const keys = std::make_shared<std::vector<std::uint8_t>>();
  intents_.encode_known(owner, table, View<Key const>(rows.keys), *keys);
  state_.messenger.count_flushed(&Traffic::gradients, keys->size() + rows.bytes->size);
  sends.push_back([=, this, sums = rows.bytes, step = state_.step()] {
    state_.messenger.send_data(state_.on_host, owner, tag(Section::kFlushedKeys, step, list), keys->data(),
                               keys->size(), &Traffic::gradients, keys);
    state_.messenger.send_data(state_.stream, owner, tag(Section::kFlushedSums, step, list), sums->memory.data(),
                               sums->size, &Traffic::gradients, sums);
  });
  return {table, rows.keys.size(), keys->size(), rows.bytes->size, rows.exact};
}

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
                                                           std::make_shared<Array<std::uint8_t>>()});
    auto const keys_there = [keys = list.keys, size = list.rows.key_bytes] {
      *keys = Array<std::uint8_t>(Device::host(), size);
      return keys->data();
    };
    state_.messenger.receive_data(state_.on_host, from, tag(Section::kFlushedKeys, step, i), list.rows.key_bytes,
                                  keys_there, taken);
    auto const sums_there = [bytes = list.bytes, device = state_.stream.device(), size = list.rows.bytes] {
      *bytes = Array<std::uint8_t>(device, size);
      return bytes->data();
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

// Decodes flushed residuals into `room`.
RowSums ResidualExchange::wait_decode(ReceivedFlush const& list, FlushedSums& room) {
  GPUPS_ASSERT(list.keys->size() == list.rows.key_bytes && list.bytes->size() == list.rows.bytes);  // they have arrived
  auto& stream = state_.stream;
  auto& shard = state_.table(list.rows.table);
  auto const n = static_cast<std::size_t>(list.rows.rows);
  auto const keys = keys_of(list);
  room.sums = Matrix<std::int64_t>(stream.device(), n, shard.dim());
  memory::fill_bytes(stream, room.sums.view().data(), 0, room.sums.view().flat().bytes());
  RowCoder const coder(shard.options(), shard.options().gradient_compression, list.rows.exact);
  if (!coder.wait_add(stream, *list.bytes, n, {}, room.sums)) {
    state_.throw_peer_error(list.from, "sent residuals that do not match the number of their rows");
  }
  return wait_resolved(keys, list.rows.table, room);
}

// Finds or reserves the rows of `keys`; row i of room.sums belongs to keys[i]. They count as no occurrences.
RowSums ResidualExchange::wait_resolved(std::vector<Key> const& keys, TableId table, FlushedSums& room) {
  auto& stream = state_.stream;
  room.ids = Array<std::uint32_t>(stream.device(), keys.size());
  GPUPS_ASSERT(room.sums.rows() == keys.size());
  state_.table(table).wait_resolve(stream, to_device(stream, keys), room.ids);
  room.counts = Array<std::int64_t>(stream.device(), keys.size());
  memory::fill_bytes(stream, room.counts.data(), 0, room.counts.bytes());
  return {.ids = room.ids, .sums = room.sums, .counts = room.counts};
}

RowSums ResidualExchange::wait_read_restored(ResidualChunk const& chunk, FlushedSums& room) {
  room.sums = padded_sums(state_.stream, chunk, state_.table(chunk.table).dim());
  return wait_resolved(chunk.keys, chunk.table, room);
}

// -- a step --

void ResidualExchange::wait_begin_apply(bool rejected) {
  if (state_.round.all().samples > 0) samples_ = state_.round.all().samples;
  resends_all_values_ = residuals_.sends_all() && !rejected;
  residuals_.wait_end_step(state_.stream, rejected);
}

void ResidualExchange::wait_append(TableId table, std::vector<RowSums>& lists, std::deque<FlushedSums>& room) {
  for (auto const& list : flushed_) {
    if (list.rows.table == table) lists.push_back(wait_decode(list, room.emplace_back()));
  }
  for (auto const& chunk : restored_) {
    if (chunk.table != table || chunk.peer != state_.me) continue;
    lists.push_back(wait_read_restored(chunk, room.emplace_back()));
  }
}

void ResidualExchange::end_apply(bool rejected) {
  flushed_.clear();
  if (rejected) return;
  restored_.clear();
  restored_tables_.clear();
  state_.has_restored = false;
}

// -- rows that are deleted or move --

std::vector<Key> ResidualExchange::wait_keys(TableId table) const {
  auto keys = residuals_.wait_keys(state_.stream, table);
  for (auto const& chunk : restored_) {
    if (chunk.table == table) keys.insert(keys.end(), chunk.keys.begin(), chunk.keys.end());
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

void ResidualExchange::wait_drop(TableId table, View<Key const> keys) {
  residuals_.wait_drop(state_.stream, table, keys);
  auto const dropped = to_host(state_.stream, keys);
  std::set<Key> const all(dropped.begin(), dropped.end());
  for (auto& chunk : restored_) {
    if (chunk.table != table) continue;
    chunk = select_rows(chunk, chunk.peer, state_.table(table).dim(), [&](Key key) { return !all.contains(key); });
  }
  std::erase_if(restored_, [](auto const& chunk) { return chunk.keys.empty(); });
}

void ResidualExchange::wait_move(TableId table, std::vector<Key> const& keys, Rank to) {
  std::size_t const dim = state_.table(table).dim();
  std::set<Key> const moved(keys.begin(), keys.end());
  auto const moves = [&](Key key) { return moved.contains(key); };
  auto const stays = [&](Key key) { return !moved.contains(key); };
  std::vector<ResidualChunk> restored;
  for (auto& chunk : restored_) {
    if (chunk.table == table && chunk.peer != to) {
      restored.push_back(select_rows(chunk, to, dim, moves));
      chunk = select_rows(chunk, chunk.peer, dim, stays);
    }
    restored.push_back(std::move(chunk));
  }
  for (Rank const from : state_.others()) {
    if (from == to || !residuals_.has(from, table)) continue;
    auto chunk = select_rows(of(from, table).wait_save(state_.stream), to, dim, moves);
    if (chunk.keys.empty()) continue;
    chunk.table = table;
    of(from, table).wait_drop(state_.stream, to_device(state_.stream, chunk.keys));
    if (to == state_.me) {
      restored.push_back(std::move(chunk));
    } else {
      of(to, table).wait_add(state_.stream, chunk);
    }
  }
  restored_ = std::move(restored);
  std::erase_if(restored_, [](auto const& chunk) { return chunk.keys.empty(); });
}

// -- checkpoints --

void ResidualExchange::wait_save(ResidualFile& file) const {
  file.writer = state_.me;
  file.writers = static_cast<std::uint32_t>(state_.ranks);
  file.samples = samples_;
  file.resends_all_values = resends_all_values_;
  file.chunks = residuals_.wait_save(state_.stream);
  for (auto const& chunk : restored_) {
    file.chunks.push_back(chunk);
    file.chunks.back().peer = state_.me;  // also of rows that have moved: after a restore, their owner adds them
  }
}

void ResidualExchange::wait_load(ResidualFile const& file, OwnsRow const& owns) {
  samples_ = file.samples;
  bool const same_ranks = file.writers == static_cast<std::uint32_t>(state_.ranks);
  if (same_ranks && file.writer == state_.me) resends_all_values_ = file.resends_all_values;
  for (auto const& chunk : file.chunks) {
    auto const& options = state_.table(chunk.table).options();
    if (same_ranks && options.gradient_compression.enabled() && chunk.peer != file.writer) {
      if (file.writer == state_.me) of(chunk.peer, chunk.table).wait_load(state_.stream, chunk);
      continue;
    }
    restored_tables_.insert(chunk.table);
    state_.has_restored = true;
    auto own = select_rows(chunk, state_.me, options.dim, [&](Key key) { return owns(chunk.table, key); });
    if (!own.keys.empty()) restored_.push_back(std::move(own));
  }
}

}  // namespace gpups::cache
