// SPDX-License-Identifier: Apache-2.0
// TableShard: replicas of rows that other ranks own.
#include "cache/rows/table_shard.hpp"
#include "kernels/gather_numbers.hpp"
#include "kernels/init_rows.hpp"
#include "kernels/replica_uses.hpp"
#include "kernels/scatter.hpp"
#include "kernels/update_lifecycle.hpp"
#include "kernels/wire/list_rows.hpp"

namespace gpups::cache {

void TableShard::wait_place_replicas(Stream& stream, View<Key const> keys, View<std::uint32_t> ids, Clock clock) {
  index_.wait_find_or_insert(stream, keys, ids);
  wait_make_room(stream);
  uses_.reserve(stream, index_.ids_end());
  kernels::mark_replicas(stream, {.uses = uses_.ref(), .ids = ids, .word = kernels::replica_word(clock)});
}

void TableShard::set_replicas(Stream& stream, View<std::uint32_t const> ids, kernels::NumberView values) {
  kernels::scatter_numbers(stream, {.from = values, .ids = ids, .rows = values_.ref()});
}

void TableShard::set_replicas(Stream& stream, View<std::uint32_t const> ids, MatrixView<float const> values) {
  kernels::scatter(stream, {.from = values, .ids = ids, .rows = values_.ref(), .dim = dim()});
}

void TableShard::init_replicas(Stream& stream, View<std::uint32_t const> ids, View<Key const> keys) {
  kernels::init_rows(stream, {.ids = ids,
                              .keys = keys,
                              .values = values_.ref(),
                              .state = {},
                              .dim = dim(),
                              .state_columns = 0,
                              .initializer = options_.initializer,
                              .accumulators = 0,
                              .initial_accumulator = 0,
                              .seed = seed_});
}

void TableShard::wait_free_replicas(Stream& stream, View<std::uint32_t const> ids, Clock clock) {
  Array<std::uint32_t> const taken(stream.device(), ids.size());
  std::size_t const count = kernels::wait_take_replicas(
      stream, {.uses = uses_.ref(), .ids = ids, .word = kernels::replica_word(clock), .taken = taken});
  index_.wait_erase_ids(stream, taken.view().slice(0, count));
}

TableShard::ExistingRows TableShard::wait_list_existing(Stream& stream, View<std::uint32_t const> ids) const {
  Device const device = stream.device();
  ExistingRows rows{.positions = Array<std::uint32_t>(device, ids.size()),
                    .ids = Array<std::uint32_t>(device, ids.size())};
  Array<std::uint32_t> const copied(device, ids.size());
  Array<std::uint8_t> const found(device, ids.size());
  copy<std::uint32_t>(stream, copied, ids);
  kernels::rows_exist(stream, {.lifecycle = lifecycle_.const_ref(), .ids = copied, .found = found});
  rows.count =
      kernels::wait_list_flagged(stream, {.flags = found, .rows = rows.positions, .from = ids, .taken = rows.ids});
  return rows;
}

}  // namespace gpups::cache
