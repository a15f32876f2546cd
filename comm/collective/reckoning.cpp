// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/reckoning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace gpups::comm {
namespace {

// What has not been tried is taken for a little faster than it seems, so that it will be.
constexpr double kHope = 0.9;
constexpr double kNewFill = 0.25;  // weight of the last sum in the mean

// Elements that some rank has, if each has its own at random places.
double independent_fill(SumShape const& shape) {
  double const n = static_cast<double>(shape.elements), k = static_cast<double>(shape.given_most);
  return k == 0 ? 1 : n * (1 - std::pow(1 - k / n, shape.ranks)) / k;
}

std::string percent(double share) { return fmt::format("{:.3g} %", share * 100); }

}  // namespace

double Reckoning::Times::least_s() const {
  std::size_t const known = std::min<std::uint64_t>(runs > 0 ? runs - 1 : 0, std::size(recent_s));
  return known == 0 ? 0 : *std::min_element(recent_s, recent_s + known);
}

Reckoning::Kind Reckoning::kind_of(SumShape const& shape) {
  double const density = (static_cast<double>(shape.given_most) + 1) / (static_cast<double>(shape.elements) + 1);
  return {shape.elements, shape.sparse, shape.format,
          shape.sparse ? static_cast<int>(std::lround(2 * std::log2(density))) : 0};
}

Reckoning::Seen const* Reckoning::find(SumShape const& shape) const {
  auto const found = seen_.find(kind_of(shape));
  return found == seen_.end() ? nullptr : &found->second;
}

std::vector<Reckoning::Estimate> Reckoning::estimates(SumShape const& shape) const {
  Seen const* const seen = find(shape);
  double const fill = seen != nullptr && seen->fill > 0 ? seen->fill : independent_fill(shape);
  std::vector<Estimate> estimates;
  for (Algorithm const& algorithm : algorithms()) {
    bool const can = (shape.sparse ? algorithm.about.sparse : algorithm.about.dense) && algorithm.has(shape.format);
    if (!can) continue;
    Estimate e{.algorithm = &algorithm};
    e.modelled_s = seconds(model_, algorithm.work(shape, fill * static_cast<double>(shape.given_most)));
    if (seen != nullptr) {
      auto const times = seen->times.find(&algorithm);
      if (times != seen->times.end()) e.measured_s = times->second.least_s();
    }
    estimates.push_back(e);
  }
  // Where the model is too hopeful of what was tried, it is so of the rest.
  double log_sum = 0, tried = 0;
  for (Estimate const& e : estimates) {
    if (e.measured_s > 0) log_sum += std::log(e.measured_s / e.modelled_s), ++tried;
  }
  double const slower = tried == 0 ? 1 : std::exp(log_sum / tried);
  for (Estimate& e : estimates) e.expected_s = e.measured_s > 0 ? e.measured_s : kHope * slower * e.modelled_s;
  std::stable_sort(estimates.begin(), estimates.end(),
                   [](Estimate const& a, Estimate const& b) { return a.expected_s < b.expected_s; });
  return estimates;
}

void Reckoning::learn(SumShape const& shape, Algorithm const& algorithm, double seconds, std::uint64_t const* entries) {
  Seen& seen = seen_[kind_of(shape)];
  seen.shape = shape;
  ++seen.sums;
  Times& times = seen.times[&algorithm];
  if (times.runs > 0) times.recent_s[(times.runs - 1) % std::size(times.recent_s)] = seconds;
  ++times.runs;
  if (entries == nullptr || shape.given_most == 0) return;
  double const fill = static_cast<double>(*entries) / static_cast<double>(shape.given_most);
  seen.fill = seen.fill == 0 ? fill : (1 - kNewFill) * seen.fill + kNewFill * fill;
}

std::vector<std::string> Reckoning::explain() const {
  std::vector<std::string> lines;
  for (auto const& [kind, seen] : seen_) {
    double const n = static_cast<double>(seen.shape.elements);
    std::string line = fmt::format("{} sums of {} floats", seen.sums, seen.shape.elements);
    if (kind.sparse) {
      line += fmt::format(", {} of them on a rank", percent(static_cast<double>(seen.shape.given_most) / n));
      if (seen.fill > 0) {
        line += fmt::format(" and {} in the sum", percent(seen.fill * static_cast<double>(seen.shape.given_most) / n));
      }
    }
    line += fmt::format(", as {}:", name_of(kind.format));
    char const* before = " ";
    for (Estimate const& e : estimates(seen.shape)) {
      line += fmt::format("{}{} {:.3g} ms", before, e.algorithm->about.name, e.modelled_s * 1e3);
      if (e.measured_s > 0) line += fmt::format(" (measured {:.3g})", e.measured_s * 1e3);
      before = ", ";
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace gpups::comm
