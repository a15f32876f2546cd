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
// was off in other sums; and a comparison may err by so much, several by less.
constexpr double kHope = 0.6, kHopeBesideKnown = 0.8;
constexpr double kMayErr = 0.12;
double hope(std::size_t comparisons) { return 1 - kMayErr / std::sqrt(static_cast<double>(comparisons)); }
// More of them would not change much; nor would more times of the usual algorithm.
constexpr std::size_t kSettledComparisons = 3, kSettledSums = 4;
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

Algorithm const* Reckoning::Seen::usual() const {
  Algorithm const* usual = nullptr;
  double least = 0;
  for (auto const& [algorithm, of] : times) {
    double const pace = of.pace();
    if (pace == 0 || (usual != nullptr && pace >= least)) continue;
    usual = algorithm;
    least = pace;
  }
  return usual;
}

// What disturbs a sum makes it slower, never faster; but the least of five times may be luck.
double Reckoning::Seen::usual_s() const {
  Algorithm const* const algorithm = usual();
  if (algorithm == nullptr) return 0;
  auto seconds = times.at(algorithm).seconds.all();
  std::sort(seconds.begin(), seconds.end());
  return seconds[(seconds.size() - 1) / 4];
}

double Reckoning::Seen::measured_s(Algorithm const& algorithm) const {
  auto const found = times.find(&algorithm);
  double const pace = found == times.end() ? 0 : found->second.pace();
  return pace == 0 ? 0 : usual_s() * pace / times.at(usual()).pace();
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
    double const measured = seen.measured_s(algorithm);
    if (other.sparse != kind.sparse || other.format != kind.format || measured == 0) continue;
    double const longer =
        std::log2((static_cast<double>(other.elements) + 1) / (static_cast<double>(kind.elements) + 1));
    double const distance = std::abs(longer) + std::abs(other.density - kind.density) / kDensitySteps;
    if (distance > nearest) continue;
    nearest = distance;
    off = measured / modelled_s(algorithm, seen.shape, seen.fill);
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
    double hope_of_it = kHopeBesideKnown;
    if (seen != nullptr && seen->times.contains(&algorithm)) {
      Times const& times = seen->times.at(&algorithm);
      e.measured_s = seen->measured_s(algorithm);
      e.runs = times.runs;
      bool const is_usual = seen->usual() == &algorithm;
      e.settled = is_usual ? times.seconds.count >= kSettledSums : times.paces.count >= kSettledComparisons;
      if (e.measured_s > 0) hope_of_it = hope(times.paces.count);
    }
    double const off = e.measured_s > 0 ? e.measured_s / e.modelled_s : how_far_off(algorithm, kind);
    e.expected_s = off * e.modelled_s;
    e.hoped_s = hope_of_it * e.expected_s;
    if (off > 0) log_sum += std::log(off), ++known;
    estimates.push_back(e);
  }
  // Where the model is too hopeful of what was tried, it is so of the rest.
  double const slower = known == 0 ? 1 : std::exp(log_sum / known);
  for (Estimate& e : estimates) {
    if (e.expected_s > 0) continue;
    e.expected_s = slower * e.modelled_s;
    e.hoped_s = kHope * e.expected_s;
  }
  auto const is_measured = [](Estimate const& e) { return e.measured_s > 0; };
  auto const others = std::stable_partition(estimates.begin(), estimates.end(), is_measured);
  auto const is_faster = [](Estimate const& a, Estimate const& b) { return a.expected_s < b.expected_s; };
  std::stable_sort(estimates.begin(), others, is_faster);
  std::stable_sort(others, estimates.end(), is_faster);
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
  Estimate const usual = estimates(shape).front();
  seen.tries.learn(usual.algorithm == &algorithm, usual.expected_s, seconds, stands_for);
  seen.sums += stands_for;
  bool const counts = std::exchange(seen.last, &algorithm) == &algorithm;
  Times& times = seen.times[&algorithm];
  ++times.runs;
  if (counts) {
    times.seconds.add(seconds);
    if (seen.usual() == nullptr) times.paces.add(1);
  }
  if (auto const result = seen.comparison.learn(&algorithm, seconds, counts, stands_for == 1)) {
    Times& compared = seen.times[result->one];
    double const pace = seen.times[result->other].pace();
    if (pace > 0) compared.paces.add(result->times * pace);
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
