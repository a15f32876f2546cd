// SPDX-License-Identifier: Apache-2.0
#include "cache/feedback/waiting_sums.hpp"

#include <fmt/core.h>

#include "cache/wire/row_coder.hpp"
#include "gpups/error.hpp"
#include "kernels/rows/gather_elements.hpp"

namespace gpups::cache {

WaitingSums::WaitingSums(Device device, TableOptions const& table)
    : table_(table),
      index_(device, 0, kGrowth),
      marks_(device, kernels::kResidualMarks, kernels::NewRows::kZero, kGrowth),
      sums_(device, row_stride(table.dim), kernels::NewRows::kZero, kGrowth) {}

std::size_t WaitingSums::bytes_for(TableOptions const& table, std::size_t rows) {
  return kernels::KeyIndex::bytes_for(rows, kGrowth) +
         kernels::RowStorage<std::uint32_t>::bytes_for(rows, kernels::kResidualMarks, kGrowth) +
         kernels::RowStorage<std::int64_t>::bytes_for(rows, row_stride(table.dim), kGrowth);
}

void WaitingSums::find(Stream& stream, std::span<SlotsOfKeys const> lists) {
  std::vector<kernels::KeyIndex::Search> searches;
  for (auto const& [sums, keys, slots, distinct] : lists) {
    if (sums->index_.size() > 0) {
      searches.push_back({&sums->index_, keys, slots});
    } else {
      memory::fill_bytes(stream, slots.data(), 0xFF, slots.bytes());  // kNoRow
    }
  }
  if (!searches.empty()) kernels::KeyIndex::find(stream, searches);
}

void WaitingSums::wait_insert(Stream& stream, std::span<SlotsOfKeys const> lists) {
  std::vector<kernels::KeyIndex::Insertion> insertions;
  for (auto const& [sums, keys, slots, distinct] : lists) {
    if (keys.empty()) continue;
    memory::fill_bytes(stream, slots.data(), 0xFF, slots.bytes());  // kNoRow
    insertions.push_back(
        {.index = &sums->index_, .keys = keys, .ids = slots, .missing = keys.size(), .distinct = distinct});
  }
  if (insertions.empty()) return;
  kernels::KeyIndex::wait_insert(stream, insertions);
  for (auto const& list : lists) {
    list.sums->marks_.reserve(stream, list.sums->index_.ids_end());
    list.sums->sums_.reserve(stream, list.sums->index_.ids_end());
  }
}

void WaitingSums::erase(Stream& stream, std::span<ClearedSlots const> lists) {
  std::vector<kernels::KeyIndex::Erasure> erasures;
  for (auto const& [sums, slots] : lists) erasures.push_back({&sums->index_, slots, true});
  kernels::KeyIndex::wait_erase_ids(stream, erasures);
}

void WaitingSums::wait_drop(Stream& stream, View<Key const> keys) {
  if (index_.size() == 0 || keys.empty()) return;
  Array<std::uint32_t> const slots(stream.device(), keys.size());
  index_.find(stream, keys, slots);
  kernels::ClearWaiting const list{.from = rows(), .slots = slots};
  kernels::clear_waiting(stream, {&list, 1});
  index_.wait_erase_ids(stream, slots);
}

std::vector<Key> WaitingSums::wait_keys(Stream& stream) const {
  auto const slots = index_.list_ids(stream);
  Array<std::uint64_t> const keys(stream.device(), slots.size());
  kernels::gather_stored(stream, kernels::GatherStored<std::uint64_t>{index_.keys(), slots, keys});
  std::vector<Key> all;
  for (auto const key : to_host(stream, keys.view())) all.push_back(Key{key});
  return all;
}

ResidualChunk WaitingSums::wait_save(Stream& stream) const {
  auto const slots = index_.list_ids(stream);
  Array<std::uint32_t> const marks(stream.device(), slots.size() * kernels::kResidualMarks);
  kernels::gather_stored(stream, kernels::GatherStored<std::uint32_t>{marks_.const_ref(), slots, marks});
  Matrix<std::int64_t> const sums(stream.device(), slots.size(), table_.dim);
  kernels::gather_residual(stream, {.residual = sums_.const_ref(), .slots = slots, .out = sums});
  auto const padded = to_host(stream, sums.view().flat());
  ResidualChunk chunk{.keys = wait_keys(stream), .marks = to_host(stream, marks.view()), .sums = {}};
  std::size_t const stride = row_stride(table_.dim);
  for (std::size_t i = 0; i < padded.size(); ++i) {
    if (i % stride < table_.dim) chunk.sums.push_back(padded[i]);
  }
  return chunk;
}

void WaitingSums::throw_too_large(Key key) const {
  throw Error(
      fmt::format("the gradients of key {} in table '{}' that wait for their owner are too large (their sum would be "
                  "wrong): restore a checkpoint into tables with a lower learning rate, or start again with a larger "
                  "grid_log2",
                  number(key), table_.name));
}

}  // namespace gpups::cache
