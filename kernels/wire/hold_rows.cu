// SPDX-License-Identifier: Apache-2.0
#include "kernels/wire/hold_rows.hpp"

#include "kernels/assert.hpp"
#include "kernels/atomic.hpp"
#include "kernels/compact.hpp"
#include "kernels/launch.hpp"
#include "kernels/wire/pack.hpp"
#include "kernels/wire/units.hpp"

namespace gpups::kernels {

struct HoldRow {
  HoldRows h;
  // Rows are long: that of a few rows later is asked for piece by piece, between what is done for this one.
  static constexpr std::size_t kAhead = 4;

  GPUPS_FN void operator()(std::size_t i, NativeLanes lanes) const {
    std::uint32_t const slot = h.slots[i];
    std::size_t const width = h.sums.stride();
    std::size_t const ahead = i + kAhead < h.slots.size() ? i + kAhead : i;
    std::int64_t const* const next_held = h.held.row(h.slots[ahead]);
    std::int64_t const* const next_sums = h.sums.row(h.order[ahead]);
    std::int64_t* const held = h.held.row(slot);
    std::uint32_t* const marks = h.marks.row(slot);
    std::uint32_t const since = marks[kSince];
    std::uint32_t const most = lanes.max_word(packs_of(width), [&](std::size_t pack) {
      std::size_t const first = pack * kPack, left = width - first;
      lanes.prefetch(next_held + first, (left < kPack ? left : kPack) * sizeof(std::int64_t));
      lanes.prefetch(next_sums + first, (left < kPack ? left : kPack) * sizeof(std::int64_t));
      std::int64_t total[kPack], more[kPack];
      load_pack<std::int64_t>(held, first, width, total);
      load_pack(h.sums.row(h.order[i]), first, width, more);
      std::uint64_t bad = 0;
      for (std::size_t k = 0; k < kPack; ++k) total[k] = add_units(total[k], more[k], bad);
      store_pack(total, held, first, width);
      if (bad >> 63 != 0) return kOverflown;
      std::uint32_t bits = 0;
      for (std::size_t k = 0; k < kPack; ++k) bits = bits_above(total[k]) > bits ? bits_above(total[k]) : bits;
      return bits;
    });
    if (!lanes.first()) return;
    if (most == kOverflown) atomic_min(h.fault.data(), static_cast<std::uint32_t>(i));
    float const largest = std::bit_cast<float>(most);
    bool const waits = since != 0 && h.now - since < h.age;
    bool const send = h.age == 0 || largest >= h.bound || (since != 0 && !waits && !h.sent_wait_on);
    h.largest[i] = largest;
    h.send[i] = send ? 1 : 0;
    bool const waits_on = waits || (since != 0 && h.sent_wait_on);
    marks[kSince] = most == 0 || (send && !h.sent_wait_on) ? 0 : waits_on ? since : h.now;
    marks[kNamed] = h.now;
  }
};

template <Space S>
void run(Exec<S> ex, HoldRows const& h) {
  std::size_t const n = h.slots.size();
  GPUPS_ASSERT(h.order.size() == n && h.largest.size() >= n && h.send.size() >= n && h.fault.size() == 1);
  GPUPS_ASSERT(h.held.stride == h.sums.stride() && h.marks.stride == kHeldMarks);
  each_row(ex, n, HoldRow{h});
}

template <Space S>
void run(Exec<S> ex, TakeBack const& t) {
  GPUPS_ASSERT(t.order.size() == t.slots.size() && t.held.stride == t.sums.stride());
  each_row(ex, t.slots.size(), [t] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::int64_t const* const sums = t.sums.row(t.order[i]);
    std::int64_t* const held = t.held.row(t.slots[i]);
    lanes.each(t.held.stride, [=](std::size_t j) { held[j] -= sums[j]; });
  });
}

template <Space S>
void run(Exec<S> ex, TakeHeld const& t) {
  GPUPS_ASSERT(t.out.rows() >= t.slots.size() && t.out.stride() == t.held.stride);
  each_row(ex, t.slots.size(), [t] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    if (i + kRowsAhead < t.slots.size()) {
      lanes.prefetch(t.held.row(t.slots[i + kRowsAhead]), t.held.stride * sizeof(std::int64_t));
    }
    std::int64_t const* const from = t.held.row(t.slots[i]);
    std::int64_t* const to = t.out.row(i);
    lanes.each(t.held.stride, [=](std::size_t j) { to[j] = from[j]; });
  });
}

template <Space S>
void run(Exec<S> ex, PutHeld const& p) {
  GPUPS_ASSERT(p.from.rows() >= p.slots.size() && p.from.stride() == p.held.stride);
  each_row(ex, p.slots.size(), [p] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::int64_t const* const from = p.from.row(i);
    std::int64_t* const to = p.held.row(p.slots[i]);
    lanes.each(p.held.stride, [=](std::size_t j) { to[j] = from[j]; });
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
void run(Exec<S> ex, MarkHeld const& m) {
  GPUPS_ASSERT(m.since.empty() || m.since.size() >= m.slots.size());
  each(ex, m.slots.size(), [m] GPUPS_FN(std::size_t i) {
    std::uint32_t* const marks = m.marks.row(m.slots[i]);
    marks[kSince] = m.since.empty() ? 0 : m.since[i];
    if (m.named != kKeepNamed) marks[kNamed] = m.named;
  });
}

struct ListOldCounted {
  ListOld list;
  std::size_t* count;  // on the host
};

template <Space S>
void run(Exec<S> ex, ListOldCounted const& counted) {
  ListOld const l = counted.list;
  GPUPS_ASSERT(l.slots.size() >= l.end && l.marks.stride == kHeldMarks);
  *counted.count = wait_compact(
      ex, l.slots.device(), l.end,
      [l] GPUPS_FN(std::size_t i) {
        std::uint32_t const mark = l.marks.row(static_cast<std::uint32_t>(i))[l.mark];
        return mark != 0 && l.now - mark >= l.age;
      },
      [l] GPUPS_FN(std::size_t i, std::uint32_t rank) { l.slots[rank] = static_cast<std::uint32_t>(i); });
}

GPUPS_KERNEL(hold_rows, HoldRows)
GPUPS_KERNEL(take_back, TakeBack)
GPUPS_KERNEL(take_held, TakeHeld)
GPUPS_KERNEL(put_held, PutHeld)
GPUPS_KERNEL(flag_nonzero, FlagNonzero)
GPUPS_KERNEL(mark_held, MarkHeld)
GPUPS_KERNEL(list_old_counted, ListOldCounted)

#ifndef __CUDACC__
std::size_t wait_list_old(Stream& stream, ListOld const& arguments) {
  std::size_t count = 0;
  list_old_counted(stream, {arguments, &count});
  return count;
}
#endif

}  // namespace gpups::kernels
