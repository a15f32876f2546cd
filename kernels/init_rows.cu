// SPDX-License-Identifier: Apache-2.0
#include "kernels/init_rows.hpp"

#include <cstring>
#include <type_traits>

#include "kernels/assert.hpp"
#include "kernels/initial_value.hpp"
#include "kernels/launch.hpp"

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
void init(Exec<S> ex, InitRows const& r) {
  each_row(ex, r.ids.size(), [r] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::uint32_t const id = r.ids[i];
    init_row<T>(lanes, r.initializer, r.seed, r.keys[i], r.values.as<T>().row(id), r.dim, r.values.stride);
    if (r.state_columns == 0) return;
    float* const state = r.state.row(id);
    lanes.each(r.state_columns, [=](std::size_t j) { state[j] = j < r.accumulators ? r.initial_accumulator : 0; });
  });
}

template <Space S>
void run(Exec<S> ex, InitRows const& r) {
  GPUPS_ASSERT(r.keys.size() == r.ids.size() && r.values.stride >= r.dim);
  with_number(r.values.type, [&]<class T>() { init<T>(ex, r); });
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

GPUPS_KERNEL(init_rows, InitRows)
GPUPS_KERNEL(init_matrix, InitMatrix)

}  // namespace gpups::kernels
