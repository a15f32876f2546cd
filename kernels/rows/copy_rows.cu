// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/copy_rows.hpp"

#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/assert.hpp"
#ifdef __CUDACC__
#include "kernels/rows/copy_rows_device.hpp"
#else
#include "kernels/rows/copy_rows_host.hpp"
#endif

namespace gpups::kernels {

struct GatherOfAll {
  std::span<Gather const> parts;
};

template <Space S>
void run(Exec<S> ex, GatherOfAll const& all) {
  std::vector<CopiedRows<TableRows<float const>, MatrixRows<float>>> copied;
  for (auto const& g : all.parts) {
    GPUPS_ASSERT(g.out.rows() >= g.ids.size() && g.out.stride() <= g.rows.stride);
    copied.push_back(copied_rows(TableRows<float const>{g.rows, g.ids}, MatrixRows<float>{g.out}, g.ids.size(),
                                 {g.out.stride(), g.out.stride()}));
  }
  copy_row_lists(ex, std::move(copied));
}

GPUPS_KERNEL(gather_of_all, GatherOfAll)

#ifndef __CUDACC__
void gather(Stream& stream, std::span<Gather const> parts) { gather_of_all(stream, {parts}); }
#endif

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

template <class T, Space S>
void scatter_as(Exec<S> ex, Scatter const& s) {
  if constexpr (std::is_same_v<T, float>) {
    copy_rows(ex, s.ids.size(), {s.dim, s.rows.stride}, MatrixRows<float const>{s.from},
              TableRows<float>{s.rows.as<float>(), s.ids});
  } else {
    each_row(ex, s.ids.size(), [s] GPUPS_FN(std::size_t i, NativeLanes lanes) {
      if (s.ids[i] == kNoRow) return;
      float const* const from = s.from.row(i);
      T* const to = s.rows.as<T>().row(s.ids[i]);
      lanes.each(s.rows.stride, [=](std::size_t j) { to[j] = round_to<T>(j < s.dim ? from[j] : 0); });
    });
  }
}

template <Space S>
void run(Exec<S> ex, Scatter const& s) {
  GPUPS_ASSERT(s.from.rows() >= s.ids.size() && s.from.columns() >= s.dim && s.rows.stride >= s.dim);
  with_number(s.rows.type, [&]<class T>() { scatter_as<T>(ex, s); });
}

GPUPS_KERNEL(scatter, Scatter)

template <Space S>
void run(Exec<S> ex, GatherMatrixRows const& t) {
  std::size_t const n = t.positions.size(), dim = t.to.columns();
  GPUPS_ASSERT(t.to.rows() >= n && t.from.columns() >= dim);
  copy_rows(ex, n, {dim, dim}, MatrixRowsAt<float const>{t.from, t.positions}, MatrixRows<float>{t.to});
  if (t.flags_to.empty()) return;
  each(ex, n, [t] GPUPS_FN(std::size_t i) { t.flags_to[i] = t.flags_from[t.positions[i]]; });
}

template <Space S>
void run(Exec<S> ex, ScatterMatrixRows const& p) {
  GPUPS_ASSERT(p.from.rows() >= p.positions.size() && p.from.columns() >= p.to.columns());
  copy_rows(ex, p.positions.size(), {p.to.columns(), p.to.stride()}, MatrixRows<float const>{p.from},
            MatrixRowsAt<float>{p.to, p.positions});
}

GPUPS_KERNEL(gather_matrix_rows, GatherMatrixRows)
GPUPS_KERNEL(scatter_matrix_rows, ScatterMatrixRows)

}  // namespace gpups::kernels
