// SPDX-License-Identifier: Apache-2.0
#include "kernels/gather_numbers.hpp"

#include <vector>

#include "kernels/assert.hpp"
#include "kernels/copy_rows.hpp"
#include "kernels/segments.hpp"

namespace gpups::kernels {

// Rows to copy, as rows of floats: two numbers of 16 bits count as one float.
template <class From, class To>
struct CopiedRows {
  From from;
  To to;
  std::size_t n;
  CopiedRow row;
  bool words;  // rows are copied in words of 16 bytes

  GPUPS_ANY_FN std::size_t words_of(std::size_t floats) const { return words ? floats / 4 : floats; }
};

template <class From, class To>
CopiedRows<From, To> copied_rows(From from, To to, std::size_t n, CopiedRow row) {
  bool const words = row.dim % 4 == 0 && row.stride % 4 == 0 && from.are_words() && to.are_words();
  return {from, to, n, row, words};
}

#ifdef __CUDACC__
template <class Rows>
void copy_all(DeviceExec ex, std::vector<Rows> all) {
  SegmentList const list(ex, std::move(all),
                         [](Rows const& rows) { return copy_threads(rows.n, rows.words_of(rows.row.stride)); });
  each_item(ex, list.segments(), [] GPUPS_FN(Rows const& r, std::size_t thread) {
    std::size_t const words = r.words_of(r.row.stride), from_words = r.words_of(r.row.dim);
    if (r.words) {
      copy_words_of<uint4>(thread, r.n, words, from_words, r.from, r.to);
    } else {
      copy_words_of<std::uint32_t>(thread, r.n, words, from_words, r.from, r.to);
    }
  });
}
#else
template <bool kStream, class Rows>
void copy_all(HostExec ex, Segments<Rows> all) {
  each_item_range(ex, all, rows_at_once(kStream), [](Rows const& r, std::size_t first, std::size_t last) {
    if (kStream && r.to.are_whole_lines()) return copy_range<kStream>(r.row, r.from, r.to, first, last);
    copy_range<false>(r.row, r.from, r.to, first, last);
  });
}
template <class Rows>
void copy_all(HostExec ex, std::vector<Rows> all) {
  std::size_t bytes = 0;
  for (Rows const& r : all) bytes += r.to.are_whole_lines() ? r.n * r.row.stride * sizeof(float) : 0;
  SegmentList const list(ex, std::move(all), [](Rows const& rows) { return rows.n; });
  exceeds_caches(*ex.arena, bytes) ? copy_all<true>(ex, list.segments()) : copy_all<false>(ex, list.segments());
}
#endif

template <class T>
MatrixView<T> as_floats(NumberView const& m) {
  std::size_t const stride = m.stride() * bytes_of_number(m.type) / sizeof(float);
  return {reinterpret_cast<T*>(m.data), m.rows, stride, stride, m.device};
}
template <class T, class Typed>
Rows<T> as_floats(Typed const& rows) {
  return {reinterpret_cast<T* const*>(rows.chunks), rows.stride * bytes_of_number(rows.type) / sizeof(float)};
}

struct GatherNumbersOfAll {
  std::span<GatherNumbers const> parts;
};
struct StoreNumbersOfAll {
  std::span<StoreNumbers const> parts;
};

template <Space S>
void run(Exec<S> ex, GatherNumbersOfAll const& all) {
  std::vector<CopiedRows<TableRows<float const>, MatrixRows<float>>> copied;
  for (auto const& g : all.parts) {
    GPUPS_ASSERT(g.out.rows == g.ids.size() && g.out.type == g.rows.type && g.out.stride() <= g.rows.stride);
    auto const out = as_floats<float>(g.out);
    copied.push_back(copied_rows(TableRows<float const>{as_floats<float const>(g.rows), g.ids}, MatrixRows<float>{out},
                                 g.ids.size(), {out.stride(), out.stride()}));
  }
  copy_all(ex, std::move(copied));
}

template <Space S>
void run(Exec<S> ex, StoreNumbersOfAll const& all) {
  std::vector<CopiedRows<MatrixRows<float const>, TableRows<float>>> copied;
  for (auto const& s : all.parts) {
    GPUPS_ASSERT(s.from.rows == s.ids.size() && s.from.type == s.rows.type && s.from.stride() <= s.rows.stride);
    auto const from = as_floats<float const>(s.from);
    auto const rows = as_floats<float>(s.rows);
    copied.push_back(copied_rows(MatrixRows<float const>{from}, TableRows<float>{rows, s.ids}, s.ids.size(),
                                 {from.stride(), rows.stride}));
  }
  copy_all(ex, std::move(copied));
}

GPUPS_KERNEL(gather_numbers_of_all, GatherNumbersOfAll)
GPUPS_KERNEL(store_numbers_of_all, StoreNumbersOfAll)

#ifndef __CUDACC__
void gather_numbers(Stream& stream, std::span<GatherNumbers const> parts) { gather_numbers_of_all(stream, {parts}); }
void store_numbers(Stream& stream, std::span<StoreNumbers const> parts) { store_numbers_of_all(stream, {parts}); }
#endif

}  // namespace gpups::kernels
