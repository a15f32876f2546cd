// SPDX-License-Identifier: Apache-2.0
// Cases of kernels that copy, pool, initialize or digest rows.
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <memory>

#include "kernels/pool/pool.hpp"
#include "kernels/rows/copy_rows.hpp"
#include "kernels/rows/hash_rows.hpp"
#include "kernels/rows/init_rows.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/oracle.hpp"

namespace gpups::test {
namespace {

using kernels::kNoRow;
using Ids = std::vector<std::uint32_t>;

// Inputs for copies between a matrix and rows in storage, in both directions.
struct Copied {
  CaseSize size;
  std::size_t stride, count;  // of rows in storage
  std::vector<float> rows, values;
  Ids ids;
  kernels::RowStorage<float> storage;
  Matrix<float> matrix;
  Array<std::uint32_t> ids_there;
};

std::shared_ptr<Copied> copied(Stream& stream, CaseSize size, std::uint64_t seed, bool some_absent) {
  Random random(seed);
  auto s = std::make_shared<Copied>();
  s->size = size;
  s->stride = row_stride(size.dim);
  s->count = 2 * size.n + 1;
  s->rows = floats(random, s->count, size.dim);
  s->values = floats(random, size.n, size.dim);
  s->ids = distinct_ids(random, size.n, s->count);
  for (auto& id : s->ids) id = some_absent && below(random, 3) == 0 ? kNoRow : id;
  s->storage = rows(stream, s->rows, s->count, s->stride);
  s->matrix = matrix(stream, s->values, size.n, size.dim);
  s->ids_there = to_device(stream, s->ids);
  return s;
}

Problem gathering(std::shared_ptr<Copied> const& s, std::function<void(Stream&)> run) {
  Problem p;
  p.entries = s->size.n;
  p.bytes =
      (s->ids.size() - static_cast<std::size_t>(std::count(s->ids.begin(), s->ids.end(), kNoRow))) * s->stride * 8;
  p.run = std::move(run);
  p.wrong = [s](Stream& on) {
    std::vector<float> want = s->values;
    for (std::size_t i = 0; i < s->ids.size(); ++i) {
      for (std::size_t j = 0; j < s->stride && s->ids[i] != kNoRow; ++j) {
        want[i * s->stride + j] = s->rows[s->ids[i] * s->stride + j];
      }
    }
    return differ("out", to_host(on, s->matrix.view().flat()), want);
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->matrix.view().flat())); };
  return p;
}

Problem gather(Stream& stream, CaseSize size, std::uint64_t seed) {
  auto const s = copied(stream, size, seed, false);
  return gathering(s, [s](Stream& on) { kernels::gather(on, {s->storage.const_ref(), s->ids_there, s->matrix}); });
}

Problem gather_found(Stream& stream, CaseSize size, std::uint64_t seed) {
  auto const s = copied(stream, size, seed, true);
  return gathering(s, [s](Stream& on) { kernels::gather(on, {s->storage.const_ref(), s->ids_there, s->matrix}); });
}

Problem scatter(Stream& stream, CaseSize size, std::uint64_t seed) {
  auto const s = copied(stream, size, seed, false);
  Problem p;
  p.entries = size.n;
  p.bytes = size.n * s->stride * 8;
  p.run = [s](Stream& on) { kernels::scatter(on, {s->matrix, s->ids_there, s->storage.ref(), s->size.dim}); };
  p.wrong = [s](Stream& on) {
    std::vector<float> want = s->rows;
    for (std::size_t i = 0; i < s->ids.size(); ++i) {
      for (std::size_t j = 0; j < s->stride; ++j) want[s->ids[i] * s->stride + j] = s->values[i * s->stride + j];
    }
    return differ("rows", to_host(on, s->storage.ref(), s->count), want);
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->storage.ref(), s->count)); };
  return p;
}

// The kind of pooling.
struct Pooled {
  bool mean = false, weighted = false;
  bool targets = false;  // bags are written to rows in another order
  bool singles = false;  // every entry is a bag
};

Problem pooled(Stream& stream, CaseSize size, std::uint64_t seed, Pooled how) {
  struct State {
    CaseSize size;
    Pooled how;
    std::vector<float> rows, coefficients;
    Ids positions, offsets{0}, targets;
    Matrix<float> from, out;
    Array<std::uint32_t> positions_there, offsets_there, targets_there;
    Array<float> coefficients_there;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  s->size = size;
  s->how = how;
  std::size_t const count = size.n / 3 + 1;
  s->rows = floats(random, count, size.dim);
  while (s->positions.size() < size.n) {
    for (std::size_t k = how.singles ? 1 : below(random, 9); k > 0 && s->positions.size() < size.n; --k) {
      s->positions.push_back(static_cast<std::uint32_t>(below(random, count)));
    }
    s->offsets.push_back(static_cast<std::uint32_t>(s->positions.size()));
  }
  std::size_t const bags = s->offsets.size() - 1;
  s->coefficients.assign(size.n, 1);
  for (auto& x : s->coefficients) x = how.weighted ? static_cast<float>(uniform(random) * 4 - 2) : 1;
  s->targets = how.targets ? distinct_ids(random, bags, bags) : Ids{};
  s->from = matrix(stream, s->rows, count, size.dim);
  s->out = Matrix<float>(stream.device(), bags, size.dim);
  s->positions_there = to_device(stream, s->positions);
  s->offsets_there = to_device(stream, how.singles ? Ids{} : s->offsets);
  s->targets_there = to_device(stream, s->targets);
  s->coefficients_there = to_device(stream, how.weighted ? s->coefficients : std::vector<float>{});

  Problem p;
  p.entries = size.n;
  p.bytes = (size.n + s->out.rows()) * s->out.stride() * 4;
  p.run = [s](Stream& on) {
    kernels::gather_pooled(on, {s->from, s->positions_there, s->offsets_there, s->how.mean, s->out,
                                s->coefficients_there, s->targets_there});
  };
  p.wrong = [s](Stream& on) {
    std::size_t const stride = row_stride(s->size.dim);
    std::vector<double> want(s->out.rows() * stride, 0);
    for (std::size_t b = 0; b + 1 < s->offsets.size(); ++b) {
      double const entries = s->offsets[b + 1] - s->offsets[b];
      std::size_t const to = s->how.targets ? s->targets[b] : b;
      for (std::size_t j = 0; j < stride; ++j) {
        double sum = 0;
        for (auto e = s->offsets[b]; e < s->offsets[b + 1]; ++e) {
          sum += static_cast<double>(s->coefficients[e]) * s->rows[s->positions[e] * stride + j];
        }
        want[to * stride + j] = s->how.mean && entries > 0 ? sum / entries : sum;
      }
    }
    return differ("out", to_host(on, s->out.view().flat()), want, 1e-5);
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->out.view().flat())); };
  return p;
}
Problem pooled_sum(Stream& stream, CaseSize size, std::uint64_t seed) { return pooled(stream, size, seed, {}); }
Problem pooled_mean(Stream& stream, CaseSize size, std::uint64_t seed) {
  return pooled(stream, size, seed, {.mean = true});
}
Problem pooled_weighted(Stream& stream, CaseSize size, std::uint64_t seed) {
  return pooled(stream, size, seed, {.mean = seed % 2 == 0, .weighted = true, .targets = true});
}
Problem pooled_single(Stream& stream, CaseSize size, std::uint64_t seed) {
  return pooled(stream, size, seed, {.weighted = seed % 2 == 1, .targets = seed % 3 != 0, .singles = true});
}

Initializer initializer(std::uint64_t seed) {
  constexpr Initializer::Kind kKinds[] = {Initializer::Kind::kUniform, Initializer::Kind::kNormal,
                                          Initializer::Kind::kConstant};
  return {kKinds[seed % 3], 0.25F};
}

std::vector<double> initial_rows(std::vector<Key> const& keys, Initializer const& init, std::size_t dim) {
  std::vector<double> values;
  for (Key key : keys) {
    for (std::size_t j = 0; j < row_stride(dim); ++j) {
      values.push_back(j < dim ? initial_value(init, 11, key, j) : 0);
    }
  }
  return values;
}

Problem init_rows(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    CaseSize size;
    Initializer init;
    Ids ids;
    Array<std::uint32_t> ids_there;
    Array<Key> keys;
    kernels::RowStorage<float> values, state;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  std::size_t const stride = row_stride(size.dim);
  s->size = size;
  s->init = initializer(seed);
  s->ids = distinct_ids(random, size.n, size.n);
  s->ids_there = to_device(stream, s->ids);
  s->keys = to_device(stream, distinct_keys(size.n));
  s->values = rows(stream, std::vector<float>(size.n * stride, 9), size.n, stride);
  s->state = rows(stream, std::vector<float>(size.n * stride, 9), size.n, stride);

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * stride * 8;
  p.run = [s, stride](Stream& on) {
    kernels::init_rows(
        on, {s->ids_there, s->keys, s->values.ref(), s->state.ref(), s->size.dim, stride, s->init, s->size.dim, 0.5F,
             /*seed=*/11});
  };
  p.wrong = [s, stride](Stream& on) {
    auto const got = to_host(on, s->values.ref(), s->size.n);
    std::vector<float> in_order;
    for (auto id : s->ids) in_order.insert(in_order.end(), &got[id * stride], &got[id * stride] + stride);
    std::vector<float> state(s->size.n * stride, 0);
    for (std::size_t i = 0; i < state.size(); ++i) state[i] = i % stride < s->size.dim ? 0.5F : 0;
    return differ("values", in_order, initial_rows(distinct_keys(s->size.n), s->init, s->size.dim), 1e-7) +
           differ("state", to_host(on, s->state.ref(), s->size.n), state);
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->values.ref(), s->size.n)); };
  return p;
}

Problem init_matrix(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    CaseSize size;
    Initializer init;
    Ids ids;
    Array<std::uint32_t> ids_there;
    Array<Key> keys;
    Matrix<float> out;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  s->size = size;
  s->init = initializer(seed);
  for (std::size_t i = 0; i < size.n; ++i) s->ids.push_back(below(random, 2) == 0 ? kNoRow : 3);
  s->ids_there = to_device(stream, s->ids);
  s->keys = to_device(stream, distinct_keys(size.n));
  s->out = matrix(stream, std::vector<float>(size.n * row_stride(size.dim), 9), size.n, size.dim);

  Problem p;
  p.entries = size.n;
  p.bytes = static_cast<std::size_t>(std::count(s->ids.begin(), s->ids.end(), kNoRow)) * s->out.stride() * 4;
  p.run = [s](Stream& on) { kernels::init_matrix(on, {s->keys, s->ids_there, s->out, s->init, /*seed=*/11}); };
  p.wrong = [s](Stream& on) {
    auto want = initial_rows(distinct_keys(s->size.n), s->init, s->size.dim);
    for (std::size_t i = 0; i < want.size(); ++i) want[i] = s->ids[i / s->out.stride()] == kNoRow ? want[i] : 9;
    return differ("out", to_host(on, s->out.view().flat()), want, 1e-7);
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->out.view().flat())); };
  return p;
}

// The digest is compared with the digest of the same rows in another order.
Problem hash_rows(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    CaseSize size;
    std::size_t alive = 0;
    kernels::RowStorage<std::uint64_t> keys[2];
    kernels::RowStorage<float> values[2], state[2];
    kernels::RowStorage<std::uint32_t> lifecycle[2];
    Array<std::uint64_t> digest;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  std::size_t const stride = row_stride(size.dim);
  s->size = size;
  auto const values = floats(random, size.n, size.dim), state = floats(random, size.n, size.dim);
  Ids lifecycle;
  for (std::size_t i = 0; i < size.n; ++i) {
    lifecycle.push_back(below(random, 4) == 0 ? 0x80000000 + 5 : static_cast<std::uint32_t>(below(random, 3)));
    s->alive += lifecycle.back() != 0 && lifecycle.back() < 0x80000000 ? 1 : 0;
  }
  Ids const shuffled = distinct_ids(random, size.n, size.n);
  for (int side = 0; side < 2; ++side) {
    std::vector<std::uint64_t> k(size.n);
    std::vector<float> v(size.n * stride), st(size.n * stride);
    Ids l(size.n * kernels::kLifecycleWords);
    for (std::size_t i = 0; i < size.n; ++i) {
      std::size_t const to = side == 0 ? i : shuffled[i];
      k[to] = number(scrambled(i));
      l[kernels::kLifecycleWords * to] = lifecycle[i];
      l[kernels::kLifecycleWords * to + 1] = static_cast<std::uint32_t>(i);
      for (std::size_t j = 0; j < stride; ++j) {
        v[to * stride + j] = values[i * stride + j];
        st[to * stride + j] = state[i * stride + j];
      }
    }
    s->keys[side] = rows(stream, k, size.n, 1);
    s->values[side] = rows(stream, v, size.n, stride);
    s->state[side] = rows(stream, st, size.n, stride);
    s->lifecycle[side] = rows(stream, l, size.n, kernels::kLifecycleWords);
  }
  s->digest = to_device(stream, std::vector<std::uint64_t>(2, 0));
  auto const run = [s](Stream& on, int side, View<std::uint64_t> digest) {
    kernels::hash_rows(
        on, {s->size.n, s->keys[side].const_ref(), s->values[side].const_ref(), s->state[side].const_ref(), s->size.dim,
             s->size.dim, s->lifecycle[side].const_ref(), 3, digest});
  };

  Problem p;
  p.entries = size.n;
  p.bytes = s->alive * (stride * 8 + 8) + size.n * 8;
  p.run = [s, run](Stream& on) { run(on, 0, s->digest); };
  p.wrong = [s, run](Stream& on) -> std::string {
    auto const digest = to_host(on, s->digest.view());
    auto other = to_device(on, std::vector<std::uint64_t>{5, 6});
    run(on, 1, other);
    if (digest[1] != s->alive) return "the number of rows is wrong";
    if (s->alive > 0 && digest[0] == 0) return "nothing was added";
    auto const got = to_host(on, other.view());
    return differ("digest", got, {digest[0] + 5, digest[1] + 6});
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->digest.view())); };
  return p;
}

constexpr KernelCase kReadingCases[] = {
    {"gather", gather},
    {"gather_found", gather_found},
    {"scatter", scatter},
    {"pooled_sum", pooled_sum},
    {"pooled_mean", pooled_mean},
    {"pooled_weighted", pooled_weighted},
    {"pooled_single", pooled_single},
    {"init_rows", init_rows},
    {"init_matrix", init_matrix},
    {"hash_rows", hash_rows},
};

}  // namespace

std::span<KernelCase const> reading_cases() { return kReadingCases; }

}  // namespace gpups::test
