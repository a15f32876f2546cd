// SPDX-License-Identifier: Apache-2.0
#include "kernels/scatter_numbers.hpp"

#include "kernels/assert.hpp"
#include "kernels/copy_rows.hpp"
#include "kernels/launch.hpp"
#ifndef __CUDACC__
#include "kernels/float_vector.hpp"
#endif

namespace gpups::kernels {

#ifdef __CUDACC__
// Returns numbers 2 * pair and 2 * pair + 1 of a row as floats; zeros from column `dim` on.
template <class T>
__device__ inline float2 widened(std::uint32_t const* row, std::size_t pair, std::size_t dim) {
  std::size_t const j = 2 * pair;
  if (j >= dim) return make_float2(0, 0);
  std::uint32_t const two = row[pair];
  float const high = to_float(T{static_cast<std::uint16_t>(two >> 16)});
  return make_float2(to_float(T{static_cast<std::uint16_t>(two)}), j + 1 < dim ? high : 0);
}

template <class T>
GPUPS_FN inline void widen_row(T const* from, std::size_t dim, float* to, std::size_t stride, NativeLanes lanes) {
  auto const* const pairs = reinterpret_cast<std::uint32_t const*>(from);
  lanes.each(stride / 2, [=](std::size_t pair) { reinterpret_cast<float2*>(to)[pair] = widened<T>(pairs, pair, dim); });
}
#else
template <std::size_t kCount, class T>
inline void widen_vector(T const* from, float* to) {
  FloatVector<kCount> numbers;
  numbers.load(from);
  numbers.store(to);
}

template <class T>
inline void widen_row(T const* from, std::size_t dim, float* to, std::size_t stride, NativeLanes) {
  std::size_t j = 0;
  for (; j + 16 <= dim; j += 16) widen_vector<16>(from + j, to + j);
  for (; j + 4 <= dim; j += 4) widen_vector<4>(from + j, to + j);
  for (; j < dim; ++j) to[j] = to_float(from[j]);
  for (; j < stride; ++j) to[j] = 0;
}
#endif

template <class T, Space S>
void widen_rows(Exec<S> ex, ScatterNumbers const& p) {
  auto const* const numbers = reinterpret_cast<T const*>(p.from.data);
  std::size_t const from_stride = p.from.stride();
  each_row(ex, p.positions.size(), [p, numbers, from_stride] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    widen_row(numbers + i * from_stride, p.out.columns(), p.out.row(p.positions[i]), p.out.stride(), lanes);
  });
}

template <Space S>
void run(Exec<S> ex, ScatterNumbers const& p) {
  GPUPS_ASSERT(p.from.rows == p.positions.size() && p.from.columns == p.out.columns());
  if (p.from.type == DataType::kHalf) return widen_rows<Half>(ex, p);
  if (p.from.type == DataType::kBFloat16) return widen_rows<BFloat16>(ex, p);
  MatrixView<float const> const floats(reinterpret_cast<float const*>(p.from.data), p.from.rows, p.from.columns,
                                       p.from.stride(), p.from.device);
  copy_rows(ex, p.positions.size(), {p.out.columns(), p.out.stride()}, MatrixRows<float const>{floats},
            MatrixRowsAt<float>{p.out, p.positions});
}

GPUPS_KERNEL(scatter_numbers, ScatterNumbers)

}  // namespace gpups::kernels
