// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum/sum_arrays.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

namespace {

// The most arrays that are read in one pass.
constexpr std::size_t kAtOnce = 8;

struct Pointers {
  float const* arrays[kAtOnce];
};

template <std::size_t Count, class Ex>
void sum(Ex ex, Pointers p, float* sums, std::size_t n) {
  each(ex, n, [p, sums] GPUPS_FN(std::size_t i) {
    float total = p.arrays[0][i];
    for (std::size_t k = 1; k < Count; ++k) total += p.arrays[k][i];
    sums[i] = total;
  });
}

template <class Ex>
void sum_some(Ex ex, std::size_t count, Pointers const& p, float* sums, std::size_t n) {
  switch (count) {
    case 1:
      return sum<1>(ex, p, sums, n);
    case 2:
      return sum<2>(ex, p, sums, n);
    case 3:
      return sum<3>(ex, p, sums, n);
    case 4:
      return sum<4>(ex, p, sums, n);
    case 5:
      return sum<5>(ex, p, sums, n);
    case 6:
      return sum<6>(ex, p, sums, n);
    case 7:
      return sum<7>(ex, p, sums, n);
    default:
      return sum<8>(ex, p, sums, n);
  }
}

}  // namespace

template <Space S>
void run(Exec<S> ex, SumArrays const& s) {
  GPUPS_ASSERT(!s.arrays.empty());
  Pointers p{};
  std::size_t count = 0;
  for (auto const& array : s.arrays) {
    GPUPS_ASSERT(array.size() == s.sums.size());
    if (count == kAtOnce) {
      sum_some(ex, count, p, s.sums.data(), s.sums.size());
      p.arrays[0] = s.sums.data();
      count = 1;
    }
    p.arrays[count++] = array.data();
  }
  sum_some(ex, count, p, s.sums.data(), s.sums.size());
}

GPUPS_KERNEL(sum_arrays, SumArrays)

template <Space S>
void run(Exec<S> ex, AddElements const& a) {
  GPUPS_ASSERT(a.indices.size() == a.values.size());
  each(ex, a.indices.size(), [a] GPUPS_FN(std::size_t i) {
    std::uint64_t const at = a.indices[i] - a.first;  // wraps to a large number if the index is below `first`
    if (at < a.into.size()) a.into[at] += a.values[i];
  });
}

GPUPS_KERNEL(add_elements, AddElements)

}  // namespace gpups::kernels
