// SPDX-License-Identifier: Apache-2.0
// Cases of the optimizers of dense layers.
#include <algorithm>
#include <memory>

#include "kernels/dense/dense_units.hpp"
#include "kernels/dense/update_dense.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/dense_optimizer_oracle.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test {
namespace {

using kernels::kNoRow;

// The first step, for parameters of value 1 in units of equal size. In this step the bias corrections of the moments
// cancel.
Problem first_step(Stream& stream, CaseSize size, std::uint64_t seed, kernels::DenseOptimizer const& optimizer) {
  struct State {
    std::vector<std::int64_t> sums;
    Array<std::int64_t> sums_there;
    Array<float> values, first, second;
    Array<std::uint32_t> bad_element;
    kernels::DenseUnits units;
    std::size_t unit;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  std::size_t const n = (size.n * size.dim + 15) / 16 * 16;
  for (std::size_t j = 0; j < n; ++j) s->sums.push_back(static_cast<std::int64_t>((uniform(random) - 0.5) * 0x1p31));
  s->sums_there = to_device(stream, s->sums);
  s->values = to_device(stream, std::vector<float>(n, 1));
  s->first = Array<float>(stream.device(), n);
  s->second = Array<float>(stream.device(), n);
  s->bad_element = to_device(stream, std::vector<std::uint32_t>{kNoRow});
  s->unit = n / 48 * 16 + 16;
  std::vector<std::size_t> begins{0};
  for (std::size_t begin = s->unit; begin < n; begin += s->unit) begins.push_back(begin);
  if (n > 0) begins.push_back(n);
  s->units = kernels::DenseUnits(stream, begins);
  kernels::init_dense_state(stream, {optimizer, s->first, s->second});
  Problem p;
  p.entries = size.n;
  p.bytes = n * (optimizer.kind == kernels::DenseOptimizer::Kind::kLamb ? 44 : 32);
  p.run = [s, optimizer](Stream& on) {
    kernels::update_dense(on, {.sums = s->sums_there,
                               .grid_log2 = -30,
                               .scale = 1,
                               .optimizer = optimizer,
                               .rate = 0.25F,
                               .rate_before = 0,
                               .step = 1,
                               .values = s->values,
                               .first = s->first,
                               .second = s->second,
                               .bad_element = s->bad_element,
                               .units = s->units.ref()});
  };
  p.wrong = [s, optimizer](Stream& on) {
    std::vector<DenseNumber> numbers(s->sums.size(), DenseNumber(optimizer, 1));
    std::vector<double> gradient, want;
    for (std::int64_t sum : s->sums) gradient.push_back(static_cast<double>(sum) * 0x1p-30);
    for (std::size_t begin = 0; begin < numbers.size(); begin += s->unit) {
      std::size_t const count = std::min(s->unit, numbers.size() - begin);
      dense_step(optimizer, {0.25, 0, 1}, std::span(gradient).subspan(begin, count),
                 std::span(numbers).subspan(begin, count));
    }
    for (DenseNumber const& x : numbers) want.push_back(x.value);
    return differ("values", to_host(on, s->values.view()), want, 1e-5) +
           differ("bad_row", to_host(on, s->bad_element.view()), std::vector<std::uint32_t>{kNoRow});
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->values.view())); };
  return p;
}
Problem update_dense(Stream& stream, CaseSize size, std::uint64_t seed) { return first_step(stream, size, seed, {}); }
Problem update_dense_lamb(Stream& stream, CaseSize size, std::uint64_t seed) {
  return first_step(stream, size, seed, {.kind = kernels::DenseOptimizer::Kind::kLamb, .weight_decay = 0.1F});
}
Problem update_dense_ftrl(Stream& stream, CaseSize size, std::uint64_t seed) {
  return first_step(stream, size, seed, {.kind = kernels::DenseOptimizer::Kind::kFtrl, .l1 = 0.1F, .l2 = 0.1F});
}

constexpr KernelCase kDenseOptimizersCases[] = {
    {"update_dense", update_dense},
    {"update_dense_lamb", update_dense_lamb},
    {"update_dense_ftrl", update_dense_ftrl},
};

}  // namespace

std::span<KernelCase const> dense_optimizer_cases() { return kDenseOptimizersCases; }

}  // namespace gpups::test
