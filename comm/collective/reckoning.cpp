// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/reckoning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace gpups::comm {
namespace {

// What has seldom been tried is taken for faster than it seems, so that it will be: a model may err by half, and one
// time may be chance. By the number of times that count.
constexpr double kHope[] = {0.6, 0.75, 0.85, 0.95, 1};
constexpr std::size_t kSettled = std::size(kHope) - 1;
// What seems to take no more than so many times the least gets another chance every kTryEvery sums: what was disturbed
// each time that it ran looks as if it were slow. Once all are settled, each try is twice as far from the one before.
constexpr double kWorthTrying = 2.5;
// Doublings of the length and of the density, together, up to which what is known of one sum tells something of
// another.
constexpr double kNear = 4;
constexpr double kNewFill = 0.25;  // weight of the last sum in the mean
constexpr int kDensitySteps = 2;   // kinds to a doubling of the density

// Elements that some rank has, if each has its own at random places.
double independent_fill(SumShape const& shape) {
  double const n = static_cast<double>(shape.elements), k = static_cast<double>(shape.given_most);
  return k == 0 ? 1 : n * (1 - std::pow(1 - k / n, shape.ranks)) / k;
}

std::string percent(double share) { return fmt::format("{:.3g} %", share * 100); }

}  // namespace

std::size_t Reckoning::Times::counted() const {
  return std::min<std::uint64_t>(runs > 0 ? runs - 1 : 0, std::size(recent_s));
}

double Reckoning::Times::median_s() const {
  if (counted() == 0) return 0;
  std::vector<double> sorted(recent_s, recent_s + counted());
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() - 1) / 2];
}

Reckoning::Kind Reckoning::kind_of(SumShape const& shape) {
  double const density = (static_cast<double>(shape.given_most) + 1) / (static_cast<double>(shape.elements) + 1);
  return {shape.elements, shape.sparse, shape.format,
          shape.sparse ? static_cast<int>(std::lround(kDensitySteps * std::log2(density))) : 0};
}

double Reckoning::modelled_s(Algorithm const& algorithm, SumShape const& shape, double fill) const {
  if (fill == 0) fill = independent_fill(shape);
  return seconds(model_, algorithm.work(shape, fill * static_cast<double>(shape.given_most)));
}

double Reckoning::how_far_off(Algorithm const& algorithm, Kind const& kind) const {
  double nearest = kNear, off = 0;
  for (auto const& [other, seen] : seen_) {
    auto const times = seen.times.find(&algorithm);
    bool const tells = other.sparse == kind.sparse && other.format == kind.format && times != seen.times.end() &&
                       times->second.counted() > 0;
    if (!tells) continue;
    double const longer =
        std::log2((static_cast<double>(other.elements) + 1) / (static_cast<double>(kind.elements) + 1));
    double const distance = std::abs(longer) + std::abs(other.density - kind.density) / kDensitySteps;
    if (distance > nearest) continue;
    nearest = distance;
    off = times->second.median_s() / modelled_s(algorithm, seen.shape, seen.fill);
  }
  return off;
}

std::vector<Reckoning::Estimate> Reckoning::estimates(SumShape const& shape) const {
  Kind const kind = kind_of(shape);
  auto const found = seen_.find(kind);
  Seen const* const seen = found == seen_.end() ? nullptr : &found->second;
  std::vector<Estimate> estimates;
  double log_sum = 0, known = 0;
  for (Algorithm const& algorithm : algorithms()) {
    bool const can = (shape.sparse ? algorithm.about.sparse : algorithm.about.dense) && algorithm.has(shape.format);
    if (!can) continue;
    Estimate e{.algorithm = &algorithm, .modelled_s = modelled_s(algorithm, shape, seen == nullptr ? 0 : seen->fill)};
    if (seen != nullptr && seen->times.contains(&algorithm)) {
      Times const& times = seen->times.at(&algorithm);
      e.measured_s = times.median_s();
      e.runs = times.runs;
      e.counted = times.counted();
    }
    e.settled = e.counted >= kSettled;
    double const off = e.measured_s > 0 ? e.measured_s / e.modelled_s : how_far_off(algorithm, kind);
    e.expected_s = kHope[std::min(e.counted, kSettled)] * off * e.modelled_s;
    if (off > 0) log_sum += std::log(off), ++known;
    estimates.push_back(e);
  }
  // Where the model is too hopeful of what was tried, it is so of the rest.
  double const slower = known == 0 ? 1 : std::exp(log_sum / known);
  for (Estimate& e : estimates) {
    if (e.expected_s == 0) e.expected_s = kHope[0] * slower * e.modelled_s;
  }
  std::stable_sort(estimates.begin(), estimates.end(),
                   [](Estimate const& a, Estimate const& b) { return a.expected_s < b.expected_s; });
  return estimates;
}

Reckoning::Estimate Reckoning::next(SumShape const& shape) {
  auto const all = estimates(shape);
  Estimate chosen = all.front();
  auto const found = seen_.find(kind_of(shape));
  if (found == seen_.end() || found->second.sums < found->second.next_try) return chosen;
  Seen& seen = found->second;
  for (Estimate const& e : all) {
    bool const worth = e.expected_s < kHope[std::min(e.counted, kSettled)] * kWorthTrying * all.front().expected_s;
    if (worth && e.runs < chosen.runs) chosen = e;
  }
  chosen.is_try = chosen.algorithm != all.front().algorithm;
  seen.between_tries = chosen.settled ? std::min(2 * seen.between_tries, kTryEveryMost) : kTryEvery;
  seen.next_try = seen.sums + seen.between_tries;
  return chosen;
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
