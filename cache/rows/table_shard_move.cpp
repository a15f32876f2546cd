// SPDX-License-Identifier: Apache-2.0
// TableShard: rows that move between ranks.
#include <type_traits>

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

// Returns a view of a column with `width` words a row, for copies of rows.
template <class T>
MatrixView<float> as_matrix(View<T> column, std::size_t width) {
  auto* const data = reinterpret_cast<float*>(const_cast<std::remove_const_t<T>*>(column.data()));
  return {data, width == 0 ? 0 : column.size() / width, width, width, column.device()};
}

// Copies the rows of a column from or to these positions.
template <class T>
Array<T> gather_rows(Stream& stream, View<T> column, std::size_t width, View<std::uint32_t const> positions) {
  Array<T> some(stream.device(), positions.size() * width);
  if (width == 0) return some;
  kernels::gather_matrix_rows(
      stream, {.from = as_matrix(column, width), .positions = positions, .to = as_matrix(some.view(), width)});
  return some;
}
template <class T>
void scatter_rows(Stream& stream, Array<T> const& from, std::size_t width, View<std::uint32_t const> positions,
                  View<T> to) {
  if (width == 0) return;
  kernels::scatter_matrix_rows(
      stream, {.from = as_matrix(from.view(), width), .positions = positions, .to = as_matrix(to, width)});
}

}  // namespace

void TableShard::wait_take(Stream& stream, View<Key const> keys, MatrixView<float> values, View<std::uint8_t> found,
                           View<std::uint32_t> words) {
  Device const device = stream.device();
  std::size_t const rows = keys.size();
  Array<std::uint32_t> const ids(device, rows), positions(device, rows), used(device, rows);
  index_.find(stream, keys, ids);
  kernels::rows_exist(stream, {.lifecycle = lifecycle_.const_ref(), .ids = ids, .found = found, .or_wait = true});
  std::size_t const count =
      kernels::wait_list_flagged(stream, {.flags = found, .rows = positions, .from = ids, .taken = used});
  auto const places = positions.view().slice(0, count);
  RowChunk const chunk = wait_read(stream, used.view().slice(0, count), Columns::kAll);
  TakenWords const columns(words, rows, state_columns_);
  kernels::scatter_matrix_rows(stream, {.from = chunk.values, .positions = places, .to = values});
  scatter_rows(stream, chunk.state, state_columns_, places, columns.state);
  scatter_rows(stream, chunk.lifecycle, kernels::kLifecycleWords, places, columns.lifecycle);
  kernels::end_rows(stream, {.lifecycle = lifecycle_.ref(), .ids = ids});
  index_.wait_erase(stream, keys);
}

void TableShard::wait_put(Stream& stream, View<Key const> keys, MatrixView<float const> values,
                          View<std::uint8_t const> found, View<std::uint32_t const> words) {
  Device const device = stream.device();
  std::size_t const rows = keys.size();
  Array<std::uint32_t> const all(device, rows), positions(device, rows), taken(device, rows);
  memory::fill_bytes(stream, all.data(), 0, all.bytes());
  std::size_t const count =
      kernels::wait_list_flagged(stream, {.flags = found, .rows = positions, .from = all, .taken = taken});
  if (count == 0) return;
  auto const places = positions.view().slice(0, count);
  TakenWords const columns({const_cast<std::uint32_t*>(words.data()), words.size(), words.device()}, rows,
                           state_columns_);
  RowChunk chunk;
  chunk.keys = Array<Key>(device, count);
  kernels::gather_elements(stream, kernels::GatherElements<Key>{keys, places, chunk.keys});
  chunk.values = Matrix<float>(device, count, dim());
  kernels::gather_matrix_rows(stream, {.from = values, .positions = places, .to = chunk.values});
  chunk.state = gather_rows(stream, columns.state, state_columns_, places);
  chunk.lifecycle = gather_rows(stream, columns.lifecycle, kernels::kLifecycleWords, places);
  wait_write(stream, chunk);
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
