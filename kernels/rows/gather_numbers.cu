// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/gather_numbers.hpp"

#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/rows/copy_row_lists.hpp"

namespace gpups::kernels {

// Return rows as rows of floats: two numbers of 16 bits count as one.
template <class T>
MatrixView<T> as_floats(NumberView const& m) {
  std::size_t const stride = m.stride() * bytes_of_number(m.type) / sizeof(float);
  return {reinterpret_cast<T*>(m.data), m.rows, stride, stride, m.device};
}
template <class T, class Typed>
Rows<T> as_floats(Typed const& rows) {
  return {reinterpret_cast<T* const*>(rows.chunks), rows.stride * bytes_of_number(rows.type) / sizeof(float),
          rows.chunk_bits};
}

struct GatherNumbersOfAll {
  std::span<GatherNumbers const> parts;
};
struct ScatterNumbersOfAll {
  std::span<ScatterNumbers const> parts;
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
  copy_row_lists(ex, std::move(copied));
}

template <Space S>
void run(Exec<S> ex, ScatterNumbersOfAll const& all) {
  std::vector<CopiedRows<MatrixRows<float const>, TableRows<float>>> copied;
  for (auto const& s : all.parts) {
    GPUPS_ASSERT(s.from.rows == s.ids.size() && s.from.type == s.rows.type && s.from.stride() <= s.rows.stride);
    auto const from = as_floats<float const>(s.from);
    auto const rows = as_floats<float>(s.rows);
    copied.push_back(copied_rows(MatrixRows<float const>{from}, TableRows<float>{rows, s.ids}, s.ids.size(),
                                 {from.stride(), rows.stride}));
  }
  copy_row_lists(ex, std::move(copied));
}

GPUPS_KERNEL(gather_numbers_of_all, GatherNumbersOfAll)
GPUPS_KERNEL(scatter_numbers_of_all, ScatterNumbersOfAll)

#ifndef __CUDACC__
void gather_numbers(Stream& stream, std::span<GatherNumbers const> parts) { gather_numbers_of_all(stream, {parts}); }
void scatter_numbers(Stream& stream, std::span<ScatterNumbers const> parts) { scatter_numbers_of_all(stream, {parts}); }
#endif

}  // namespace gpups::kernels
