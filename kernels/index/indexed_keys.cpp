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

// The most ascending pieces of a list for which merging them is faster than a radix sort.
constexpr std::size_t kFewPieces = 8;

// Where the ascending pieces of a list begin, and its end. A list of more pieces than kFewPieces has kFewPieces + 1.
struct Pieces {
  std::array<std::size_t, kFewPieces + 2> begin{};
  std::size_t count = 1;
};

// Sorts a list of few ascending pieces: merges neighbours until one is left.
void merge_pieces(std::vector<IndexedKey>& indexed, std::vector<IndexedKey>& spare, Pieces pieces) {
  if (pieces.count == 1) return;
  spare.resize(indexed.size());
  for (; pieces.count > 1; pieces.count = (pieces.count + 1) / 2) {
    pieces.begin[pieces.count] = pieces.begin[pieces.count + 1] = indexed.size();
    auto const* const at = indexed.data();
    for (std::size_t k = 0; k < pieces.count; k += 2) {
      std::size_t const begin = pieces.begin[k], middle = pieces.begin[k + 1], end = pieces.begin[k + 2];
      merge(at + begin, at + middle, at + middle, at + end, spare.data() + begin);
      pieces.begin[k / 2] = begin;
    }
    indexed.swap(spare);
  }
}

}  // namespace

void sort_by_value(std::vector<IndexedKey>& indexed, std::vector<IndexedKey>& spare) {
  constexpr std::size_t kFew = 64;     // below this size, a sort by comparisons is faster
  constexpr std::size_t kSome = 4096;  // below this size, short digits, with few counters, are faster
  auto const less = [](IndexedKey const& a, IndexedKey const& b) { return a.value < b.value; };
  if (indexed.size() < kFew) return std::stable_sort(indexed.begin(), indexed.end(), less);
  std::uint64_t least = indexed[0].value, most = least;
  Pieces pieces;
  for (std::size_t i = 1; i < indexed.size(); ++i) {
    std::uint64_t const value = indexed[i].value;
    if (value < indexed[i - 1].value && pieces.count <= kFewPieces) pieces.begin[pieces.count++] = i;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  if (pieces.count <= kFewPieces) return merge_pieces(indexed, spare, pieces);
  int const bits = static_cast<int>(std::bit_width(most - least));
  indexed.size() < kSome ? sort_by_digits<8>(indexed, spare, least, bits)
                         : sort_by_digits<11>(indexed, spare, least, bits);
}

}  // namespace gpups::kernels
