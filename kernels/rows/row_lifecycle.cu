// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/row_lifecycle.hpp"

#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/rows/selected_rows.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, RowsExist const& r) {
  each(ex, r.ids.size(), [r] GPUPS_FN(std::size_t i) {
    std::uint32_t const word = r.ids[i] != kNoRow ? *r.lifecycle.row(r.ids[i]) : 0;
    bool const found = exists(word) || (r.or_wait && waits(word));
    if (!found) r.ids[i] = kNoRow;
    if (!r.found.empty()) r.found[i] = found ? 1 : 0;
  });
}

struct MarkExistingOfAll {
  std::span<MarkExisting const> lists;
};

template <Space S>
void run(Exec<S> ex, MarkExistingOfAll const& all) {
  SegmentList const list(ex, std::vector(all.lists.begin(), all.lists.end()),
                         [](MarkExisting const& m) { return bitmap_words(m.ids.size()); });
  each_item(ex, list.segments(), [] GPUPS_FN(MarkExisting const& m, std::size_t word) {
    std::size_t const first = 32 * word;
    std::size_t const count = first + 32 < m.ids.size() ? 32 : m.ids.size() - first;
    std::uint32_t bits = 0;
    for (std::size_t b = 0; b < count; ++b) {
      std::uint32_t const state = *m.lifecycle.row(m.ids[first + b]);
      bits |= std::uint32_t{exists(state) || (m.or_wait && waits(state))} << b;
    }
    m.bitmap[word] = bits;
  });
}

template <Space S>
void run(Exec<S> ex, BeginRows const& b) {
  each(ex, b.ids.size(), [b] GPUPS_FN(std::size_t i) {
    std::uint32_t* const lifecycle = b.lifecycle.row(b.ids[i]);
    if (!exists(lifecycle[0])) lifecycle[0] = 1;
    lifecycle[1] = b.step;
  });
}

struct CountOccurrencesOfAll {
  std::span<CountOccurrences const> lists;
};

template <Space S>
void run(Exec<S> ex, CountOccurrencesOfAll const& all) {
  for ([[maybe_unused]] auto const& s : all.lists) {
    GPUPS_ASSERT(s.counts.empty() ? s.offsets.size() == s.ids.size() + 1 : s.counts.size() >= s.ids.size());
  }
  SegmentList const list(ex, std::vector(all.lists.begin(), all.lists.end()),
                         [](CountOccurrences const& s) { return s.ids.size(); });
  each_item(ex, list.segments(), [] GPUPS_FN(CountOccurrences const& s, std::size_t i) {
    std::uint32_t* const lifecycle = s.lifecycle.row(s.ids[i]);
    auto const more = s.counts.empty() ? s.offsets[i + 1] - s.offsets[i] : static_cast<std::uint32_t>(s.counts[i]);
    for (std::uint32_t seen = atomic_load(lifecycle); !exists(seen);) {
      std::uint32_t const before = atomic_exchange_if(lifecycle, seen, after_occurrences(seen, more));
      if (before == seen) return void(atomic_exchange(lifecycle + 1, s.step));
      seen = before;
    }
  });
}

struct EndRowsOfAll {
  std::span<EndRows const> lists;
};

template <Space S>
void run(Exec<S> ex, EndRowsOfAll const& all) {
  SegmentList const list(ex, std::vector(all.lists.begin(), all.lists.end()),
                         [](EndRows const& e) { return e.ids.size(); });
  each_item(ex, list.segments(), [] GPUPS_FN(EndRows const& e, std::size_t i) {
    if (e.ids[i] != kNoRow) *e.lifecycle.row(e.ids[i]) = 0;
  });
}

template <Space S>
void run(Exec<S> ex, ExpireRows const& e) {
  each(ex, e.rows, [e] GPUPS_FN(std::size_t i) {
    std::uint32_t* const lifecycle = e.lifecycle.row(static_cast<std::uint32_t>(i));
    if (lifecycle[0] == 0 || e.now - lifecycle[1] <= e.age) return;
    if (exists(lifecycle[0])) atomic_add(&e.existing[0], 1);
    lifecycle[0] = 0;
  });
}

GPUPS_KERNEL(rows_exist, RowsExist)
GPUPS_KERNEL(mark_existing_of_all, MarkExistingOfAll)
GPUPS_KERNEL(begin_rows, BeginRows)
GPUPS_KERNEL(count_occurrences_of_all, CountOccurrencesOfAll)
GPUPS_KERNEL(end_rows_of_all, EndRowsOfAll)
GPUPS_KERNEL(expire_rows, ExpireRows)

#ifndef __CUDACC__
void count_occurrences(Stream& stream, std::span<CountOccurrences const> lists) {
  count_occurrences_of_all(stream, {lists});
}
void end_rows(Stream& stream, std::span<EndRows const> lists) { end_rows_of_all(stream, {lists}); }
void mark_existing(Stream& stream, std::span<MarkExisting const> lists) { mark_existing_of_all(stream, {lists}); }
#endif

struct CountEntriesOfAll {
  std::span<CountEntries const> parts;
};

template <Space S>
void run(Exec<S> ex, CountEntriesOfAll const& all) {
  for ([[maybe_unused]] auto const& c : all.parts) GPUPS_ASSERT(c.counts.size() >= c.rows.size());
  SegmentList const list(ex, std::vector(all.parts.begin(), all.parts.end()),
                         [](CountEntries const& c) { return c.counts.size(); });
  each_item(ex, list.segments(), [] GPUPS_FN(CountEntries const& c, std::size_t i) {
    c.counts[i] = i < c.rows.size() ? std::int64_t{c.offsets[c.rows[i] + 1] - c.offsets[c.rows[i]]} : 0;
  });
}

GPUPS_KERNEL(count_entries_of_all, CountEntriesOfAll)

#ifndef __CUDACC__
void count_entries(Stream& stream, std::span<CountEntries const> parts) { count_entries_of_all(stream, {parts}); }
#endif

}  // namespace gpups::kernels
