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

void TableShard::read_columns(Stream& stream, View<std::uint32_t const> ids, MovedColumns const& to) const {
  kernels::gather_numbers(stream, gather_numbers(ids, to.values));
  kernels::gather_stored(stream, kernels::GatherStored<float>{state_.const_ref(), ids, to.state});
  kernels::gather_stored(stream, kernels::GatherStored<std::uint32_t>{lifecycle_.const_ref(), ids, to.lifecycle});
}

void TableShard::make_replicas(Stream& stream, View<std::uint32_t const> ids, Clock clock) {
  replicas_ += ids.size();
  uses_.reserve(stream, index_.ids_end());
  kernels::end_rows(stream, {.lifecycle = lifecycle_.ref(), .ids = ids});
  kernels::mark_replicas(stream, {.uses = uses_.ref(), .ids = ids, .word = kernels::replica_word(clock)});
}

void TableShard::make_owned(Stream& stream, View<std::uint32_t const> ids) {
  replicas_ -= ids.size();
  kernels::mark_replicas(stream, {.uses = uses_.ref(), .ids = ids, .word = kernels::kOwned});
}

void TableShard::reset_columns(Stream& stream, View<std::uint32_t const> ids) {
  kernels::init_rows(stream, init_new_rows(ids));
}

void TableShard::write_columns(Stream& stream, View<std::uint32_t const> ids, MovedColumns const& from) {
  kernels::scatter_numbers(stream, scatter_numbers(from.values, ids));
  kernels::scatter_stored(stream, kernels::ScatterStored<float>{from.state, ids, state_.ref()});
  kernels::scatter_stored(stream, kernels::ScatterStored<std::uint32_t>{from.lifecycle, ids, lifecycle_.ref()});
}

}  // namespace gpups::cache
