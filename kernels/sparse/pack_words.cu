// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/pack_words.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {
namespace {

// Returns the number of words of block b.
GPUPS_ANY_FN inline std::size_t block_words(std::size_t words, std::size_t b) {
  std::size_t const left = words - b * kPackedWordBlock;
  return left < kPackedWordBlock ? left : kPackedWordBlock;
}

// Returns the bitwise OR of f(j) for all j < n, to all lanes.
template <class F>
std::uint64_t unite(HostLanes, std::size_t n, F f) {
  std::uint64_t all = 0;
  for (std::size_t j = 0; j < n; ++j) all |= f(j);
  return all;
}
#ifdef __CUDACC__
template <class F>
GPUPS_FN std::uint64_t unite(DeviceLanes lanes, std::size_t n, F f) {
  unsigned long long all = 0;
  for (std::size_t j = lanes.lane; j < n; j += kLanes) all |= f(j);
  for (unsigned half = kLanes / 2; half > 0; half /= 2) all |= lanes.warp.shuffle_xor(lanes.mask, all, half);
  return all;
}
#endif

struct FindWidth {
  FindWidths f;

  GPUPS_FN void operator()(std::size_t b, NativeLanes lanes) const {
    std::int64_t const* const words = f.words.data() + b * kPackedWordBlock;
    std::size_t const n = block_words(f.words.size(), b);
    // A number and its complement need the same bits, plus one for the sign; only zero needs no bits.
    std::uint64_t bits = unite(lanes, n, [words](std::size_t j) {
      return static_cast<std::uint64_t>(words[j] ^ (words[j] >> 63)) << 1 | static_cast<std::uint64_t>(words[j] != 0);
    });
    std::uint8_t width = 0;
    for (; bits != 0; bits >>= 8) ++width;
    if (lanes.first()) f.widths[b] = width;
  }
};

// Calls plane(a word of its type, lowest bit of its part of a word, offset in bytes) for each plane of a block.
template <class Plane>
GPUPS_FN inline void each_plane(unsigned width, std::size_t n, Plane plane) {
  if (width == 8) return plane(std::uint64_t{}, 0U, std::size_t{0});
  unsigned below = 0;
  if ((width & 4) != 0) {
    plane(std::uint32_t{}, 0U, std::size_t{0});
    below = 4;
  }
  if ((width & 2) != 0) {
    plane(std::uint16_t{}, below * 8, below * n);
    below += 2;
  }
  if ((width & 1) != 0) plane(std::uint8_t{}, below * 8, below * n);
}

struct PackBlock {
  PackWords w;

  GPUPS_FN void operator()(std::size_t b, NativeLanes lanes) const {
    std::int64_t const* const words = w.words.data() + b * kPackedWordBlock;
    std::size_t const n = block_words(w.words.size(), b);
    std::uint8_t* const block = w.bytes.data() + w.offsets[b];
    each_plane(w.widths[b], n, [&]<class T>(T, unsigned shift, std::size_t at) {
      T* const plane = reinterpret_cast<T*>(block + at);
      lanes.each(n, [=](std::size_t j) { plane[j] = static_cast<T>(static_cast<std::uint64_t>(words[j]) >> shift); });
    });
  }
};

template <bool kAdd>
struct UnpackBlock {
  UnpackWords w;

  GPUPS_FN void operator()(std::size_t b, NativeLanes lanes) const {
    std::size_t const n = block_words(w.into.size(), b);
    std::uint8_t const* const block = w.bytes.data() + w.offsets[b];
    switch (w.widths[b]) {
      case 0:
        return put(b, n, lanes, 0, [](std::size_t) { return std::uint64_t{0}; });
      case 1:
        return put<std::uint8_t>(b, n, lanes, block);
      case 2:
        return put<std::uint16_t>(b, n, lanes, block);
      case 3:
        return put<std::uint16_t, std::uint8_t>(b, n, lanes, block);
      case 4:
        return put<std::uint32_t>(b, n, lanes, block);
      case 5:
        return put<std::uint32_t, std::uint8_t>(b, n, lanes, block);
      case 6:
        return put<std::uint32_t, std::uint16_t>(b, n, lanes, block);
      case 7:
        return put<std::uint32_t, std::uint16_t, std::uint8_t>(b, n, lanes, block);
      default:
        return put<std::uint64_t>(b, n, lanes, block);
    }
  }

 private:
  template <class First>
  GPUPS_FN void put(std::size_t b, std::size_t n, NativeLanes lanes, std::uint8_t const* block) const {
    auto const* const first = reinterpret_cast<First const*>(block);
    put(b, n, lanes, 64 - 8 * sizeof(First), [=](std::size_t j) { return std::uint64_t{first[j]}; });
  }
  template <class First, class Second>
  GPUPS_FN void put(std::size_t b, std::size_t n, NativeLanes lanes, std::uint8_t const* block) const {
    auto const* const first = reinterpret_cast<First const*>(block);
    auto const* const second = reinterpret_cast<Second const*>(block + n * sizeof(First));
    put(b, n, lanes, 64 - 8 * (sizeof(First) + sizeof(Second)),
        [=](std::size_t j) { return first[j] | std::uint64_t{second[j]} << (8 * sizeof(First)); });
  }
  template <class First, class Second, class Third>
  GPUPS_FN void put(std::size_t b, std::size_t n, NativeLanes lanes, std::uint8_t const* block) const {
    auto const* const first = reinterpret_cast<First const*>(block);
    auto const* const second = reinterpret_cast<Second const*>(block + n * sizeof(First));
    auto const* const third = reinterpret_cast<Third const*>(block + n * (sizeof(First) + sizeof(Second)));
    put(b, n, lanes, 64 - 8 * (sizeof(First) + sizeof(Second) + sizeof(Third)),
        [=](std::size_t j) { return first[j] | std::uint64_t{second[j]} << 32 | std::uint64_t{third[j]} << 48; });
  }
  // The sign of word(j) is `spare` bits below the highest bit.
  template <class Word>
  GPUPS_FN void put(std::size_t b, std::size_t n, NativeLanes lanes, unsigned spare, Word word) const {
    std::int64_t* const into = w.into.data() + b * kPackedWordBlock;
    lanes.each(n, [=](std::size_t j) {
      auto const value = static_cast<std::uint64_t>(static_cast<std::int64_t>(word(j) << spare) >> spare);
      into[j] = static_cast<std::int64_t>(kAdd ? static_cast<std::uint64_t>(into[j]) + value : value);
    });
  }
};

}  // namespace

template <Space S>
void run(Exec<S> ex, FindWidths const& f) {
  GPUPS_ASSERT(f.widths.size() == packed_word_blocks(f.words.size()));
  each_row(ex, f.widths.size(), FindWidth{f});
}

template <Space S>
void run(Exec<S> ex, PackWords const& w) {
  GPUPS_ASSERT(w.widths.size() == packed_word_blocks(w.words.size()) && w.offsets.size() == w.widths.size());
  each_row(ex, w.widths.size(), PackBlock{w});
}

template <Space S>
void run(Exec<S> ex, UnpackWords const& w) {
  GPUPS_ASSERT(w.widths.size() == packed_word_blocks(w.into.size()) && w.offsets.size() == w.widths.size());
  if (w.add) {
    each_row(ex, w.widths.size(), UnpackBlock<true>{w});
  } else {
    each_row(ex, w.widths.size(), UnpackBlock<false>{w});
  }
}

GPUPS_KERNEL(find_widths, FindWidths)
GPUPS_KERNEL(pack_words, PackWords)
GPUPS_KERNEL(unpack_words, UnpackWords)

}  // namespace gpups::kernels
