// SPDX-License-Identifier: Apache-2.0
#include "cache/feedback/residual_table.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "cache/wire/key_coding.hpp"
#include "cache/wire/row_coder.hpp"
#include "kernels/base/check.hpp"
#include "kernels/rows/gather_elements.hpp"
#include "kernels/rows/selected_rows.hpp"

namespace gpups::cache {
ResidualTable::ResidualTable(Device device, TableOptions const& table)
    : table_(table),
      section_(table),
      threshold_(table.gradient_compression.filter),
      keys_(device),
      residuals_(device, row_stride(table.dim), kernels::NewRows::kZero, KeyAgeIndex::kGrowth) {}

std::size_t ResidualTable::bytes_for(TableOptions const& table, std::size_t rows) {
  return KeyAgeIndex::bytes_for(rows) +
         kernels::RowStorage<std::int64_t>::bytes_for(rows, row_stride(table.dim), KeyAgeIndex::kGrowth);
}

Array<std::uint32_t> ResidualTable::list_slots(Stream& stream, View<Key const> keys) {
  Array<std::uint32_t> slots(stream.device(), keys.size());
  keys_.wait_find_or_insert(stream, keys, slots);
  residuals_.reserve(stream, keys_.slots_end());
  return slots;
}

Array<std::uint32_t> ResidualTable::marks_of(Stream& stream, View<std::uint32_t const> slots) const {
  Array<std::uint32_t> marks(stream.device(), slots.size() * kernels::kResidualMarks);
  kernels::gather_stored(stream, kernels::GatherStored<std::uint32_t>{keys_.marks(), slots, marks});
  return marks;
}

ResidualTable::UndoRecord& ResidualTable::remember(Stream& stream, View<std::uint32_t const> slots,
                                                   View<Key const> keys) {
  UndoRecord before{.keys = Array<Key>(stream.device(), keys.size()), .marks = marks_of(stream, slots)};
  copy<Key>(stream, before.keys, keys);
  stream.wait();  // `keys` may end after this call
  return before_.emplace_back(std::move(before));
}

void ResidualTable::throw_if_bad_row(Stream& stream, View<std::uint32_t const> bad_row, View<Key const> keys) const {
  std::uint32_t const row = to_host(stream, bad_row)[0];
  if (row == kernels::kNoRow) return;
  throw Error(
      fmt::format("the residual of key {} in table '{}' is too large to be encoded (a wrong gradient would be sent): "
                  "restore a checkpoint into tables with a lower learning rate, or start again with a larger grid_log2",
                  number(to_host(stream, keys.slice(row, 1))[0]), table_.name));
}

ResidualTable::Compressed ResidualTable::wait_compress(Stream& stream, Clock step, View<Key const> keys,
                                                       MatrixView<std::int64_t const> sums,
                                                       View<std::uint32_t const> order) {
  Device const device = stream.device();
  std::size_t const n = keys.size();
  Array<std::uint32_t> const slots = list_slots(stream, keys), bad_row = make_bad_row(stream);
  UndoRecord& before = remember(stream, slots, keys);
  before.added = sums;
  before.order = order;

  auto const& filter = table_.gradient_compression.filter;
  Array<float> const largest(device, n);
  Array<std::uint8_t> const send(device, n);
  kernels::accumulate_residual(stream, {.sums = sums,
                                        .order = order,
                                        .slots = slots,
                                        .residual = residuals_.ref(),
                                        .marks = keys_.marks(),
                                        .now = stamp_of(step),
                                        .age = filter.age_max,
                                        .bound = std::ldexp(threshold_.next(), -table_.grid_log2),
                                        .max_magnitude = largest,
                                        .send = send,
                                        .sent_stay_marked = flushes_unsent_columns(),
                                        .bad_row = bad_row});
  throw_if_bad_row(stream, bad_row, keys);

  Array<std::uint32_t> const slots_of(device, n);
  before.sent = Array<std::uint32_t>(device, n);
  std::size_t const sent =
      kernels::wait_list_flagged(stream, {.flags = send, .rows = before.sent, .from = slots, .taken = slots_of});
  before.sent.truncate(sent);
  auto const sent_slots = slots_of.view().slice(0, sent);
  Matrix<std::int64_t> const rows(device, sent, table_.dim);
  before.residuals = Matrix<std::int64_t>(device, sent, table_.dim);
  kernels::gather_residual(stream, {.residual = residuals_.const_ref(), .slots = sent_slots, .out = rows});
  copy<std::int64_t>(stream, before.residuals.view().flat(), rows.view().flat());
  auto bytes = section_.wait_write(stream, before.sent, n, rows);
  Compressed part{.sent = sent, .bytes = std::make_shared<kernels::PackedBytes>(std::move(bytes))};
  kernels::scatter_residual(stream, {.from = rows, .slots = sent_slots, .residual = residuals_.ref()});
  stream.wait();  // local arrays end here

  rows_named_ += n;
  rows_sent_ += sent;
  if (threshold_.is_new()) {
    for (float const units : to_host(stream, largest.view())) largest_.push_back(std::ldexp(units, table_.grid_log2));
  }
  return part;
}

// Encodes the rows for each rank in ascending order of their keys. The order of slots would differ after a restore, and
// where rows share scales the order of rows changes the bits.
void ResidualTable::wait_encode(Stream& stream, View<std::uint32_t const> unordered, bool exact, Flush& flush) {
  auto const keys = to_host(stream, keys_.wait_keys(stream, unordered).view());
  auto const slot_of = to_host(stream, unordered);
  auto const ranks = flush.ranks_for(keys);
  GPUPS_ASSERT(ranks.size() == keys.size());
  struct RowsFor {
    std::vector<Key> keys;
    std::vector<std::uint32_t> slots;
  };
  std::map<Rank, RowsFor> by_rank;
  for (std::uint32_t const place : order_by_value(View<Key const>(keys))) {
    auto& rows = by_rank[ranks[place]];
    rows.keys.push_back(keys[place]);
    rows.slots.push_back(slot_of[place]);
  }
  for (auto& [to, rows] : by_rank) {
    auto const slots = to_device(stream, rows.slots);
    Matrix<std::int64_t> const sums(stream.device(), slots.size(), table_.dim);
    kernels::gather_residual(stream, {.residual = residuals_.const_ref(), .slots = slots, .out = sums});
    auto bytes = RowCoder(table_, table_.gradient_compression, exact).wait_encode(stream, sums, 0);
    kernels::scatter_residual(stream, {.from = sums, .slots = slots, .residual = residuals_.ref()});
    stream.wait();
    flush.rows.push_back({.to = to,
                          .exact = exact,
                          .keys = std::move(rows.keys),
                          .bytes = std::make_shared<kernels::PackedBytes>(std::move(bytes))});
  }
}

Array<std::uint32_t> ResidualTable::wait_nonzero(Stream& stream, View<std::uint32_t const> slots,
                                                 MatrixView<std::int64_t const> residuals) const {
  Device const device = stream.device();
  Array<std::uint8_t> const flags(device, slots.size());
  Array<std::uint32_t> const numbers(device, slots.size());
  Array<std::uint32_t> filled(device, slots.size());
  kernels::flag_nonzero(stream, {.rows = residuals, .flags = flags});
  filled.truncate(
      kernels::wait_list_flagged(stream, {.flags = flags, .rows = numbers, .from = slots, .taken = filled}));
  return filled;
}

Array<std::uint32_t> ResidualTable::wait_known(Stream& stream, View<Key const> keys) const {
  Array<std::uint32_t> const slots(stream.device(), keys.size());
  keys_.find(stream, keys, slots);
  auto known = to_host(stream, slots.view());
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  if (!known.empty() && known.back() == kernels::kNoRow) known.pop_back();
  return to_device(stream, known);
}

// Flushes the rows that have a residual other than 0.
void ResidualTable::wait_flush_nonzero(Stream& stream, View<std::uint32_t const> slots, bool exact, Flush& flush) {
  UndoRecord& before = remember(stream, slots, keys_.wait_keys(stream, slots));
  auto& old = before.residuals = Matrix<std::int64_t>(stream.device(), slots.size(), table_.dim);
  kernels::gather_residual(stream, {.residual = residuals_.const_ref(), .slots = slots, .out = old});
  auto const filled = wait_nonzero(stream, slots, old);
  if (filled.size() > 0) wait_encode(stream, filled, exact, flush);
}

// Flushes the rows exactly, and frees their slots.
void ResidualTable::wait_evict(Stream& stream, View<std::uint32_t const> slots, Flush& flush) {
  wait_flush_nonzero(stream, slots, true, flush);
  keys_.wait_erase(stream, slots);
}

// Flushes rows that have reached the filter's age.
void ResidualTable::wait_flush_aged(Stream& stream, View<std::uint32_t const> slots, Flush& flush) {
  wait_flush_nonzero(stream, slots, flushes_unsent_columns(), flush);
  kernels::mark_residual(stream,
                         {.marks = keys_.marks(), .slots = slots, .oldest = {}, .last_use = kernels::kKeepLastUse});
  stream.wait();
}

std::vector<ResidualTable::FlushedRows> ResidualTable::wait_take_flushed(Stream& stream, Clock step, bool all,
                                                                         RanksFor const& ranks_for) {
  Flush flush{ranks_for};
  if (!all && !early_.empty()) {
    auto const slots = wait_known(stream, to_device(stream, early_));
    if (slots.size() > 0) wait_evict(stream, slots, flush);
  }
  std::uint32_t const age = all ? 0 : keys_.wait_eviction_age(stream, step, table_.gradient_compression.capacity_rows);
  if (all || age > 0) {
    auto const slots = keys_.wait_list_aged(stream, kernels::kLastUse, step, age);
    if (slots.size() > 0) wait_evict(stream, slots, flush);
  }
  if (table_.gradient_compression.filter.age_max > 0) {
    auto const slots = keys_.wait_list_aged(stream, kernels::kOldest, step, table_.gradient_compression.filter.age_max);
    if (slots.size() > 0) wait_flush_aged(stream, slots, flush);
  }
  return std::move(flush.rows);
}

void ResidualTable::wait_undo(Stream& stream, UndoRecord const& before) {
  auto const slots = list_slots(stream, before.keys);
  auto const slots_there = to_host(stream, slots.view());
  std::vector<std::uint32_t> sent_slots_there;
  for (std::uint32_t const i : to_host(stream, before.sent.view())) sent_slots_there.push_back(slots_there[i]);
  auto const sent_slots = to_device(stream, sent_slots_there);
  bool const is_late = before.order.empty();
  kernels::scatter_residual(
      stream,
      {.from = before.residuals, .slots = is_late ? slots.view() : sent_slots.view(), .residual = residuals_.ref()});
  if (!is_late) {
    kernels::subtract_residual(
        stream, {.sums = before.added, .order = before.order, .slots = slots, .residual = residuals_.ref()});
  }
  kernels::scatter_stored(stream, kernels::ScatterStored<std::uint32_t>{before.marks, slots, keys_.marks()});
  auto const marks = to_host(stream, before.marks.view());
  std::vector<std::uint32_t> unknown;  // slots that were free before the step
  for (std::size_t i = 0; i < slots_there.size(); ++i) {
    if (marks[i * kernels::kResidualMarks + kernels::kLastUse] == 0) unknown.push_back(slots_there[i]);
  }
  keys_.wait_erase(stream, to_device(stream, unknown));
}

void ResidualTable::wait_end_step(Stream& stream, bool rejected) {
  if (rejected) {
    for (auto change = before_.rbegin(); change != before_.rend(); ++change) wait_undo(stream, *change);
  } else {
    if (threshold_.is_new()) {
      threshold_.begin(std::move(largest_));
    }
    threshold_.count(rows_sent_, rows_named_);
    early_.clear();
  }
  before_.clear();
  largest_.clear();
  rows_named_ = rows_sent_ = 0;
}

ResidualTable::TakenRows ResidualTable::wait_take(Stream& stream, View<Key const> keys) {
  auto const slots = wait_known(stream, keys);
  Matrix<std::int64_t> const residuals(stream.device(), slots.size(), table_.dim);
  kernels::gather_residual(stream, {.residual = residuals_.const_ref(), .slots = slots, .out = residuals});
  auto const filled = wait_nonzero(stream, slots, residuals);
  TakenRows taken{keys_.wait_keys(stream, filled), Matrix<std::int64_t>(stream.device(), filled.size(), table_.dim)};
  kernels::gather_residual(stream, {.residual = residuals_.const_ref(), .slots = filled, .out = taken.sums});
  wait_forget(stream, slots);
  return taken;
}

// Sets the residuals of these slots to 0, and frees the slots.
void ResidualTable::wait_forget(Stream& stream, View<std::uint32_t const> slots) {
  Matrix<std::int64_t> const zeros(stream.device(), slots.size(), table_.dim);
  memory::fill_bytes(stream, zeros.view().data(), 0, zeros.view().flat().bytes());
  kernels::scatter_residual(stream, {.from = zeros, .slots = slots, .residual = residuals_.ref()});
  keys_.wait_erase(stream, slots);
}

void ResidualTable::wait_drop(Stream& stream, View<Key const> keys) { wait_forget(stream, wait_known(stream, keys)); }

std::vector<Key> ResidualTable::wait_keys(Stream& stream) const {
  return to_host(stream, keys_.wait_keys(stream, keys_.list_slots(stream)).view());
}

std::vector<ResidualChunk> ResidualTable::wait_save(Stream& stream) const {
  auto const slots = to_host(stream, keys_.list_slots(stream).view());
  auto const early = to_host(stream, wait_known(stream, to_device(stream, early_)).view());
  std::vector<std::uint32_t> others;
  std::set_difference(slots.begin(), slots.end(), early.begin(), early.end(), std::back_inserter(others));
  std::vector<ResidualChunk> chunks{wait_save(stream, to_device(stream, others))};
  if (early.empty()) return chunks;
  chunks.push_back(wait_save(stream, to_device(stream, early)));
  chunks.back().kind = ResidualChunk::Kind::kEarly;
  return chunks;
}

ResidualChunk ResidualTable::wait_save(Stream& stream, View<std::uint32_t const> slots) const {
  auto const keys = keys_.wait_keys(stream, slots);
  auto const marks = marks_of(stream, slots);
  Matrix<std::int64_t> const residuals(stream.device(), slots.size(), table_.dim);
  kernels::gather_residual(stream, {.residual = residuals_.const_ref(), .slots = slots, .out = residuals});
  ResidualChunk chunk{.threshold = threshold_.state(),
                      .keys = to_host(stream, keys.view()),
                      .marks = to_host(stream, marks.view()),
                      .sums = {}};
  auto const padded = to_host(stream, residuals.view().flat());
  std::size_t const stride = row_stride(table_.dim);
  for (std::size_t i = 0; i < padded.size(); ++i) {
    if (i % stride < table_.dim) chunk.sums.push_back(padded[i]);
  }
  return chunk;
}

void ResidualTable::wait_load(Stream& stream, ResidualChunk const& chunk) {
  if (keys_.size() == 0) threshold_.set_state(chunk.threshold);
  if (chunk.kind == ResidualChunk::Kind::kEarly) send_early(chunk.keys);
  auto const padded = padded_sums(stream, chunk, table_.dim);
  auto const keys = to_device(stream, chunk.keys);
  auto const marks = to_device(stream, chunk.marks);
  auto const slots = list_slots(stream, keys);
  kernels::scatter_residual(stream, {.from = padded, .slots = slots, .residual = residuals_.ref()});
  kernels::scatter_stored(stream, kernels::ScatterStored<std::uint32_t>{marks, slots, keys_.marks()});
  stream.wait();
}

}  // namespace gpups::cache
