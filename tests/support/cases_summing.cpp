// SPDX-License-Identifier: Apache-2.0
// Cases of kernels for sums over ranks: of arrays, of sparse vectors, and of packed integers.
#include <algorithm>
#include <memory>

#include "kernels/sparse/pack_words.hpp"
#include "kernels/sum/sum_arrays.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test {
namespace {

// The sum of 1 to 20 arrays; 20 are more than the kernel reads in one pass.
Problem sum_arrays(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    std::vector<std::vector<float>> terms;
    std::vector<Array<float>> arrays;
    std::vector<View<float const>> views;
    Array<float> sums;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  for (std::size_t k = 0; k <= size.dim % 20; ++k) {
    std::vector<float> terms(size.n);
    for (float& term : terms) term = static_cast<float>(uniform(random) - 0.5);
    s->arrays.push_back(to_device(stream, terms));
    s->views.push_back(s->arrays.back());
    s->terms.push_back(std::move(terms));
  }
  s->sums = Array<float>(stream.device(), size.n);

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * 4 * (s->terms.size() + 1);
  p.run = [s](Stream& on) { kernels::sum_arrays(on, {.arrays = s->views, .sums = s->sums}); };
  p.wrong = [s](Stream& on) {
    std::vector<float> want(s->terms[0].size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      for (std::size_t k = 0; k < s->terms.size(); ++k) want[i] = k == 0 ? s->terms[k][i] : want[i] + s->terms[k][i];
    }
    return differ("sums", to_host(on, s->sums.view()), want);
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->sums.view())); };
  return p;
}

// Indices are every third number. The first is just below the array, and the last is beyond its end.
Problem add_elements(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    std::vector<std::uint32_t> indices;
    std::vector<float> values;
    Array<std::uint32_t> indices_there;
    Array<float> values_there, into;
  };
  constexpr std::uint64_t kFirst = 1001;
  Random random(seed);
  auto s = std::make_shared<State>();
  for (std::uint32_t i = 0; i < size.n; ++i) {
    s->indices.push_back(static_cast<std::uint32_t>(kFirst) - 1 + 3 * i);
    s->values.push_back(static_cast<float>(uniform(random)));
  }
  s->indices_there = to_device(stream, s->indices);
  s->values_there = to_device(stream, s->values);
  std::size_t const extent = size.n < 2 ? size.n : 3 * (size.n - 2) + 1;  // the last is beyond the end
  s->into = to_device(stream, std::vector<float>(extent, 1));

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * 16;
  p.run = [s](Stream& on) {
    kernels::add_elements(on,
                          {.indices = s->indices_there, .values = s->values_there, .first = kFirst, .into = s->into});
  };
  p.wrong = [s, extent](Stream& on) {
    std::vector<float> want(extent, 1);
    for (std::size_t i = 0; i < s->indices.size(); ++i) {
      if (s->indices[i] >= kFirst && s->indices[i] - kFirst < extent) want[s->indices[i] - kFirst] += s->values[i];
    }
    return differ("into", to_host(on, s->into.view()), want);
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->into.view())); };
  return p;
}

// Returns words in blocks of all widths. The first word of a block needs the most bits.
std::vector<std::int64_t> words_of_all_widths(Random& random, std::size_t n) {
  std::vector<std::int64_t> words(n);
  for (std::size_t first = 0; first < n; first += kernels::kPackedWordBlock) {
    auto const bits = random() % 65;
    for (std::size_t i = first; i < std::min(n, first + kernels::kPackedWordBlock); ++i) {
      std::uint64_t const magnitude = bits == 0 ? 0 : (random() >> (64 - bits)) >> 1;
      words[i] = static_cast<std::int64_t>(i % 2 == 0 || bits == 0 ? magnitude : ~magnitude);
    }
    if (bits > 0) words[first] = static_cast<std::int64_t>(~std::uint64_t{0} << (bits - 1));
  }
  return words;
}
std::uint8_t width_of(std::vector<std::int64_t> const& words, std::size_t block) {
  std::uint8_t width = 0;
  for (std::size_t i = block * kernels::kPackedWordBlock;
       i < std::min(words.size(), (block + 1) * kernels::kPackedWordBlock); ++i) {
    std::uint8_t bytes = words[i] == 0 ? 0 : 1;
    while (bytes > 0 && bytes < 8 && (words[i] >> (8 * bytes - 1)) != 0 && (words[i] >> (8 * bytes - 1)) != -1) ++bytes;
    width = std::max(width, bytes);
  }
  return width;
}

// Packs words and unpacks them. kAdd: adds them to existing words.
template <bool kAdd>
Problem pack_and_unpack(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    std::vector<std::int64_t> words, before;
    Array<std::int64_t> words_there, into;
    std::vector<std::uint8_t> widths;
    std::vector<std::uint32_t> offsets;
    Array<std::uint8_t> widths_there, bytes;
    Array<std::uint32_t> offsets_there;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  std::size_t const n = size.n * std::max<std::size_t>(size.dim, 1);
  s->words = words_of_all_widths(random, n);
  s->before = std::vector<std::int64_t>(n, std::int64_t{1} << 62);
  std::uint32_t bytes = 0;
  for (std::size_t b = 0; b < kernels::packed_word_blocks(n); ++b) {
    s->widths.push_back(width_of(s->words, b));
    s->offsets.push_back(bytes);
    bytes += static_cast<std::uint32_t>(s->widths.back() * kernels::kPackedWordBlock);
  }
  s->words_there = to_device(stream, s->words);
  s->into = to_device(stream, s->before);
  s->widths_there = to_device(stream, std::vector<std::uint8_t>(s->widths.size(), 99));
  s->offsets_there = to_device(stream, s->offsets);
  s->bytes = Array<std::uint8_t>(stream.device(), bytes);

  Problem p;
  p.entries = n;
  p.bytes = n * 8 * (kAdd ? 3 : 2) + 2 * bytes;
  p.run = [s](Stream& on) {
    kernels::find_widths(on, {s->words_there, s->widths_there});
    kernels::pack_words(on, {s->words_there, s->widths_there, s->offsets_there, s->bytes});
    kernels::unpack_words(on, {s->bytes, s->widths_there, s->offsets_there, s->into, kAdd});
  };
  p.wrong = [s](Stream& on) {
    auto want = s->words;
    for (std::size_t i = 0; kAdd && i < want.size(); ++i) {
      (void)__builtin_add_overflow(want[i], s->before[i], &want[i]);
    }
    return differ("widths", to_host(on, s->widths_there.view()), s->widths) +
           differ("words", to_host(on, s->into.view()), want);
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->into.view())); };
  return p;
}

constexpr KernelCase kSummingCases[] = {
    {"sum_arrays", sum_arrays},
    {"add_elements", add_elements},
    {"pack_and_unpack_words", pack_and_unpack<false>},
    {"pack_and_add_words", pack_and_unpack<true>},
};

}  // namespace

std::span<KernelCase const> summing_cases() { return kSummingCases; }

}  // namespace gpups::test
