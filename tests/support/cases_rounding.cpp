// SPDX-License-Identifier: Apache-2.0
// Cases of kernels that write rows of 16 bits.
#include <fmt/core.h>

#include <cmath>
#include <memory>

#include "kernels/base/philox.hpp"
#include "kernels/rows/copy_rows.hpp"
#include "kernels/rows/init_rows.hpp"
#include "kernels/rows/number_type.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/update/update_rows.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/oracle.hpp"

namespace gpups::test {
namespace {

using kernels::BFloat16;
using kernels::Half;
using Ids = std::vector<std::uint32_t>;

constexpr std::uint32_t kStep = 41;
constexpr std::uint64_t kSeed = 77;

// Returns the random bits with which a column is rounded.
double random_of(std::uint64_t key, std::size_t column) {
  auto const words = kernels::philox(kernels::philox_key(kSeed),
                                     {{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32),
                                       static_cast<std::uint32_t>(column / 8), kStep}});
  return words.word[column % 8 / 2] >> (column % 2 * 16) & 0xFFFF;
}

// Whether `got` is x rounded with these random bits. x is known with an error of at most `error`.
template <class T>
bool is_rounded(double got, double x, double error, double random) {
  int const mantissa_bits = std::is_same_v<T, Half> ? 10 : 7, least_exponent = std::is_same_v<T, Half> ? -14 : -126;
  int const exponent = x == 0 ? least_exponent : std::max(std::ilogb(x), least_exponent);
  double const unit = std::ldexp(1.0, exponent - mantissa_bits), steps = std::floor(std::abs(x) / unit);
  if (std::abs(got - x) > unit + error) return false;
  double const sum = std::floor((std::abs(x) / unit - steps) * 65536) + random;
  if (std::abs(sum - 65536) <= error / unit * 65536 + 1) return true;  // the error could change the direction
  double const magnitude = (steps + (sum >= 65536 ? 1 : 0)) * unit;
  // If x is near a number of the type, the error may move it to the other side of that number.
  return std::abs(std::abs(got) - magnitude) <= (error / unit > 0.01 ? unit + error : 0.0);
}

// Returns rows with the numbers nearest to `from`, and sets `from` to these numbers.
template <class T>
kernels::RowStorage<T> rounded_rows(Stream& stream, std::vector<float>& from, std::size_t count, std::size_t dim) {
  std::size_t const stride = kernels::row_stride(dim, kernels::kNumberType<T>), from_stride = row_stride(dim);
  std::vector<T> to(count * stride, T{});
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < dim; ++j) {
      to[i * stride + j] = kernels::round_to<T>(from[i * from_stride + j]);
      from[i * from_stride + j] = kernels::to_float(to[i * stride + j]);
    }
  }
  return rows(stream, to, count, stride);
}

template <class T>
Problem update_rows(Stream& stream, CaseSize size, std::uint64_t seed, Optimizer::Kind kind) {
  struct State {
    CaseSize size;
    std::size_t count, columns;
    Optimizer optimizer;
    double const scale = 1.0 / 60;
    float const rate = 0.3F;
    Ids ids, lifecycle;
    std::vector<std::uint64_t> keys;
    std::vector<float> values, state;
    std::vector<std::int64_t> sums;
    Array<std::uint32_t> ids_there, bad_row;
    Matrix<std::int64_t> sums_there;
    kernels::RowStorage<T> values_there;
    kernels::RowStorage<float> state_there;
    kernels::RowStorage<std::uint32_t> life_there;
    kernels::RowStorage<std::uint64_t> keys_there;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  s->size = size;
  s->count = size.n + size.n / 2;
  s->optimizer.kind = kind;
  s->optimizer.clip_norm = seed % 2 == 0 ? 0.1F : 0.0F;
  s->optimizer.l2 = seed % 3 == 0 ? 0.03F : 0.0F;
  s->optimizer.l1 = 0.01F;
  s->columns = kernels::state_columns(s->optimizer, size.dim);
  s->ids = distinct_ids(random, size.n, s->count);
  s->values = floats(random, s->count, size.dim);
  s->values_there = rounded_rows<T>(stream, s->values, s->count, size.dim);
  for (std::size_t i = 0; i < s->count; ++i) {
    s->keys.push_back(random());
    s->lifecycle.insert(s->lifecycle.end(), {static_cast<std::uint32_t>(below(random, 4)), 7});
  }
  for (std::size_t i = 0; i < s->count * s->columns; ++i) {
    bool const padding = s->columns > 1 && i % row_stride(size.dim) >= size.dim;
    s->state.push_back(padding ? 0.0F : static_cast<float>(uniform(random)));
  }
  for (float x : floats(random, size.n, size.dim)) s->sums.push_back(static_cast<std::int64_t>(x * 0x1p33));
  s->ids_there = to_device(stream, s->ids);
  s->bad_row = to_device(stream, Ids{kernels::kNoRow});
  s->sums_there = matrix(stream, s->sums, size.n, size.dim);
  s->state_there = rows(stream, s->state, s->count, s->columns);
  s->life_there = rows(stream, s->lifecycle, s->count, kernels::kLifecycleWords);
  s->keys_there = rows(stream, s->keys, s->count, 1);

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * (row_stride(size.dim) * 12 + s->columns * 8 + 8);
  p.run = [s](Stream& on) {
    kernels::update_rows(on, {.ids = s->ids_there,
                              .sums = s->sums_there,
                              .values = s->values_there.ref(),
                              .state = s->state_there.ref(),
                              .lifecycle = s->life_there.ref(),
                              .dim = s->size.dim,
                              .grid_log2 = -30,
                              .scale = s->scale,
                              .optimizer = s->optimizer,
                              .rate = s->rate,
                              .step = kStep,
                              .admission_count = 1,
                              .bad_row = s->bad_row,
                              .keys = s->keys_there.const_ref(),
                              .rounding_seed = kSeed});
  };
  p.wrong = [s](Stream& on) -> std::string {
    std::size_t const stride = row_stride(s->size.dim), dim = s->size.dim;
    auto const got = to_host(on, s->values_there.ref(), s->count);
    std::size_t const got_stride = s->values_there.ref().stride;
    std::vector<double> values(s->values.begin(), s->values.end()), state(s->state.begin(), s->state.end());
    std::vector<bool> updated(s->count, false);
    for (std::size_t i = 0; i < s->ids.size(); ++i) {
      std::size_t const id = s->ids[i];
      updated[id] = true;
      std::vector<double> gradient;
      for (std::size_t j = 0; j < dim; ++j) {
        gradient.push_back(static_cast<double>(s->sums[i * stride + j]) * 0x1p-30 * s->scale);
      }
      std::uint32_t const lifecycle = s->lifecycle[2 * id];
      RowState row{
          {&values[id * stride], &values[id * stride] + dim}, {}, lifecycle == 0 ? 0 : static_cast<int>(lifecycle) - 1};
      row.state.assign(state.begin() + static_cast<std::ptrdiff_t>(id * s->columns),
                       state.begin() + static_cast<std::ptrdiff_t>((id + 1) * s->columns));
      optimizer_step(s->optimizer, s->rate, gradient, row);
      std::copy(row.value.begin(), row.value.end(), values.begin() + static_cast<std::ptrdiff_t>(id * stride));
      std::copy(row.state.begin(), row.state.end(), state.begin() + static_cast<std::ptrdiff_t>(id * s->columns));
    }
    for (std::size_t id = 0; id < s->count; ++id) {
      for (std::size_t j = 0; j < got_stride; ++j) {
        double const value = kernels::to_float(got[id * got_stride + j]);
        double const want = j < dim ? values[id * stride + j] : 0;
        bool const right = j < dim && updated[id] ? is_rounded<T>(value, want, 1e-5 * std::max(1.0, std::abs(want)),
                                                                  random_of(s->keys[id], j))
                                                  : value == want;
        if (!right) return fmt::format("values[{}][{}]: {} instead of {}", id, j, value, want);
      }
    }
    return differ("state", to_host(on, s->state_there.ref(), s->count), state, 1e-5) +
           differ("bad_row", to_host(on, s->bad_row.view()), Ids{kernels::kNoRow});
  };
  p.bits = [s](Stream& on) {
    return bytes_of(to_host(on, s->values_there.ref(), s->count)) +
           bytes_of(to_host(on, s->state_there.ref(), s->count));
  };
  return p;
}
template <class T, Optimizer::Kind kKind>
Problem update(Stream& stream, CaseSize size, std::uint64_t seed) {
  return update_rows<T>(stream, size, seed, kKind);
}

// Compares rows with the nearest numbers of type T and zeros in the padding. want: (count, dim)
template <class T>
std::string differ_rounded(Stream& stream, kernels::RowStorage<T> const& storage, std::vector<float> const& want,
                           std::size_t count, std::size_t dim) {
  std::size_t const stride = storage.const_ref().stride;
  auto const got = to_host(stream, storage.const_ref(), count);
  for (std::size_t i = 0; i < count * stride; ++i) {
    std::size_t const j = i % stride;
    T const there = j < dim ? kernels::round_to<T>(want[i / stride * dim + j]) : T{};
    if (got[i].bits != there.bits)
      return fmt::format("[{}][{}]: {} instead of {}", i / stride, j, got[i].bits, there.bits);
  }
  return {};
}

template <class T>
Problem scatter(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    std::vector<float> want;
    Matrix<float> from;
    Array<std::uint32_t> ids;
    kernels::RowStorage<T> to;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  auto const from = floats(random, size.n, size.dim);
  Ids const ids = distinct_ids(random, size.n, size.n);
  std::size_t const stride = kernels::row_stride(size.dim, kernels::kNumberType<T>);
  s->want.resize(size.n * size.dim);
  for (std::size_t i = 0; i < size.n * size.dim; ++i) {
    s->want[ids[i / size.dim] * size.dim + i % size.dim] = from[i / size.dim * row_stride(size.dim) + i % size.dim];
  }
  s->from = matrix(stream, from, size.n, size.dim);
  s->ids = to_device(stream, ids);
  s->to = rows(stream, std::vector<T>(size.n * stride, T{9}), size.n, stride);

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * (row_stride(size.dim) * 4 + stride * 2 + 4);
  p.run = [s, size](Stream& on) { kernels::scatter(on, {s->from, s->ids, s->to.ref(), size.dim}); };
  p.wrong = [s, size](Stream& on) { return differ_rounded(on, s->to, s->want, size.n, size.dim); };
  p.bits = [s, size](Stream& on) { return bytes_of(to_host(on, s->to.ref(), size.n)); };
  return p;
}

// Initial values of rows are the numbers that look-ups return for keys without a row.
template <class T>
Problem init_rows(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    Initializer const init{Initializer::Kind::kUniform, 0.3F};
    Array<Key> keys;
    Array<std::uint32_t> ids;
    kernels::RowStorage<T> to;
    Matrix<float> looked_up;
  };
  auto s = std::make_shared<State>();
  std::size_t const stride = kernels::row_stride(size.dim, kernels::kNumberType<T>);
  Ids ids;
  for (std::uint32_t i = 0; i < size.n; ++i) ids.push_back(i);
  s->keys = to_device(stream, distinct_keys(size.n, seed));
  s->ids = to_device(stream, ids);
  s->to = rows(stream, std::vector<T>(size.n * stride, T{9}), size.n, stride);
  s->looked_up = Matrix<float>(stream.device(), size.n, size.dim);

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * (stride * 2 + row_stride(size.dim) * 4 + 12);
  p.run = [s, size](Stream& on) {
    kernels::init_rows(on, {.ids = s->ids,
                            .keys = s->keys,
                            .values = s->to.ref(),
                            .state = {},
                            .dim = size.dim,
                            .state_columns = 0,
                            .initializer = s->init,
                            .accumulators = 0,
                            .initial_accumulator = 0,
                            .seed = kSeed});
    kernels::init_matrix(on, {.keys = s->keys,
                              .only_where_no_row = {},
                              .out = s->looked_up,
                              .initializer = s->init,
                              .seed = kSeed,
                              .type = kernels::kNumberType<T>});
  };
  p.wrong = [s, size](Stream& on) {
    auto const keys = to_host(on, s->keys.view());
    auto const looked_up = to_host(on, s->looked_up.view().flat());
    std::vector<float> want, answers;
    for (std::size_t i = 0; i < size.n * size.dim; ++i) {
      std::size_t const column = i % size.dim;
      want.push_back(static_cast<float>(initial_value(s->init, kSeed, keys[i / size.dim], column)));
      answers.push_back(looked_up[i / size.dim * row_stride(size.dim) + column]);
    }
    auto nearest = want;
    for (float& x : nearest) x = kernels::to_float(kernels::round_to<T>(x));
    return differ_rounded(on, s->to, want, size.n, size.dim) + differ("answers", answers, nearest);
  };
  p.bits = [s, size](Stream& on) { return bytes_of(to_host(on, s->to.ref(), size.n)); };
  return p;
}

constexpr KernelCase kRoundingCases[] = {
    {"update_sgd_bfloat16", update<BFloat16, Optimizer::Kind::kSgd>},
    {"update_sgd_half", update<Half, Optimizer::Kind::kSgd>},
    {"update_adagrad_bfloat16", update<BFloat16, Optimizer::Kind::kAdagrad>},
    {"update_adagrad_half", update<Half, Optimizer::Kind::kAdagrad>},
    {"update_rowwise_bfloat16", update<BFloat16, Optimizer::Kind::kRowwiseAdagrad>},
    {"update_adam_bfloat16", update<BFloat16, Optimizer::Kind::kAdam>},
    {"update_lamb_bfloat16", update<BFloat16, Optimizer::Kind::kLamb>},
    {"update_ftrl_half", update<Half, Optimizer::Kind::kFtrl>},
    {"scatter_bfloat16", scatter<BFloat16>},
    {"scatter_half", scatter<Half>},
    {"init_rows_bfloat16", init_rows<BFloat16>},
    {"init_rows_half", init_rows<Half>},
};

}  // namespace

std::span<KernelCase const> rounding_cases() { return kRoundingCases; }

}  // namespace gpups::test
