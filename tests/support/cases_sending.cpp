// SPDX-License-Identifier: Apache-2.0
// Cases of kernels for rows that are sent in their data type, without padding.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>

#include "kernels/rows/copy_rows.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test {
namespace {

using kernels::BFloat16;
using kernels::Half;
using Bits = std::vector<std::uint16_t>;

// Returns random bits of finite numbers, with zeros in the padding.
template <class T>
Bits random_numbers(Random& random, std::size_t rows, std::size_t dim, std::size_t stride) {
  constexpr std::uint16_t kSmaller = std::is_same_v<T, Half> ? 0xBFFF : 0xBF7F;
  Bits bits(rows * stride, 0);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < dim; ++j)
      bits[i * stride + j] = static_cast<std::uint16_t>(below(random, 65536)) & kSmaller;
  }
  return bits;
}

template <class T>
double number_of(std::uint16_t bits) {
  int const mantissa_bits = std::is_same_v<T, Half> ? 10 : 7, bias = std::is_same_v<T, Half> ? 15 : 127;
  int const exponent = (bits & 0x7FFF) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
  int const whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  double const magnitude = std::ldexp(whole, std::max(exponent, 1) - bias - mantissa_bits);
  return bits >> 15 != 0 ? -magnitude : magnitude;
}

// Returns numbers as a matrix that was received from another rank.
template <class T>
kernels::NumberMatrix received(Stream& stream, Bits const& bits, std::size_t rows, std::size_t dim) {
  kernels::NumberMatrix there(stream.device(), rows, dim, kernels::kNumberType<T>);
  auto const to = there.view();
  View<std::uint16_t> const halves(reinterpret_cast<std::uint16_t*>(to.data), to.bytes() / 2, to.device);
  copy<std::uint16_t>(stream, halves, View<std::uint16_t const>(bits));
  stream.wait();  // `bits` may be destroyed after the call
  return there;
}

template <class T>
Problem gather_numbers(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    std::size_t kept_stride, sent_stride;
    Bits bits;
    std::vector<std::uint32_t> ids;
    kernels::RowStorage<T> storage;
    Array<std::uint32_t> ids_there;
    kernels::NumberMatrix out;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  std::size_t const count = 2 * size.n + 1;
  s->kept_stride = kernels::row_stride(size.dim, kernels::kNumberType<T>);
  s->sent_stride = (size.dim + 1) / 2 * 2;  // rows are made of whole words
  s->bits = random_numbers<T>(random, count, size.dim, s->kept_stride);
  s->ids = distinct_ids(random, size.n, count);
  std::vector<T> numbers;
  for (std::uint16_t bits : s->bits) numbers.push_back(T{bits});
  s->storage = rows(stream, numbers, count, s->kept_stride);
  s->ids_there = to_device(stream, s->ids);
  s->out = received<T>(stream, Bits(size.n * s->sent_stride, 9), size.n, size.dim);

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * (s->sent_stride * 4 + 4);
  p.run = [s](Stream& on) { kernels::gather_numbers(on, {s->storage.const_ref(), s->ids_there, s->out.view()}); };
  p.wrong = [s](Stream& on) {
    Bits want;
    for (std::uint32_t id : s->ids) {
      for (std::size_t j = 0; j < s->sent_stride; ++j) want.push_back(s->bits[id * s->kept_stride + j]);
    }
    return differ("out", to_host(on, s->out.view().template flat<std::uint16_t>()), want);
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->out.view().template flat<std::uint16_t>())); };
  return p;
}

template <class T>
Problem scatter_numbers(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    std::size_t kept_stride, sent_stride;
    Bits bits, before;
    std::vector<std::uint32_t> ids;
    kernels::NumberMatrix from;
    Array<std::uint32_t> ids_there;
    kernels::RowStorage<T> storage;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  std::size_t const count = size.n + 7;
  s->kept_stride = kernels::row_stride(size.dim, kernels::kNumberType<T>);
  s->sent_stride = (size.dim + 1) / 2 * 2;
  s->bits = random_numbers<T>(random, size.n, size.dim, s->sent_stride);
  s->before = Bits(count * s->kept_stride, 9);
  s->ids = distinct_ids(random, size.n, count);
  s->from = received<T>(stream, s->bits, size.n, size.dim);
  s->ids_there = to_device(stream, s->ids);
  s->storage = rows(stream, std::vector<T>(s->before.size(), T{9}), count, s->kept_stride);

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * (s->sent_stride * 2 + s->kept_stride * 2 + 4);
  p.run = [s](Stream& on) { kernels::scatter_numbers(on, {s->from.view(), s->ids_there, s->storage.ref()}); };
  p.wrong = [s, count](Stream& on) {
    auto want = s->before;
    for (std::size_t i = 0; i < s->ids.size(); ++i) {
      for (std::size_t j = 0; j < s->kept_stride; ++j) {
        want[s->ids[i] * s->kept_stride + j] = j < s->sent_stride ? s->bits[i * s->sent_stride + j] : 0;
      }
    }
    Bits got;
    for (T const number : to_host(on, s->storage.ref(), count)) got.push_back(number.bits);
    return differ("rows", got, want);
  };
  p.bits = [s, count](Stream& on) { return bytes_of(to_host(on, s->storage.ref(), count)); };
  return p;
}

constexpr KernelCase kSendingCases[] = {
    {"gather_numbers_bfloat16", gather_numbers<BFloat16>},
    {"gather_numbers_half", gather_numbers<Half>},
    {"scatter_numbers_bfloat16", scatter_numbers<BFloat16>},
    {"scatter_numbers_half", scatter_numbers<Half>},
};

}  // namespace

std::span<KernelCase const> sending_cases() { return kSendingCases; }

}  // namespace gpups::test
