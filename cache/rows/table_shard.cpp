// SPDX-License-Identifier: Apache-2.0
#include "cache/rows/table_shard.hpp"

#include <xxhash.h>

#include <algorithm>

#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/pool/pool.hpp"
#include "kernels/rows/copy_rows.hpp"
#include "kernels/rows/gather_elements.hpp"
#include "kernels/rows/hash_rows.hpp"
#include "kernels/rows/init_rows.hpp"
#include "kernels/rows/replicas.hpp"
#include "kernels/rows/row_lifecycle.hpp"

namespace gpups::cache {

TableShard::TableShard(TableOptions const& options, std::uint64_t seed, std::size_t expected_rows,
                       double replica_fraction)
    : options_(options),
      seed_(kernels::mix(seed ^ XXH3_64bits(options.name.data(), options.name.size()))),
      expected_rows_(expected_rows),
      state_columns_(kernels::state_columns(options.optimizer, options.dim)),
      replica_fraction_(replica_fraction) {}

void TableShard::allocate(Device device) {
  index_ = kernels::KeyIndex(device, expected_rows_ + replica_budget());
  values_ = {device, options_.dim, options_.value_type};
  state_ = {device, state_columns_};
  lifecycle_ = {device, kernels::kLifecycleWords, kernels::NewRows::kZero};
  uses_ = {device, 1, kernels::NewRows::kZero};  // kOwned
  mark_ = {device, 1, kernels::NewRows::kZero};
}

Array<Key> TableShard::keys_of(Stream& stream, View<std::uint32_t const> ids) const {
  Array<Key> keys(stream.device(), ids.size());
  View<std::uint64_t> const numbers(reinterpret_cast<std::uint64_t*>(keys.data()), keys.size(), keys.device());
  kernels::gather_stored(stream, kernels::GatherStored<std::uint64_t>{index_.keys(), ids, numbers});
  return keys;
}

Array<Key> TableShard::wait_keys_of(Stream& stream, View<std::uint32_t const> ids) const {
  auto keys = keys_of(stream, ids);
  stream.wait();
  return keys;
}

void TableShard::gather(Stream& stream, View<std::uint32_t const> ids, MatrixView<float> out) const {
  ShardRows const part{this, ids, out};
  gather(stream, {&part, 1});
}

void TableShard::gather(Stream& stream, std::span<ShardRows const> parts) {
  std::vector<kernels::Gather> floats;
  std::vector<kernels::PooledTable> halves;
  for (auto const& [shard, ids, out] : parts) {
    auto const rows = shard->values_.const_ref();
    if (rows.type == DataType::kFloat) {
      floats.push_back({.rows = rows.as<float>(), .ids = ids, .out = out});
    } else {
      halves.push_back({.rows = rows, .ids = ids, .out = out});  // bags of one row
    }
  }
  if (!floats.empty()) kernels::gather(stream, floats);
  if (!halves.empty()) kernels::find_pooled(stream, {halves});
}

std::uint32_t TableShard::next_epoch(Stream& stream) {
  mark_.reserve(stream, index_.ids_end());
  if (++epoch_ == 0) epoch_ = 1;  // marks of 2^32 lists ago may be equal, which is accepted
  return epoch_;
}

void TableShard::wait_lookup(Stream& stream, View<Key const> keys, MatrixView<float> out,
                             View<std::uint8_t> found) const {
  Array<std::uint32_t> ids(stream.device(), keys.size());
  index_.find(stream, keys, ids);
  kernels::rows_exist(stream, {.lifecycle = lifecycle_.const_ref(), .ids = ids, .found = found});
  gather(stream, ids, out);
  if (ids.empty()) return;
  kernels::init_matrix(stream, {.keys = keys,
                                .only_where_no_row = ids,
                                .out = out,
                                .initializer = options_.initializer,
                                .seed = seed_,
                                .type = options_.value_type});
  stream.wait();
}

void TableShard::initial_values(Stream& stream, View<Key const> keys, MatrixView<float> out) const {
  kernels::init_matrix(stream, {.keys = keys,
                                .only_where_no_row = {},
                                .out = out,
                                .initializer = options_.initializer,
                                .seed = seed_,
                                .type = options_.value_type});
}

void TableShard::wait_assign(Stream& stream, View<Key const> keys, MatrixView<float const> values, Clock clock) {
  Array<std::uint32_t> ids(stream.device(), keys.size());
  wait_resolve(stream, keys, ids);
  kernels::scatter(stream, {.from = values, .ids = ids, .rows = values_.ref(), .dim = dim()});
  if (options_.optimizer.kind == Optimizer::Kind::kFtrl) forget_linear_terms(stream, ids);
  kernels::begin_rows(stream, {.lifecycle = lifecycle_.ref(), .ids = ids, .step = kernels::lifecycle_step(clock)});
  stream.wait();
}

// Sets FTRL's z of rows to 0: the next step then computes it from the row's value, which it would replace otherwise.
void TableShard::forget_linear_terms(Stream& stream, View<std::uint32_t const> ids) {
  Array<float> const state(stream.device(), ids.size() * state_columns_);
  kernels::gather_stored(stream, kernels::GatherStored<float>{state_.const_ref(), ids, state});
  std::vector<float> host = to_host(stream, View<float const>(state));
  for (std::size_t first = 0; first < host.size(); first += state_columns_) {  // n of each column, then z
    std::fill_n(host.begin() + static_cast<std::ptrdiff_t>(first + state_columns_ - dim()), dim(), 0.0F);
  }
  kernels::scatter_stored(stream, kernels::ScatterStored<float>{to_device(stream, host), ids, state_.ref()});
}

void TableShard::wait_mark_erased(Stream& stream, View<Key const> keys) {
  Array<std::uint32_t> ids(stream.device(), keys.size());
  index_.find(stream, keys, ids);
  kernels::end_rows(stream, {.lifecycle = lifecycle_.ref(), .ids = ids});
  stream.wait();
}

std::size_t TableShard::wait_expire(Stream& stream, Clock now, std::uint32_t age) {
  auto const existing = to_device(stream, std::vector<std::uint64_t>{0});
  kernels::expire_rows(stream, {.lifecycle = lifecycle_.ref(),
                                .rows = index_.ids_end(),
                                .now = kernels::lifecycle_step(now),
                                .age = age,
                                .existing = existing});
  return to_host(stream, existing.view())[0];
}

std::vector<Key> TableShard::wait_unused_keys(Stream& stream) const {
  auto const ids = index_.list_ids(stream);
  auto const keys = to_host(stream, keys_of(stream, ids).view());
  Array<std::uint8_t> const used(stream.device(), ids.size());
  kernels::rows_exist(stream, {.lifecycle = lifecycle_.const_ref(), .ids = ids, .found = used, .or_wait = true});
  auto const is_used = to_host(stream, used.view());
  std::vector<Key> unused;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (is_used[i] == 0) unused.push_back(keys[i]);
  }
  return unused;
}

void TableShard::wait_reclaim(Stream& stream) {
  auto const end = static_cast<std::uint32_t>(index_.ids_end());
  auto const free = wait_select(stream, 0, end, kernels::RowStatus::kFree);
  if (uses_.rows_reserved() > 0) {
    uses_.reserve(stream, end);
    kernels::mark_replicas(stream, {.uses = uses_.ref(), .ids = free, .word = kernels::kOwned});
    replicas_ = 0;
  }
  if (free.size() > end - index_.size()) index_.wait_erase_ids(stream, free);  // else none of them has a key
}

TableShard::Digest TableShard::wait_digest(Stream& stream) const {
  Array<std::uint64_t> digest(stream.device(), 2);
  memory::fill_bytes(stream, digest.data(), 0, digest.bytes());
  kernels::hash_rows(stream, {.rows = index_.ids_end(),
                              .keys = index_.keys(),
                              .values = values_.const_ref(),
                              .state = state_.const_ref(),
                              .dim = dim(),
                              .state_columns = state_columns_,
                              .lifecycle = lifecycle_.const_ref(),
                              .seed = seed_,
                              .digest = digest});
  auto const host = to_host(stream, digest.view());
  return {host[0], host[1]};
}

Array<std::uint32_t> TableShard::wait_select(Stream& stream, std::uint32_t first, std::uint32_t last,
                                             kernels::RowStatus kind) const {
  Array<std::uint32_t> const among(stream.device(), last - first);
  std::size_t const rows = kernels::wait_select_rows(
      stream, {.lifecycle = lifecycle_.const_ref(), .first = first, .last = last, .ids = among, .kind = kind});
  Array<std::uint32_t> ids(stream.device(), rows);
  copy<std::uint32_t>(stream, ids, among.view().slice(0, rows));
  stream.wait();
  return ids;
}

TableShard::RowChunk TableShard::wait_read(Stream& stream, View<std::uint32_t const> ids, Columns columns) const {
  Device const device = stream.device();
  RowChunk chunk;
  chunk.keys = wait_keys_of(stream, ids);
  if (columns != Columns::kKeysAndLifecycle) {
    chunk.values = Matrix<float>(device, ids.size(), dim());
    gather(stream, ids, chunk.values);
  }
  if (columns != Columns::kKeysAndValues) {
    chunk.lifecycle = Array<std::uint32_t>(device, ids.size() * kernels::kLifecycleWords);
    kernels::gather_stored(stream, kernels::GatherStored<std::uint32_t>{lifecycle_.const_ref(), ids, chunk.lifecycle});
  }
  if (columns == Columns::kAll) {
    chunk.state = Array<float>(device, ids.size() * state_columns_);
    kernels::gather_stored(stream, kernels::GatherStored<float>{state_.const_ref(), ids, chunk.state});
  }
  stream.wait();
  return chunk;
}

void TableShard::wait_write(Stream& stream, RowChunk const& chunk) {
  Array<std::uint32_t> ids(stream.device(), chunk.rows());
  if (chunk.values.rows() == 0) {
    wait_resolve(stream, chunk.keys, ids);
  } else {
    memory::fill_bytes(stream, ids.data(), 0xFF, ids.bytes());  // kNoRow
    MissingKeys const rows{{this, chunk.keys, ids}, chunk.rows()};
    wait_insert(stream, {&rows, 1});
    kernels::scatter(stream, {.from = chunk.values, .ids = ids, .rows = values_.ref(), .dim = dim()});
    kernels::scatter_stored(stream, kernels::ScatterStored<float>{chunk.state, ids, state_.ref()});
  }
  kernels::scatter_stored(stream, kernels::ScatterStored<std::uint32_t>{chunk.lifecycle, ids, lifecycle_.ref()});
  stream.wait();
}

}  // namespace gpups::cache
