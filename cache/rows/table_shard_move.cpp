// SPDX-License-Identifier: Apache-2.0
// TableShard: rows that move between ranks.
#include "cache/rows/table_shard.hpp"
#include "kernels/rows/copy_rows.hpp"
#include "kernels/rows/gather_elements.hpp"
#include "kernels/rows/replicas.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/rows/selected_rows.hpp"

namespace gpups::cache {
namespace {

// The two columns in RowRequest::words of rows that move.
struct TakenWords {
  View<float> state;
  View<std::uint32_t> lifecycle;

  TakenWords(View<std::uint32_t> words, std::size_t rows, std::size_t state_columns)
      : state(reinterpret_cast<float*>(words.data()), rows * state_columns, words.device()),
        lifecycle(words.slice(rows * state_columns, rows * kernels::kLifecycleWords)) {}
};

}  // namespace

void TableShard::wait_take(Stream& stream, View<Key const> keys, MatrixView<float> values, View<std::uint8_t> found,
                           View<std::uint32_t> words) {
  Array<std::uint32_t> const ids(stream.device(), keys.size());
  index_.find(stream, keys, ids);
  kernels::rows_exist(stream, {.lifecycle = lifecycle_.const_ref(), .ids = ids, .found = found, .or_wait = true});
  TakenWords const columns(words, keys.size(), state_columns_);
  gather(stream, ids, values);
  kernels::gather_stored(stream, kernels::GatherStored<float>{state_.const_ref(), ids, columns.state});
  kernels::gather_stored(stream, kernels::GatherStored<std::uint32_t>{lifecycle_.const_ref(), ids, columns.lifecycle});
  kernels::end_rows(stream, {.lifecycle = lifecycle_.ref(), .ids = ids});
  index_.wait_erase_ids(stream, ids);
}

void TableShard::wait_put(Stream& stream, View<Key const> keys, MatrixView<float const> values,
                          View<std::uint8_t const> found, View<std::uint32_t const> words) {
  Device const device = stream.device();
  std::size_t const rows = keys.size();
  Array<std::uint32_t> const ids(device, rows), positions(device, rows), taken(device, rows);
  memory::fill_bytes(stream, ids.data(), 0xFF, ids.bytes());  // kNoRow
  std::size_t const count =
      kernels::wait_list_flagged(stream, {.flags = found, .rows = positions, .from = ids, .taken = taken});
  if (count == 0) return;
  auto const places = positions.view().slice(0, count);
  Array<Key> const found_keys(device, count);
  kernels::gather_elements(stream, kernels::GatherElements<Key>{keys, places, found_keys});
  auto const new_ids = taken.view().slice(0, count);  // kNoRow, until they are inserted
  MissingKeys const missing{{this, found_keys, new_ids}, count};
  wait_insert(stream, {&missing, 1});
  kernels::scatter_elements(stream, {new_ids, places, ids});
  TakenWords const columns({const_cast<std::uint32_t*>(words.data()), words.size(), words.device()}, rows,
                           state_columns_);
  kernels::scatter(stream, {.from = values, .ids = ids, .rows = values_.ref(), .dim = dim()});
  kernels::scatter_stored(stream, kernels::ScatterStored<float>{columns.state, ids, state_.ref()});
  kernels::scatter_stored(stream, kernels::ScatterStored<std::uint32_t>{columns.lifecycle, ids, lifecycle_.ref()});
  stream.wait();
}

// -- while training --

void TableShard::read_columns(Stream& stream, std::span<ShardIds const> lists) {
  std::vector<kernels::GatherNumbers> values;
  std::vector<kernels::GatherStored<float>> states;
  std::vector<kernels::GatherStored<std::uint32_t>> lifecycles;
  for (auto const& [shard, ids, to] : lists) {
    values.push_back(shard->gather_numbers(ids, to.values));
    states.push_back({shard->state_.const_ref(), ids, to.state});
    lifecycles.push_back({shard->lifecycle_.const_ref(), ids, to.lifecycle});
  }
  kernels::gather_numbers(stream, values);
  kernels::gather_stored(stream, states);
  kernels::gather_stored(stream, lifecycles);
}

void TableShard::make_replicas(Stream& stream, std::span<ShardIds const> lists, Clock clock) {
  std::vector<kernels::EndRows> ends;
  std::vector<kernels::MarkReplicas> marks;
  for (auto const& [shard, ids, none] : lists) {
    shard->replicas_ += ids.size();
    shard->uses_.reserve(stream, shard->index_.ids_end());
    ends.push_back({.lifecycle = shard->lifecycle_.ref(), .ids = ids});
    marks.push_back({.uses = shard->uses_.ref(), .ids = ids, .word = kernels::replica_word(clock)});
  }
  kernels::end_rows(stream, ends);
  kernels::mark_replicas(stream, marks);
}

void TableShard::make_owned(Stream& stream, std::span<ShardIds const> lists) {
  std::vector<kernels::MarkReplicas> marks;
  for (auto const& [shard, ids, none] : lists) {
    shard->replicas_ -= ids.size();
    marks.push_back({.uses = shard->uses_.ref(), .ids = ids, .word = kernels::kOwned});
  }
  kernels::mark_replicas(stream, marks);
}

void TableShard::reset_columns(Stream& stream, std::span<ShardIds const> lists) {
  std::vector<kernels::InitRows> inits;
  for (auto const& [shard, ids, none] : lists) inits.push_back(shard->init_new_rows(ids));
  kernels::init_rows(stream, inits);
}

void TableShard::write_columns(Stream& stream, std::span<ShardIds const> lists) {
  std::vector<kernels::ScatterNumbers> values;
  std::vector<kernels::ScatterStored<float>> states;
  std::vector<kernels::ScatterStored<std::uint32_t>> lifecycles;
  for (auto const& [shard, ids, from] : lists) {
    values.push_back(shard->scatter_numbers(from.values, ids));
    states.push_back({from.state, ids, shard->state_.ref()});
    lifecycles.push_back({from.lifecycle, ids, shard->lifecycle_.ref()});
  }
  kernels::scatter_numbers(stream, values);
  kernels::scatter_stored(stream, states);
  kernels::scatter_stored(stream, lifecycles);
}

}  // namespace gpups::cache
