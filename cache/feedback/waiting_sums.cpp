// SPDX-License-Identifier: Apache-2.0
#include "cache/feedback/waiting_sums.hpp"

#include <fmt/core.h>

#include <limits>

#include "cache/wire/row_coder.hpp"
#include "gpups/error.hpp"
#include "kernels/rows/gather_elements.hpp"
#include "kernels/runtime/upload.hpp"
#include "kernels/sum/merge_gradients.hpp"

namespace gpups::cache {

WaitingSums::WaitingSums(Device device, TableOptions const& table)
    : table_(table),
      keys_(device),
      sums_(device, row_stride(table.dim), kernels::NewRows::kZero, KeyAgeIndex::kGrowth) {}

std::size_t WaitingSums::bytes_for(TableOptions const& table, std::size_t rows) {
  return KeyAgeIndex::bytes_for(rows) +
         kernels::RowStorage<std::int64_t>::bytes_for(rows, row_stride(table.dim), KeyAgeIndex::kGrowth);
}

void WaitingSums::wait_add(Stream& stream, Clock step, View<Key const> keys, MatrixView<std::int64_t const> sums,
                           View<std::uint32_t const> positions) {
  Device const device = stream.device();
  std::size_t const n = keys.size();
  Array<std::uint32_t> const slots(device, n), bad_row = make_bad_row(stream);
  keys_.wait_find_or_insert(stream, keys, slots);
  sums_.reserve(stream, keys_.slots_end());
  Array<float> const largest(device, n);
  Array<std::uint8_t> const all(device, n);
  kernels::accumulate_residual(stream, {.sums = sums,
                                        .order = positions,
                                        .slots = slots,
                                        .residual = sums_.ref(),
                                        .marks = keys_.marks(),
                                        .now = stamp_of(step),
                                        .age = 0,
                                        .bound = std::numeric_limits<float>::infinity(),
                                        .max_magnitude = largest,
                                        .send = all,
                                        .sent_stay_marked = false,
                                        .bad_row = bad_row});
  auto const row = to_host(stream, bad_row.view())[0];
  if (row == kernels::kNoRow) return;
  throw Error(
      fmt::format("the gradients of key {} in table '{}' that wait for their owner are too large (their sum would be "
                  "wrong): restore a checkpoint into tables with a lower learning rate, or start again with a larger "
                  "grid_log2",
                  number(to_host(stream, keys.slice(row, 1))[0]), table_.name));
}

WaitingSums::Slots WaitingSums::wait_find(Stream& stream, View<Key const> keys) const {
  Array<std::uint32_t> const there(stream.device(), keys.size());
  keys_.find(stream, keys, there);
  auto const slots = to_host(stream, there.view());
  Slots found;
  std::vector<std::uint32_t> taken;
  for (std::uint32_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == kernels::kNoRow) continue;
    found.places.push_back(i);
    taken.push_back(slots[i]);
  }
  found.slots = to_device(stream, taken);
  return found;
}

Matrix<std::int64_t> WaitingSums::read(Stream& stream, View<std::uint32_t const> slots) const {
  Matrix<std::int64_t> rows(stream.device(), slots.size(), table_.dim);
  kernels::gather_residual(stream, {.residual = sums_.const_ref(), .slots = slots, .out = rows});
  return rows;
}

std::vector<Key> WaitingSums::wait_read(Stream& stream, View<Key const> keys, MatrixView<std::int64_t> into,
                                        View<std::uint32_t> bad_row) const {
  if (keys_.size() == 0 || keys.empty()) return {};
  auto const found = wait_find(stream, keys);
  if (found.places.empty()) return {};
  auto const rows = read(stream, found.slots);
  auto const places = to_device(stream, found.places);
  kernels::merge_sums(stream, {.into = into, .slots = places, .sums = rows, .bad_row = bad_row});
  return to_host(stream, keys_.wait_keys(stream, found.slots).view());  // waits, so local arrays may end
}

void WaitingSums::wait_drop(Stream& stream, View<Key const> keys) {
  if (keys_.size() == 0 || keys.empty()) return;
  auto const found = wait_find(stream, keys);
  Matrix<std::int64_t> const zeros(stream.device(), found.places.size(), table_.dim);
  memory::fill_bytes(stream, zeros.view().data(), 0, zeros.view().flat().bytes());
  kernels::scatter_residual(stream, {.from = zeros, .slots = found.slots, .residual = sums_.ref()});
  keys_.wait_erase(stream, found.slots);
}

std::vector<Key> WaitingSums::wait_keys(Stream& stream) const {
  return to_host(stream, keys_.wait_keys(stream, keys_.wait_slots(stream)).view());
}

ResidualChunk WaitingSums::wait_save(Stream& stream) const {
  auto const slots = keys_.wait_slots(stream);
  Array<std::uint32_t> const marks(stream.device(), slots.size() * kernels::kResidualMarks);
  kernels::gather_stored(stream, kernels::GatherStored<std::uint32_t>{keys_.marks(), slots, marks});
  auto const padded = to_host(stream, read(stream, slots).view().flat());
  ResidualChunk chunk{.keys = wait_keys(stream), .marks = to_host(stream, marks.view()), .sums = {}};
  std::size_t const stride = row_stride(table_.dim);
  for (std::size_t i = 0; i < padded.size(); ++i) {
    if (i % stride < table_.dim) chunk.sums.push_back(padded[i]);
  }
  return chunk;
}

}  // namespace gpups::cache
