// SPDX-License-Identifier: Apache-2.0
#include "kernels/index/indexed_keys.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace gpups::kernels {
namespace {

// Radix sort by value - least, which has `bits` bits, by digits of kDigitBits bits.
template <int kDigitBits>
void sort_by_digits(std::vector<IndexedKey>& indexed, std::vector<IndexedKey>& spare, std::uint64_t least, int bits) {
  constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
  spare.resize(indexed.size());
  for (int shift = 0; shift < bits; shift += kDigitBits) {
    auto const digit = [&](IndexedKey const& of) { return (of.value - least) >> shift & (kDigits - 1); };
    std::array<std::uint32_t, kDigits + 1> begin{};
    for (auto const& of : indexed) ++begin[digit(of) + 1];
    for (std::size_t d = 1; d < kDigits; ++d) begin[d] += begin[d - 1];
    for (auto const& of : indexed) spare[begin[digit(of)]++] = of;
    indexed.swap(spare);
  }
}

}  // namespace

void sort_by_value(std::vector<IndexedKey>& indexed, std::vector<IndexedKey>& spare) {
  constexpr std::size_t kFew = 64;     // below this size, a sort by comparisons is faster
  constexpr std::size_t kSome = 4096;  // below this size, short digits, with few counters, are faster
  auto const less = [](IndexedKey const& a, IndexedKey const& b) { return a.value < b.value; };
  if (indexed.size() < kFew) return std::stable_sort(indexed.begin(), indexed.end(), less);
  std::uint64_t least = indexed[0].value, most = least, before = least;
  bool ascending = true;
  for (auto const& [value, index] : indexed) {
    ascending = ascending && before <= value;
    before = value;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  if (ascending) return;
  int const bits = static_cast<int>(std::bit_width(most - least));
  indexed.size() < kSome ? sort_by_digits<8>(indexed, spare, least, bits)
                         : sort_by_digits<11>(indexed, spare, least, bits);
}

}  // namespace gpups::kernels
