// SPDX-License-Identifier: Apache-2.0
#include "kernels/index/indexed_keys.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <utility>

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

// Merges two ascending lists. Of equal values, those of `a` come first. No branch depends on the values.
IndexedKey* merge(IndexedKey const* a, IndexedKey const* a_end, IndexedKey const* b, IndexedKey const* b_end,
                  IndexedKey* to) {
  while (a != a_end && b != b_end) {
    bool const from_b = b->value < a->value;
    *to++ = *(from_b ? b : a);
    a += from_b ? 0 : 1;
    b += from_b ? 1 : 0;
  }
  return std::copy(b, b_end, std::copy(a, a_end, to));
}

// Sorts a list of few ascending pieces, each of which begins at one of `begins`: merges neighbours until one is left.
void merge_pieces(std::vector<IndexedKey>& indexed, std::vector<IndexedKey>& spare, std::vector<std::size_t> begins) {
  spare.resize(indexed.size());
  while (begins.size() > 1) {
    std::vector<std::size_t> merged;
    begins.push_back(indexed.size());
    for (std::size_t k = 0; k + 1 < begins.size(); k += 2) {
      std::size_t const middle = begins[k + 1], end = k + 2 < begins.size() ? begins[k + 2] : middle;
      merged.push_back(begins[k]);
      auto const* const at = indexed.data();
      merge(at + begins[k], at + middle, at + middle, at + end, spare.data() + begins[k]);
    }
    indexed.swap(spare);
    begins = std::move(merged);
  }
}

}  // namespace

void sort_by_value(std::vector<IndexedKey>& indexed, std::vector<IndexedKey>& spare) {
  constexpr std::size_t kFew = 64;     // below this size, a sort by comparisons is faster
  constexpr std::size_t kSome = 4096;  // below this size, short digits, with few counters, are faster
  auto const less = [](IndexedKey const& a, IndexedKey const& b) { return a.value < b.value; };
  if (indexed.size() < kFew) return std::stable_sort(indexed.begin(), indexed.end(), less);
  constexpr std::size_t kFewPieces = 8;  // up to here, merging them is faster
  std::uint64_t least = indexed[0].value, most = least;
  std::vector<std::size_t> begins{0};
  for (std::size_t i = 1; i < indexed.size(); ++i) {
    std::uint64_t const value = indexed[i].value;
    if (value < indexed[i - 1].value && begins.size() <= kFewPieces) begins.push_back(i);
    least = std::min(least, value);
    most = std::max(most, value);
  }
  if (begins.size() <= kFewPieces) return merge_pieces(indexed, spare, std::move(begins));
  int const bits = static_cast<int>(std::bit_width(most - least));
  indexed.size() < kSome ? sort_by_digits<8>(indexed, spare, least, bits)
                         : sort_by_digits<11>(indexed, spare, least, bits);
}

}  // namespace gpups::kernels
