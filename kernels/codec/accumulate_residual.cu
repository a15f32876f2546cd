// SPDX-License-Identifier: Apache-2.0
#include "kernels/codec/accumulate_residual.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/codec/packet.hpp"
#include "kernels/codec/units.hpp"
#include "kernels/runtime/compact.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

struct AccumulateRow {
  AccumulateResidual h;
  // Rows are long, so the row of a later iteration is prefetched piece by piece, between the pieces of this row.
  static constexpr std::size_t kAhead = 4;

  GPUPS_FN void operator()(std::size_t i, NativeLanes lanes) const {
    std::uint32_t const slot = h.slots[i];
    std::size_t const width = h.sums.stride();
    std::size_t const ahead = i + kAhead < h.slots.size() ? i + kAhead : i;
    std::int64_t const* const next_residual = h.residual.row(h.slots[ahead]);
    std::int64_t const* const next_sums = h.sums.row(h.order[ahead]);
    std::int64_t* const residual = h.residual.row(slot);
    std::uint32_t* const marks = h.marks.row(slot);
    std::uint32_t const oldest = marks[kOldest];
    std::uint32_t const most = lanes.max_word(paired_packets(width), [&](std::size_t pack) {
      std::size_t const first = pack * kPacketSize, left = width - first;
      lanes.prefetch(next_residual + first, (left < kPacketSize ? left : kPacketSize) * sizeof(std::int64_t));
      lanes.prefetch(next_sums + first, (left < kPacketSize ? left : kPacketSize) * sizeof(std::int64_t));
      std::int64_t total[kPacketSize], more[kPacketSize];
      load_words(lanes, residual, first, width, total);
      load_words(lanes, h.sums.row(h.order[i]), first, width, more);
      std::uint64_t bad = 0;
      for (std::size_t k = 0; k < kPacketSize; ++k) total[k] = add_units(total[k], more[k], bad);
      store_words(lanes, total, residual, first, width);
      if (bad >> 63 != 0) return kOverflown;
      std::uint32_t bits = 0;
      for (std::size_t k = 0; k < kPacketSize; ++k) bits = bits_above(total[k]) > bits ? bits_above(total[k]) : bits;
      return bits;
    });
    if (!lanes.first()) return;
    if (most == kOverflown) atomic_min(h.bad_row.data(), static_cast<std::uint32_t>(i));
    float const max_magnitude = std::bit_cast<float>(most);
    bool const waits = oldest != 0 && h.now - oldest < h.age;
    bool const send = h.age == 0 || max_magnitude >= h.bound || (oldest != 0 && !waits && !h.sent_stay_marked);
    h.max_magnitude[i] = max_magnitude;
    h.send[i] = send ? 1 : 0;
    bool const waits_on = waits || (oldest != 0 && h.sent_stay_marked);
    marks[kOldest] = most == 0 || (send && !h.sent_stay_marked) ? 0 : waits_on ? oldest : h.now;
    marks[kLastUse] = h.now;
  }
};

template <Space S>
void run(Exec<S> ex, AccumulateResidual const& h) {
  std::size_t const n = h.slots.size();
  GPUPS_ASSERT(h.order.size() == n && h.max_magnitude.size() >= n && h.send.size() >= n && h.bad_row.size() == 1);
  GPUPS_ASSERT(h.residual.stride == h.sums.stride() && h.marks.stride == kResidualMarks);
  GPUPS_ASSERT(h.residual.stride % 2 == 0);
  each_row(ex, n, AccumulateRow{h});
}

template <Space S>
void run(Exec<S> ex, SubtractResidual const& t) {
  GPUPS_ASSERT(t.order.size() == t.slots.size() && t.residual.stride == t.sums.stride());
  each_row(ex, t.slots.size(), [t] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::int64_t const* const sums = t.sums.row(t.order[i]);
    std::int64_t* const residual = t.residual.row(t.slots[i]);
    lanes.each(t.residual.stride, [=](std::size_t j) { residual[j] -= sums[j]; });
  });
}

template <Space S>
void run(Exec<S> ex, GatherResidual const& t) {
  GPUPS_ASSERT(t.out.rows() >= t.slots.size() && t.out.stride() == t.residual.stride);
  each_row(ex, t.slots.size(), [t] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    if (i + kRowsAhead < t.slots.size()) {
      lanes.prefetch(t.residual.row(t.slots[i + kRowsAhead]), t.residual.stride * sizeof(std::int64_t));
    }
    std::int64_t const* const from = t.residual.row(t.slots[i]);
    std::int64_t* const to = t.out.row(i);
    lanes.each(t.residual.stride, [=](std::size_t j) { to[j] = from[j]; });
  });
}

template <Space S>
void run(Exec<S> ex, ScatterResidual const& p) {
  GPUPS_ASSERT(p.from.rows() >= p.slots.size() && p.from.stride() == p.residual.stride);
  each_row(ex, p.slots.size(), [p] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::int64_t const* const from = p.from.row(i);
    std::int64_t* const to = p.residual.row(p.slots[i]);
    lanes.each(p.residual.stride, [=](std::size_t j) { to[j] = from[j]; });
  });
}

template <Space S>
void run(Exec<S> ex, FlagNonzero const& f) {
  GPUPS_ASSERT(f.flags.size() >= f.rows.rows());
  each_row(ex, f.rows.rows(), [f] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::int64_t const* const row = f.rows.row(i);
    std::uint32_t const any =
        lanes.max_word(f.rows.columns(), [=](std::size_t j) { return std::uint32_t{row[j] != 0 ? 1U : 0U}; });
    if (lanes.first()) f.flags[i] = static_cast<std::uint8_t>(any);
  });
}

template <Space S>
void run(Exec<S> ex, MarkResidual const& m) {
  GPUPS_ASSERT(m.oldest.empty() || m.oldest.size() >= m.slots.size());
  each(ex, m.slots.size(), [m] GPUPS_FN(std::size_t i) {
    std::uint32_t* const marks = m.marks.row(m.slots[i]);
    marks[kOldest] = m.oldest.empty() ? 0 : m.oldest[i];
    if (m.last_use != kKeepLastUse) marks[kLastUse] = m.last_use;
  });
}

struct ListOldCounted {
  ListAged list;
  std::size_t* count;  // on the host
};

template <Space S>
void run(Exec<S> ex, ListOldCounted const& counted) {
  ListAged const l = counted.list;
  GPUPS_ASSERT(l.slots.size() >= l.end && l.marks.stride == kResidualMarks);
  *counted.count = wait_compact(
      ex, l.slots.device(), l.end,
      [l] GPUPS_FN(std::size_t i) {
        std::uint32_t const mark = l.marks.row(static_cast<std::uint32_t>(i))[l.mark];
        return mark != 0 && l.now - mark >= l.age;
      },
      [l] GPUPS_FN(std::size_t i, std::uint32_t rank) { l.slots[rank] = static_cast<std::uint32_t>(i); });
}

GPUPS_KERNEL(accumulate_residual, AccumulateResidual)
GPUPS_KERNEL(subtract_residual, SubtractResidual)
GPUPS_KERNEL(gather_residual, GatherResidual)
GPUPS_KERNEL(scatter_residual, ScatterResidual)
GPUPS_KERNEL(flag_nonzero, FlagNonzero)
GPUPS_KERNEL(mark_residual, MarkResidual)
GPUPS_KERNEL(list_old_counted, ListOldCounted)

#ifndef __CUDACC__
std::size_t wait_list_aged(Stream& stream, ListAged const& arguments) {
  std::size_t count = 0;
  list_old_counted(stream, {arguments, &count});
  return count;
}
#endif

}  // namespace gpups::kernels
