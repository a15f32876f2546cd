// SPDX-License-Identifier: Apache-2.0
// Cases of kernels that select few elements of many.
#include <algorithm>
#include <limits>
#include <memory>

#include "kernels/codec/top_k_rows.hpp"
#include "kernels/rows/selected_rows.hpp"
#include "kernels/sparse/top_k.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test {
namespace {

using Ids = std::vector<std::uint32_t>;

// Returns floats of very different magnitudes; many occur several times, and some are zero.
std::vector<float> uneven(Random& random, std::size_t n) {
  std::vector<float> values(n);
  for (float& x : values) {
    auto const whole = static_cast<float>(below(random, 2000)) - 1000;
    x = below(random, 8) == 0 ? 0 : below(random, 2) == 0 ? whole : whole * static_cast<float>(uniform(random));
  }
  return values;
}

// Returns the indices of the k elements of largest magnitude; of equal elements the first ones. Zeros only if
// `and_zeros`.
std::vector<std::size_t> largest(std::vector<float> const& x, std::size_t k, bool and_zeros) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (and_zeros || x[i] != 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return std::abs(x[a]) > std::abs(x[b]); });
  order.resize(std::min(k, order.size()));
  std::sort(order.begin(), order.end());
  return order;
}

// A vector, or rows, with a residual and memory for the selected elements.
struct Sparse {
  std::vector<float> x, rest;  // values + residual, and the expected residual
  Array<float> values, residual, kept, thresholds;
  Array<std::uint32_t> indices;
  Ids want_indices;
  std::vector<float> want_kept;
  std::size_t count = 0;
  float threshold = 0;

  // Expects that element i is selected and gets the index `number`. REQUIRES: i increases from call to call.
  void keep(std::size_t i, std::size_t number) {
    want_indices.push_back(static_cast<std::uint32_t>(number));
    want_kept.push_back(x[i]);
    rest[i] = 0;
  }
  std::string wrong(Stream& on) const {
    auto got_indices = to_host(on, indices.view());
    auto got_kept = to_host(on, kept.view());
    got_indices.resize(want_indices.size());
    got_kept.resize(want_kept.size());
    return differ("indices", got_indices, want_indices) + differ("kept", got_kept, want_kept) +
           differ("residual", to_host(on, residual.view()), rest);
  }
  std::string bits(Stream& on) const {
    return bytes_of(to_host(on, indices.view().slice(0, want_indices.size()))) +
           bytes_of(to_host(on, kept.view().slice(0, want_kept.size()))) + bytes_of(to_host(on, residual.view()));
  }
};

std::shared_ptr<Sparse> sparse(Stream& stream, std::size_t n, std::size_t room, std::uint64_t seed) {
  Random random(seed);
  auto s = std::make_shared<Sparse>();
  auto const values = uneven(random, n);
  auto before = uneven(random, n);
  for (float& x : before) x *= 0x1p-4F;
  for (std::size_t i = 0; i < n; ++i) s->x.push_back(values[i] + before[i]);
  s->rest = s->x;
  s->values = to_device(stream, values);
  s->residual = to_device(stream, before);
  s->kept = Array<float>(stream.device(), room);
  s->indices = Array<std::uint32_t>(stream.device(), room);
  return s;
}

// Selects about a hundredth of n * dim elements. Every other seed gives a guess, which may be good or bad.
Problem top_k(Stream& stream, CaseSize size, std::uint64_t seed) {
  std::size_t const n = size.n * size.dim, k = seed % 5 == 0 ? n : n / 100 + seed;
  auto const s = sparse(stream, n, std::min(k, n), seed);
  for (std::size_t const i : largest(s->x, k, false)) s->keep(i, i);
  float least = std::numeric_limits<float>::infinity();
  for (float const x : s->want_kept) least = std::min(least, std::abs(x));

  Problem p;
  p.entries = n;
  p.bytes = 12 * n;
  p.run = [s, k, seed](Stream& on) {
    auto const kept = kernels::wait_top_k(on, {.values = s->values,
                                               .residual = s->residual,
                                               .k = k,
                                               .indices = s->indices,
                                               .kept = s->kept,
                                               .guess = seed % 2 == 0 ? 0.0F : 900.0F});
    s->count = kept.count;
    s->threshold = kept.threshold;
  };
  p.wrong = [s, least](Stream& on) -> std::string {
    if (s->count != s->want_kept.size()) return fmt::format("{} of {} are kept", s->count, s->want_kept.size());
    if (s->threshold != least) return fmt::format("the threshold is {} instead of {}", s->threshold, least);
    return s->wrong(on);
  };
  p.bits = [s](Stream& on) { return s->bits(on); };
  return p;
}

Problem top_k_rows(Stream& stream, CaseSize size, std::uint64_t seed) {
  std::size_t const k = 1 + seed * size.dim / 8, room = size.n * std::min(k, size.dim);
  auto const s = sparse(stream, size.n * size.dim, room, seed);
  for (std::size_t i = 0; i < size.n; ++i) {
    std::size_t const first = i * size.dim;
    for (std::size_t const j : largest({s->x.begin() + first, s->x.begin() + first + size.dim}, k, true)) {
      s->keep(first + j, j);
    }
  }
  // Good guesses, bad guesses, and 0 for no guess.
  std::vector<float> guesses(size.n);
  for (std::size_t i = 0; i < size.n; ++i) guesses[i] = static_cast<float>(i % 3) * 500;
  s->thresholds = to_device(stream, guesses);

  Problem p;
  p.entries = size.n;
  p.bytes = 12 * size.n * size.dim + 8 * room;
  p.run = [s, size, k](Stream& on) {
    auto const rows = [&](Array<float> const& a) {
      return MatrixView<float>(a.data(), size.n, size.dim, size.dim, a.device());
    };
    kernels::top_k_rows(on, {rows(s->values), rows(s->residual), k, s->indices, s->kept, s->thresholds});
  };
  p.wrong = [s, size, k](Stream& on) -> std::string {
    auto const thresholds = to_host(on, s->thresholds.view());
    std::size_t const each = std::min(k, size.dim);
    for (std::size_t i = 0; i < s->want_kept.size(); ++i) {
      if (std::abs(s->want_kept[i]) < thresholds[i / each]) return fmt::format("row {}: a high threshold", i / each);
    }
    for (std::size_t i = 0; i < s->rest.size(); ++i) {
      if (std::abs(s->rest[i]) > thresholds[i / size.dim]) return fmt::format("row {}: a low threshold", i / size.dim);
    }
    return s->wrong(on);
  };
  p.bits = [s](Stream& on) { return s->bits(on); };
  return p;
}

Problem indices_to_bitmap(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    std::vector<std::uint32_t> want;
    Array<std::uint32_t> indices, bitmap;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  std::size_t const n = 3 * size.n;
  auto indices = distinct_ids(random, size.n, n);
  std::sort(indices.begin(), indices.end());
  s->want.resize((n + 31) / 32, 0);
  for (auto const i : indices) s->want[i / 32] |= 1U << (i % 32);
  s->indices = to_device(stream, indices);
  s->bitmap = to_device(stream, Ids(s->want.size(), 0xDEAD));

  Problem p;
  p.entries = size.n;
  p.bytes = 4 * (size.n + s->want.size());
  p.run = [s](Stream& on) { kernels::indices_to_bitmap(on, {s->indices, s->bitmap}); };
  p.wrong = [s](Stream& on) { return differ("bitmap", to_host(on, s->bitmap.view()), s->want); };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->bitmap.view())); };
  return p;
}

constexpr KernelCase kSparseCases[] = {
    {"top_k", top_k},
    {"top_k_rows", top_k_rows},
    {"indices_to_bitmap", indices_to_bitmap},
};

}  // namespace

std::span<KernelCase const> sparse_cases() { return kSparseCases; }

}  // namespace gpups::test
