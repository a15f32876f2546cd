// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/reckoning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace gpups::comm {
namespace {

// A sum may turn out to take so little of what is expected: a model may err by half, less where it is known how far it
// was off in other sums, and one time may be chance. By the number of times that count.
constexpr double kHope[] = {0.6, 0.75, 0.85, 0.95, 1};
constexpr double kHopeBesideKnown = 0.8;
constexpr std::size_t kSettled = std::size(kHope) - 1;
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

// What disturbs a sum makes it slower, never faster; but the least of five times may be luck.
double Reckoning::Times::usual_s() const {
  if (counted == 0) return 0;
  std::vector<double> sorted(recent_s, recent_s + recent());
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() - 1) / 4];
}

Reckoning::Kind Reckoning::kind_of(SumShape const& shape) {
  double const density = (static_cast<double>(shape.given_most) + 1) / (static_cast<double>(shape.elements) + 1);
  return {shape.elements, shape.sparse, shape.format,
          static_cast<int>(std::lround(kDensitySteps * std::log2(density)))};
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
                       times->second.counted > 0;
    if (!tells) continue;
    double const longer =
        std::log2((static_cast<double>(other.elements) + 1) / (static_cast<double>(kind.elements) + 1));
    double const distance = std::abs(longer) + std::abs(other.density - kind.density) / kDensitySteps;
    if (distance > nearest) continue;
    nearest = distance;
    off = times->second.usual_s() / modelled_s(algorithm, seen.shape, seen.fill);
  }
  return off;
}

std::vector<Estimate> Reckoning::estimates(SumShape const& shape) const {
  Kind const kind = kind_of(shape);
  auto const found = seen_.find(kind);
  Seen const* const seen = found == seen_.end() ? nullptr : &found->second;
  std::vector<Estimate> estimates;
  double log_sum = 0, known = 0;
  for (Algorithm const& algorithm : algorithms()) {
    if (!algorithm.has(shape.format)) continue;
    Estimate e{.algorithm = &algorithm, .modelled_s = modelled_s(algorithm, shape, seen == nullptr ? 0 : seen->fill)};
    if (seen != nullptr && seen->times.contains(&algorithm)) {
      Times const& times = seen->times.at(&algorithm);
      e.measured_s = times.usual_s();
      e.runs = times.runs;
      e.counted = times.recent();
    }
    e.settled = e.counted >= kSettled;
    double const off = e.measured_s > 0 ? e.measured_s / e.modelled_s : how_far_off(algorithm, kind);
    e.expected_s = off * e.modelled_s;
    e.hoped_s = (off > 0 && e.counted == 0 ? kHopeBesideKnown : kHope[std::min(e.counted, kSettled)]) * e.expected_s;
    if (off > 0) log_sum += std::log(off), ++known;
    estimates.push_back(e);
  }
  // Where the model is too hopeful of what was tried, it is so of the rest.
  double const slower = known == 0 ? 1 : std::exp(log_sum / known);
  for (Estimate& e : estimates) {
    if (e.expected_s > 0) continue;
    e.expected_s = slower * e.modelled_s;
    e.hoped_s = kHope[0] * e.expected_s;
  }
  std::stable_sort(estimates.begin(), estimates.end(),
                   [](Estimate const& a, Estimate const& b) { return a.expected_s < b.expected_s; });
  return estimates;
}

Estimate Reckoning::next(SumShape const& shape) {
  auto const all = estimates(shape);
  auto const found = seen_.find(kind_of(shape));
  return found == seen_.end() ? all.front() : found->second.tries.next(all);
}

void Reckoning::learn(SumShape const& shape, Algorithm const& algorithm, double seconds, std::uint64_t const* entries,
                      std::uint64_t stands_for) {
  Seen& seen = seen_[kind_of(shape)];
  seen.shape = shape;
  Estimate const fastest = estimates(shape).front();
  seen.tries.learn(fastest.algorithm == &algorithm, fastest.expected_s, seconds, stands_for);
  seen.sums += stands_for;
  Times& times = seen.times[&algorithm];
  ++times.runs;
  if (std::exchange(seen.last, &algorithm) == &algorithm) {
    times.recent_s[times.counted++ % std::size(times.recent_s)] = seconds;
  }
  if (entries == nullptr || shape.given_most == 0) return;
  double const fill = static_cast<double>(*entries) / static_cast<double>(shape.given_most);
  seen.fill = seen.fill == 0 ? fill : (1 - kNewFill) * seen.fill + kNewFill * fill;
}

std::vector<std::string> Reckoning::explain() const {
  std::vector<std::string> lines;
  for (auto const& [kind, seen] : seen_) {
    double const n = static_cast<double>(seen.shape.elements);
    std::string line = fmt::format("{} sums of {} floats", seen.sums, seen.shape.elements);
    if (kind.sparse || kind.density < 0) {
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
