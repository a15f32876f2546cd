// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/reckoning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "comm/collective/median.hpp"

namespace gpups::comm {
namespace {

// A sum may turn out to take so little of what is expected: a model may err by half, less where it is known how far it
// was off in other sums; and a comparison may err by so much, several by less.
constexpr double kHope = 0.6, kHopeBesideKnown = 0.8;
constexpr double kMayErr = 0.12;
double hope(std::size_t comparisons) { return 1 - kMayErr / std::sqrt(static_cast<double>(comparisons)); }
// More of them would not change much; nor would more times of the usual way.
constexpr std::size_t kSettledTries = 3, kSettledSums = 4;
// Doublings of the length and of the density, together, up to which what is known of one sum tells something of
// another.
constexpr double kNear = 4;
// Sums that follow each other so closely are on end: times of some that overlap are not known, or they are of another
// kind.
constexpr std::uint64_t kOnEnd = 4;
// A usual way that takes so much longer than another lately did has become slow; once for so many sums.
constexpr double kSlow = 1.7;
constexpr std::uint64_t kSlowSums = 64;
constexpr double kNewFill = 0.25;        // weight of the last sum in the mean
constexpr int kDensitySteps = 2;         // kinds to a doubling of the density
constexpr double kNearlyTheSame = 0.75;  // of a step

// Elements that some rank has, if each has its own at random places.
double independent_fill(SumShape const& shape) {
  double const n = static_cast<double>(shape.elements), k = static_cast<double>(shape.given_most);
  return k == 0 ? 1 : n * (1 - std::pow(1 - k / n, shape.ranks)) / k;
}

std::string percent(double share) { return fmt::format("{:.3g} %", share * 100); }

}  // namespace

double Reckoning::Times::lately_s() const {
  auto sorted = seconds.all();
  std::sort(sorted.begin(), sorted.end());
  return sorted.empty() ? 0 : sorted[(sorted.size() - 1) / 4];
}

void Reckoning::Seen::add(Comparison::Result const& result) {
  Times &one = times[result.one], &other = times[result.other];
  if (other.pace > 0) {
    one.paces.add(result.ratio * other.pace);
  } else if (one.pace > 0) {
    other.paces.add(one.pace / result.ratio);
  } else if (usual == nullptr) {
    one.paces.add(result.ratio);
    other.paces.add(1);
  }
}

// What was compared with the usual one so far stays so where another one becomes usual.
void Reckoning::Seen::find_usual() {
  usual = nullptr;
  for (auto& [way, of] : times) {
    of.pace = of.paces.count == 0 ? 0 : median(of.paces.all());
    if (of.pace > 0 && (usual == nullptr || of.pace < times[usual].pace)) usual = way;
  }
  if (usual == nullptr) return;
  double const unit = times[usual].pace;
  for (auto& [way, of] : times) {
    of.pace /= unit;
    for (double& pace : of.paces.values) pace /= unit;
  }
  usual_s = times[usual].lately_s();
}

double Reckoning::Seen::measured_s(Way const& way) const {
  auto const found = times.find(&way);
  return found == times.end() ? 0 : usual_s * found->second.pace;
}

// Where a kind that was seen is as near, it is taken: the density of sums differs a little from one to the next.
Reckoning::Kind Reckoning::kind_of(SumShape const& shape) const {
  double const density = (static_cast<double>(shape.given_most) + 1) / (static_cast<double>(shape.elements) + 1);
  double const steps = kDensitySteps * std::log2(density);
  Kind kind{shape.elements, shape.sparse, shape.format, static_cast<int>(std::lround(steps))};
  if (seen_.contains(kind)) return kind;
  Kind beside = kind;
  beside.density += steps > kind.density ? 1 : -1;
  return seen_.contains(beside) && std::abs(steps - beside.density) < kNearlyTheSame ? beside : kind;
}

double Reckoning::modelled_s(Way const& way, SumShape const& shape, double fill) const {
  if (fill == 0) fill = independent_fill(shape);
  return seconds(model_, way.work(shape, fill * static_cast<double>(shape.given_most)));
}

double Reckoning::how_far_off(Way const& way, Kind const& kind) const {
  double nearest = kNear, off = 0;
  for (auto const& [other, seen] : seen_) {
    if (other.sparse != kind.sparse) continue;
    double const longer =
        std::log2((static_cast<double>(other.elements) + 1) / (static_cast<double>(kind.elements) + 1));
    double const distance = std::abs(longer) + std::abs(other.density - kind.density) / kDensitySteps;
    if (distance > nearest) continue;
    double const measured = seen.measured_s(way);
    if (measured == 0) continue;
    nearest = distance;
    off = measured / modelled_s(way, seen.shape, seen.fill);
  }
  return off;
}

std::vector<Estimate> Reckoning::estimates(SumShape const& shape) const {
  Kind const kind = kind_of(shape);
  auto const found = seen_.find(kind);
  Seen const* const seen = found == seen_.end() ? nullptr : &found->second;
  std::vector<Estimate> estimates;
  double log_sum = 0, known = 0;
  for (Way const& way : ways()) {
    if (!way.serves(shape)) continue;
    Estimate e{.way = &way, .modelled_s = modelled_s(way, shape, seen == nullptr ? 0 : seen->fill)};
    Times const* times = nullptr;
    if (seen != nullptr && seen->times.contains(&way)) times = &seen->times.at(&way);
    if (times != nullptr) {
      e.measured_s = seen->measured_s(way);
      e.settled = times->tries >= kSettledTries;
    }
    if (seen != nullptr) e.idle = seen->sums - (times == nullptr ? 0 : times->ran);
    double off = 0;
    if (e.measured_s > 0) {
      off = e.measured_s / e.modelled_s;
      e.hoped_s = hope(times->paces.count) * e.measured_s;
      double const lately_s = times->lately_s();
      if (seen->usual == &way) {
        e.settled = times->seconds.count >= kSettledSums;
      } else if (kSlow * lately_s < seen->usual_s && e.idle >= kSlowSums) {
        e.settled = false;
        e.hoped_s = std::min(e.hoped_s, lately_s);
      }
    } else {
      off = how_far_off(way, kind);
      e.hoped_s = kHopeBesideKnown * off * e.modelled_s;
    }
    e.expected_s = off * e.modelled_s;
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

void Reckoning::learn(EndedSum const& sum) {
  Seen& seen = seen_[kind_of(sum.shape)];
  seen.shape = sum.shape;
  Estimate const usual = estimates(sum.shape).front();
  bool const right_after = seen.last != nullptr && sum.number - seen.last_number <= kOnEnd && sum.stands_for == 1;
  seen.tries.learn({sum.way, sum.seconds, sum.stands_for, right_after}, usual);
  seen.sums += sum.stands_for;
  bool const counts = sum.stands_for > 1 || (right_after && seen.last == sum.way);
  bool const is_another = std::exchange(seen.last, sum.way) != sum.way;
  seen.last_number = sum.number;
  Times& times = seen.times[sum.way];
  times.ran = seen.sums;
  if (is_another && usual.measured_s > 0 && sum.way != usual.way) ++times.tries;
  if (counts) times.seconds.add(sum.seconds);
  if (counts && seen.usual == nullptr && sum.way == usual.way) times.paces.add(1);
  if (auto const result = seen.comparison.learn({sum.way, sum.seconds, counts, right_after})) seen.add(*result);
  seen.find_usual();
  if (!sum.entries || sum.shape.given_most == 0) return;
  double const fill = static_cast<double>(*sum.entries) / static_cast<double>(sum.shape.given_most);
  seen.fill = seen.fill == 0 ? fill : (1 - kNewFill) * seen.fill + kNewFill * fill;
}

std::vector<std::string> Reckoning::explain() const {
  std::vector<std::string> lines;
  for (auto const& [kind, seen] : seen_) {
    double const n = static_cast<double>(seen.shape.elements);
    std::string line = fmt::format("{} {} of {}{} floats", seen.sums, seen.sums == 1 ? "sum" : "sums",
                                   kind.sparse ? "sparse vectors of " : "", seen.shape.elements);
    if ((kind.sparse || kind.density < 0) && seen.shape.elements > 0) {
      line += fmt::format(", {} of them on a rank", percent(static_cast<double>(seen.shape.given_most) / n));
      if (seen.fill > 0) {
        line += fmt::format(" and {} in the sum", percent(seen.fill * static_cast<double>(seen.shape.given_most) / n));
      }
    }
    auto const all = estimates(seen.shape);
    line += fmt::format(", as {}{}, usually by {}: ", name_of(kind.format),
                        kind.format == NumberFormat::kFloat ? "" : " or what errs less", name_of(*all.front().way));
    char const* before = "";
    for (Estimate const& e : all) {
      line += fmt::format("{}{} {:.3g} ms", before, name_of(*e.way), e.modelled_s * 1e3);
      if (e.measured_s > 0) line += fmt::format(" (measured {:.3g})", e.measured_s * 1e3);
      before = ", ";
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace gpups::comm
