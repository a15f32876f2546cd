// SPDX-License-Identifier: Apache-2.0
#include "cache/held_rows.hpp"

#include <cmath>

#include "cache/key_coding.hpp"
#include "kernels/check.hpp"
#include "kernels/columns.hpp"
#include "kernels/wire/marked_rows.hpp"

namespace gpups::cache {
namespace {

Array<std::uint32_t> no_fault(Stream& stream) {
  Array<std::uint32_t> fault(stream.device(), 1);
  memory::fill_bytes(stream, fault.data(), 0xFF, fault.bytes());  // kNoRow
  return fault;
}

}  // namespace

HeldRows::HeldRows(Device device, TableOptions const& table)
    : table_(table),
      section_(table),
      bound_(table.gradients.filter),
      keys_(device),
      held_(device, row_stride(table.dim), kernels::NewRows::kZero, MarkedKeys::kGrowth) {}

std::size_t HeldRows::bytes_for(TableOptions const& table, std::size_t rows) {
  return MarkedKeys::bytes_for(rows) +
         kernels::RowStorage<std::int64_t>::bytes_for(rows, row_stride(table.dim), MarkedKeys::kGrowth);
}

Array<std::uint32_t> HeldRows::wait_slots(Stream& stream, View<Key const> keys) {
  Array<std::uint32_t> slots(stream.device(), keys.size());
  keys_.wait_find_or_insert(stream, keys, slots);
  held_.reserve(stream, keys_.slots_end());
  return slots;
}

Array<std::uint32_t> HeldRows::marks_of(Stream& stream, View<std::uint32_t const> slots) const {
  Array<std::uint32_t> marks(stream.device(), slots.size() * kernels::kHeldMarks);
  kernels::gather_column(stream, kernels::GatherColumn<std::uint32_t>{keys_.marks(), slots, marks});
  return marks;
}

HeldRows::Before& HeldRows::remember(Stream& stream, View<std::uint32_t const> slots, View<Key const> keys) {
  Before before{.keys = Array<Key>(stream.device(), keys.size()), .marks = marks_of(stream, slots)};
  copy<Key>(stream, before.keys, keys);
  stream.wait();  // the keys may be the caller's for this call alone
  return before_.emplace_back(std::move(before));
}

void HeldRows::throw_if_fault(Stream& stream, View<std::uint32_t const> fault, View<Key const> keys) const {
  std::uint32_t const row = to_host(stream, fault)[0];
  if (row == kernels::kNoRow) return;
  throw Error(
      fmt::format("what is held back of the gradient of key {} in table '{}' is too large to be coded (it would "
                  "be sent wrongly): restore a checkpoint, and lower the learning rate or raise grid_log2",
                  number(to_host(stream, keys.slice(row, 1))[0]), table_.name));
}

HeldRows::Part HeldRows::wait_take(Stream& stream, Clock step, View<Key const> keys,
                                   MatrixView<std::int64_t const> sums, View<std::uint32_t const> order) {
  Device const device = stream.device();
  std::size_t const n = keys.size();
  Array<std::uint32_t> const slots = wait_slots(stream, keys), fault = no_fault(stream);
  Before& before = remember(stream, slots, keys);
  before.added = sums;
  before.order = order;

  auto const& filter = table_.gradients.filter;
  Array<float> const largest(device, n);
  Array<std::uint8_t> const send(device, n);
  kernels::hold_rows(stream, {.sums = sums,
                              .order = order,
                              .slots = slots,
                              .held = held_.ref(),
                              .marks = keys_.marks(),
                              .now = mark_of(step),
                              .age = filter.age_max,
                              .bound = std::ldexp(bound_.next(), -table_.grid_log2),
                              .largest = largest,
                              .send = send,
                              .sent_wait_on = sends_rest(),
                              .fault = fault});
  throw_if_fault(stream, fault, keys);

  Array<std::uint32_t> const slots_of(device, n);
  before.sent = Array<std::uint32_t>(device, n);
  std::size_t const sent =
      kernels::wait_list_flagged(stream, {.flags = send, .rows = before.sent, .from = slots, .taken = slots_of});
  before.sent.truncate(sent);
  auto const sent_slots = slots_of.view().slice(0, sent);
  Matrix<std::int64_t> const rows(device, sent, table_.dim);
  before.held = Matrix<std::int64_t>(device, sent, table_.dim);
  kernels::take_held(stream, {.held = held_.const_ref(), .slots = sent_slots, .out = rows});
  copy<std::int64_t>(stream, before.held.view().flat(), rows.view().flat());
  auto bytes = section_.wait_write(stream, before.sent, n, rows);
  Part part{.sent = sent, .bytes = std::make_shared<kernels::NarrowBytes>(std::move(bytes))};
  kernels::put_held(stream, {.from = rows, .slots = sent_slots, .held = held_.ref()});
  stream.wait();  // all arrays here end

  rows_named_ += n;
  rows_sent_ += sent;
  if (bound_.is_new()) {
    for (float const units : to_host(stream, largest.view())) largest_.push_back(std::ldexp(units, table_.grid_log2));
  }
  return part;
}

// In the order of their keys: slots are others after a resume, and where rows share scales their order decides bits.
HeldRows::Late HeldRows::wait_send(Stream& stream, View<std::uint32_t const> unordered, bool exact) {
  Late late{.exact = exact, .keys = {}, .bytes = {}};
  auto const keys = to_host(stream, keys_.wait_keys(stream, unordered).view());
  auto const slot_of = to_host(stream, unordered);
  std::vector<std::uint32_t> ordered;
  for (std::uint32_t const place : order_by_value(View<Key const>(keys))) {
    late.keys.push_back(keys[place]);
    ordered.push_back(slot_of[place]);
  }
  auto const slots = to_device(stream, ordered);
  Matrix<std::int64_t> const rows(stream.device(), slots.size(), table_.dim);
  kernels::take_held(stream, {.held = held_.const_ref(), .slots = slots, .out = rows});
  auto bytes = RowCoder(table_, table_.gradients, exact).wait_encode(stream, rows, 0);
  kernels::put_held(stream, {.from = rows, .slots = slots, .held = held_.ref()});
  stream.wait();
  late.bytes = std::make_shared<kernels::NarrowBytes>(std::move(bytes));
  return late;
}

// Those of the rows of which something is held back.
void HeldRows::wait_send_filled(Stream& stream, View<std::uint32_t const> slots, bool exact, std::vector<Late>& late) {
  Device const device = stream.device();
  Before& before = remember(stream, slots, keys_.wait_keys(stream, slots));
  auto& old = before.held = Matrix<std::int64_t>(device, slots.size(), table_.dim);
  kernels::take_held(stream, {.held = held_.const_ref(), .slots = slots, .out = old});
  Array<std::uint8_t> const flags(device, slots.size());
  Array<std::uint32_t> const numbers(device, slots.size()), filled(device, slots.size());
  kernels::flag_nonzero(stream, {.rows = old, .flags = flags});
  std::size_t const count =
      kernels::wait_list_flagged(stream, {.flags = flags, .rows = numbers, .from = slots, .taken = filled});
  if (count > 0) late.push_back(wait_send(stream, filled.view().slice(0, count), exact));
}

// None of the rows is remembered.
void HeldRows::wait_forget(Stream& stream, View<std::uint32_t const> slots, std::vector<Late>& late) {
  wait_send_filled(stream, slots, true, late);
  keys_.wait_erase(stream, slots);
}

void HeldRows::wait_send_aged(Stream& stream, View<std::uint32_t const> slots, std::vector<Late>& late) {
  wait_send_filled(stream, slots, sends_rest(), late);
  kernels::mark_held(stream, {.marks = keys_.marks(), .slots = slots, .since = {}, .named = kernels::kKeepNamed});
  stream.wait();
}

std::vector<HeldRows::Late> HeldRows::wait_take_late(Stream& stream, Clock step, bool all) {
  std::vector<Late> late;
  std::uint32_t const age = all ? 0 : keys_.wait_age_to_forget(stream, step, table_.gradients.rows_max);
  if (all || age > 0) {
    auto const slots = keys_.wait_list_old(stream, kernels::kNamed, step, age);
    if (slots.size() > 0) wait_forget(stream, slots, late);
  }
  if (table_.gradients.filter.age_max > 0) {
    auto const slots = keys_.wait_list_old(stream, kernels::kSince, step, table_.gradients.filter.age_max);
    if (slots.size() > 0) wait_send_aged(stream, slots, late);
  }
  return late;
}

void HeldRows::wait_undo(Stream& stream, Before const& before) {
  auto const slots = wait_slots(stream, before.keys);
  auto const slots_there = to_host(stream, slots.view());
  std::vector<std::uint32_t> sent_slots_there;
  for (std::uint32_t const i : to_host(stream, before.sent.view())) sent_slots_there.push_back(slots_there[i]);
  auto const sent_slots = to_device(stream, sent_slots_there);
  bool const is_late = before.order.empty();
  kernels::put_held(stream,
                    {.from = before.held, .slots = is_late ? slots.view() : sent_slots.view(), .held = held_.ref()});
  if (!is_late) {
    kernels::take_back(stream, {.sums = before.added, .order = before.order, .slots = slots, .held = held_.ref()});
  }
  kernels::scatter_column(stream, kernels::ScatterColumn<std::uint32_t>{before.marks, slots, keys_.marks()});
  auto const marks = to_host(stream, before.marks.view());
  std::vector<std::uint32_t> unknown;  // before the step
  for (std::size_t i = 0; i < slots_there.size(); ++i) {
    if (marks[i * kernels::kHeldMarks + kernels::kNamed] == 0) unknown.push_back(slots_there[i]);
  }
  keys_.wait_erase(stream, to_device(stream, unknown));
}

void HeldRows::wait_end_step(Stream& stream, bool refused) {
  if (refused) {
    for (auto change = before_.rbegin(); change != before_.rend(); ++change) wait_undo(stream, *change);
  } else {
    if (bound_.is_new()) {
      bound_.begin(std::move(largest_));
    }
    bound_.count(rows_sent_, rows_named_);
  }
  before_.clear();
  largest_.clear();
  rows_named_ = rows_sent_ = 0;
}

void HeldRows::wait_drop(Stream& stream, View<Key const> keys) {
  auto const slots = wait_slots(stream, keys);
  Matrix<std::int64_t> const zeros(stream.device(), keys.size(), table_.dim);
  memory::fill_bytes(stream, zeros.view().data(), 0, zeros.view().flat().bytes());
  kernels::put_held(stream, {.from = zeros, .slots = slots, .held = held_.ref()});
  keys_.wait_erase(stream, slots);
}

HeldPiece HeldRows::wait_save(Stream& stream) const {
  auto const slots = keys_.wait_slots(stream);
  auto const keys = keys_.wait_keys(stream, slots);
  auto const marks = marks_of(stream, slots);
  Matrix<std::int64_t> const held(stream.device(), slots.size(), table_.dim);
  kernels::take_held(stream, {.held = held_.const_ref(), .slots = slots, .out = held});
  HeldPiece piece{.bound = bound_.state(),
                  .keys = to_host(stream, keys.view()),
                  .marks = to_host(stream, marks.view()),
                  .sums = {}};
  auto const padded = to_host(stream, held.view().flat());
  std::size_t const stride = row_stride(table_.dim);
  for (std::size_t i = 0; i < padded.size(); ++i) {
    if (i % stride < table_.dim) piece.sums.push_back(padded[i]);
  }
  return piece;
}

void HeldRows::wait_load(Stream& stream, HeldPiece const& piece) {
  bound_.set_state(piece.bound);
  auto const padded = padded_sums(stream, piece, table_.dim);
  auto const keys = to_device(stream, piece.keys);
  auto const marks = to_device(stream, piece.marks);
  auto const slots = wait_slots(stream, keys);
  kernels::put_held(stream, {.from = padded, .slots = slots, .held = held_.ref()});
  kernels::scatter_column(stream, kernels::ScatterColumn<std::uint32_t>{marks, slots, keys_.marks()});
  stream.wait();
}

}  // namespace gpups::cache
