// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/init_rows.hpp"

#include <cstring>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/rows/initial_value.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

// Writes the first `count` of four numbers, at most all. On a GPU all four are one store if the address allows it.
template <class T>
GPUPS_FN inline void put_four(T* to, T const (&four)[4], std::size_t count) {
#ifdef __CUDACC__
  using Word = std::conditional_t<sizeof(T) == 4, uint4, uint2>;
  if (count >= 4 && reinterpret_cast<std::uintptr_t>(to) % sizeof(Word) == 0) {
    Word word;
    memcpy(&word, four, sizeof word);
    *reinterpret_cast<Word*>(to) = word;
    return;
  }
#endif
  for (std::size_t i = 0; i < 4 && i < count; ++i) to[i] = four[i];
}

// Writes the initial values of a row as numbers of type Written, after rounding them to type T.
template <class T, class Written>
GPUPS_FN inline void init_row(NativeLanes lanes, Initializer init, std::uint64_t seed, Key key, Written* to,
                              std::size_t dim, std::size_t stride) {
  lanes.each((stride + 3) / 4, [=](std::size_t quad) {
    FourValues const q = initial_values(init, seed, key, quad);
    Written four[4];
    for (std::size_t i = 0; i < 4; ++i) {
      four[i] = round_to<Written>(4 * quad + i < dim ? to_float(round_to<T>(q.value[i])) : 0);
    }
    put_four(to + 4 * quad, four, stride - 4 * quad);
  });
}

template <class T, Space S>
void init(Exec<S> ex, std::vector<InitRows> tables) {
  SegmentList const list(ex, std::move(tables), [](InitRows const& r) { return r.ids.size(); });
  each_row_item(ex, list.segments(), [] GPUPS_FN(InitRows const& r, std::size_t i, NativeLanes lanes) {
    std::uint32_t const id = r.ids[i];
    Key const key = r.keys.empty() ? Key{*r.key_of_id.row(id)} : r.keys[i];
    init_row<T>(lanes, r.initializer, r.seed, key, r.values.as<T>().row(id), r.dim, r.values.stride);
    if (r.state_columns == 0) return;
    float* const state = r.state.row(id);
    std::size_t const accumulators = r.accumulators;
    float const first = r.initial_accumulator;
    lanes.each(r.state_columns, [=](std::size_t j) { state[j] = j < accumulators ? first : 0; });
  });
}

struct InitRowsOfAll {
  std::span<InitRows const> tables;
};

template <Space S>
void run(Exec<S> ex, InitRowsOfAll const& all) {
  std::map<DataType, std::vector<InitRows>> by_type;
  for (auto const& r : all.tables) {
    GPUPS_ASSERT((r.keys.size() == r.ids.size() || (r.keys.empty() && r.key_of_id.stride == 1)) &&
                 r.values.stride >= r.dim);
    by_type[r.values.type].push_back(r);
  }
  for (auto& [type, tables] : by_type) {
    with_number(type, [&ex, &of_type = tables]<class T>() { init<T>(ex, std::move(of_type)); });
  }
}

template <class T, Space S>
void init(Exec<S> ex, InitMatrix const& m) {
  each_row(ex, m.keys.size(), [m] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    if (!m.only_where_no_row.empty() && m.only_where_no_row[i] != kNoRow) return;
    init_row<T>(lanes, m.initializer, m.seed, m.keys[i], m.out.row(i), m.out.columns(), m.out.stride());
  });
}

template <Space S>
void run(Exec<S> ex, InitMatrix const& m) {
  GPUPS_ASSERT(m.out.rows() >= m.keys.size());
  GPUPS_ASSERT(m.only_where_no_row.empty() || m.only_where_no_row.size() == m.keys.size());
  with_number(m.type, [&]<class T>() { init<T>(ex, m); });
}

GPUPS_KERNEL(init_rows_of_all, InitRowsOfAll)
GPUPS_KERNEL(init_matrix, InitMatrix)

#ifndef __CUDACC__
void init_rows(Stream& stream, std::span<InitRows const> tables) { init_rows_of_all(stream, {tables}); }
#endif

}  // namespace gpups::kernels
