// SPDX-License-Identifier: Apache-2.0
#include "tests/support/oracle.hpp"

#include <cmath>
#include <map>
#include <numbers>

#include "kernels/base/philox.hpp"

namespace gpups::test {

__extension__ typedef __int128 Wide;

std::vector<std::size_t> first_uses(std::vector<Key> const& keys) {
  std::map<Key, std::size_t> first;
  std::vector<std::size_t> uses;
  for (std::size_t i = 0; i < keys.size(); ++i) uses.push_back(first.try_emplace(keys[i], i).first->second);
  return uses;
}

std::vector<std::vector<std::uint32_t>> entries_of_rows(std::vector<std::uint32_t> const& positions, std::size_t rows) {
  std::vector<std::vector<std::uint32_t>> entries(rows);
  for (std::size_t i = 0; i < positions.size(); ++i) entries[positions[i]].push_back(static_cast<std::uint32_t>(i));
  return entries;
}

std::optional<std::int64_t> grid_floor(float c, float x, int grid_log2) {
  if (!std::isfinite(c) || !std::isfinite(x)) return {};
  if (c == 0 || x == 0) return 0;
  // c = a 2^p and x = b 2^q with integers a, b of 24 bits, so the result is floor(a b 2^shift).
  int p = 0, q = 0;
  auto const a = static_cast<std::int64_t>(std::ldexp(std::frexp(c, &p), 24));
  auto const b = static_cast<std::int64_t>(std::ldexp(std::frexp(x, &q), 24));
  std::int64_t const digits = a * b;
  int const shift = p - 24 + q - 24 - grid_log2;
  if (shift <= -63) return digits < 0 ? -1 : 0;
  if (shift < 0) return digits >> -shift;
  if (shift > 63) return {};
  Wide const result = static_cast<Wide>(digits) * (static_cast<Wide>(1) << shift);
  if (result != static_cast<std::int64_t>(result)) return {};
  return static_cast<std::int64_t>(result);
}

std::optional<std::int64_t> exact_sum(std::vector<Product> const& products, int grid_log2) {
  Wide sum = 0;
  for (auto const& [c, x] : products) {
    auto const one = grid_floor(c, x, grid_log2);
    if (!one) return {};
    sum += *one;
  }
  if (sum != static_cast<std::int64_t>(sum)) return {};
  return static_cast<std::int64_t>(sum);
}

void optimizer_step(Optimizer const& o, double rate, std::vector<double> gradient, RowState& row) {
  using Kind = Optimizer::Kind;
  auto const norm = [](std::vector<double> const& all) {
    double squares = 0;
    for (double x : all) squares += x * x;
    return std::sqrt(squares);
  };
  std::size_t const dim = gradient.size(), half = row.state.size() / 2;
  if (o.clip_norm > 0 && norm(gradient) > o.clip_norm) {
    double const factor = o.clip_norm / norm(gradient);
    for (double& g : gradient) g *= factor;
  }
  bool const adds_decay = o.kind != Kind::kLamb && o.kind != Kind::kFtrl;
  for (std::size_t j = 0; adds_decay && j < dim; ++j) gradient[j] += o.l2 * row.value[j];

  double const squares = norm(gradient) * norm(gradient);
  if (o.kind == Kind::kRowwiseAdagrad) row.state[0] += squares / static_cast<double>(dim);
  std::vector<double> update(dim);
  ++row.updates;
  for (std::size_t j = 0; j < dim; ++j) {
    double const g = gradient[j];
    double& value = row.value[j];
    switch (o.kind) {
      case Kind::kSgd:
        update[j] = g;
        break;
      case Kind::kAdagrad:
        row.state[j] += g * g;
        update[j] = g / (std::sqrt(row.state[j]) + o.epsilon);
        break;
      case Kind::kRowwiseAdagrad:
        update[j] = g / (std::sqrt(row.state[0]) + o.epsilon);
        break;
      case Kind::kAdam:
      case Kind::kLamb: {
        double &m = row.state[j], &v = row.state[half + j];
        m = o.beta1 * m + (1 - o.beta1) * g;
        v = o.beta2 * v + (1 - o.beta2) * g * g;
        double const mean = m / (1 - std::pow(o.beta1, row.updates)), square = v / (1 - std::pow(o.beta2, row.updates));
        update[j] = mean / (std::sqrt(square) + o.epsilon);
        if (o.kind == Kind::kLamb) update[j] += o.l2 * value;
        break;
      }
      case Kind::kFtrl: {
        double &n = row.state[j], &z = row.state[half + j];
        if (z == 0) z = -(o.beta + std::sqrt(n)) / rate * value;
        z += g - (std::sqrt(n + g * g) - std::sqrt(n)) / rate * value;
        n += g * g;
        double const excess = std::abs(z) <= o.l1 ? 0 : z - std::copysign(static_cast<double>(o.l1), z);
        update[j] = (value + excess / ((o.beta + std::sqrt(n)) / rate + o.l2)) / rate;
        break;
      }
    }
  }
  double const trust =
      o.kind == Kind::kLamb && norm(row.value) > 0 && norm(update) > 0 ? norm(row.value) / norm(update) : 1;
  for (std::size_t j = 0; j < dim; ++j) row.value[j] -= rate * trust * update[j];
}

double initial_value(Initializer const& initializer, std::uint64_t seed, Key key, std::size_t column) {
  if (initializer.kind == Initializer::Kind::kConstant) return initializer.scale;
  auto const low = static_cast<std::uint32_t>(number(key)), high = static_cast<std::uint32_t>(number(key) >> 32);
  auto const words =
      kernels::philox(kernels::philox_key(seed), {{low, high, static_cast<std::uint32_t>(column / 4), 0}});
  if (initializer.kind == Initializer::Kind::kUniform) {
    double const u = std::floor(words.word[column % 4] / 256.0) / 16777216.0;
    return initializer.scale * (2 * u - 1);
  }
  std::size_t const pair = column % 4 / 2 * 2;
  double const radius = std::sqrt(-2 * std::log((words.word[pair] + 0.5) / 4294967296.0));
  // The angle starts an eighth of a turn before the first axis.
  double const angle = 2 * std::numbers::pi * (words.word[pair + 1] / 4294967296.0 - 0.125);
  return initializer.scale * radius * (column % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

}  // namespace gpups::test
