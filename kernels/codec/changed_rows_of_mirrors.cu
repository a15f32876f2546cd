// SPDX-License-Identifier: Apache-2.0
#include "kernels/codec/changed_rows_of_mirrors.hpp"

#include <bit>

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

struct ChangedRow {
  ChangedRows c;

  GPUPS_FN void operator()(std::size_t i, NativeLanes lanes) const {
    std::size_t const dim = c.values.columns();
    if (i + kRowsAhead < c.slots.size()) {
      lanes.prefetch(c.mirrors.row(c.slots[i + kRowsAhead]), dim * sizeof(float));
    }
    float const* const value = c.values.row(i);
    float const* const copy = c.mirrors.row(c.slots[i]);
    std::uint32_t* const marks = c.marks.row(c.slots[i]);
    std::uint32_t const since = marks[kOldest];
    float const max_magnitude = lanes.max(0, dim, [=](std::size_t j) { return __builtin_fabsf(value[j] - copy[j]); });
    // If no difference is above 0: bits of equal numbers may differ, and differences may be NaN.
    bool const by_bits = c.by_bits;
    bool const differs = max_magnitude > 0 || lanes.max_word(dim, [=](std::size_t j) {
      bool const same = by_bits ? std::bit_cast<std::uint32_t>(value[j]) == std::bit_cast<std::uint32_t>(copy[j])
                                : value[j] - copy[j] == 0;
      return same ? 0U : 1U;
    }) != 0;
    if (!lanes.first()) return;
    c.max_magnitude[i] = max_magnitude;
    if (marks[kLastUse] == c.now) {
      c.send[i] = 0;
      return;
    }
    // The change may have begun at this step; 0: at any step.
    std::uint32_t const first = since != 0 ? since : marks[kLastUse] != 0 ? marks[kLastUse] + 1 : 0;
    bool const may_wait = first != 0 && c.now - first < c.age;
    bool const send = differs && (max_magnitude >= c.bound || !may_wait);
    c.send[i] = send ? 1 : 0;
    marks[kOldest] = send || !differs ? 0 : first;
    marks[kLastUse] = c.now;
  }
};

template <Space S>
void run(Exec<S> ex, ChangedRows const& c) {
  std::size_t const n = c.slots.size();
  GPUPS_ASSERT(c.values.rows() >= n && c.max_magnitude.size() >= n && c.send.size() >= n);
  GPUPS_ASSERT(c.mirrors.stride >= c.values.columns() && c.marks.stride == kResidualMarks);
  each_row(ex, n, ChangedRow{c});
}

template <Space S>
void run(Exec<S> ex, GatherChanges const& t) {
  GPUPS_ASSERT(t.to.rows() >= t.rows.size() && t.slots.size() == t.rows.size());
  GPUPS_ASSERT(t.to.columns() == t.values.columns() && t.mirrors.stride >= t.values.columns());
  each_row(ex, t.rows.size(), [t] GPUPS_FN(std::size_t k, NativeLanes lanes) {
    float const* const value = t.values.row(t.rows[k]);
    float const* const copy = t.mirrors.row(t.slots[k]);
    float* const to = t.to.row(k);
    lanes.each(t.to.columns(), [=](std::size_t j) { to[j] = value[j] - copy[j]; });
  });
}

template <Space S>
void run(Exec<S> ex, UpdateMirrors const& c) {
  GPUPS_ASSERT(c.rows.rows() >= c.slots.size() && c.mirrors.stride >= c.rows.columns());
  each_row(ex, c.slots.size(), [c] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const* const from = c.rows.row(i);
    float* const to = c.mirrors.row(c.slots[i]);
    bool const add = c.add;
    lanes.each(c.rows.columns(), [=](std::size_t j) { to[j] = add ? to[j] + from[j] : from[j]; });
  });
}

GPUPS_KERNEL(changed_rows, ChangedRows)
GPUPS_KERNEL(gather_changes, GatherChanges)
GPUPS_KERNEL(update_mirrors, UpdateMirrors)

}  // namespace gpups::kernels
