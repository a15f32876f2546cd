// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/intervals.hpp"

#include <algorithm>

namespace gpups::trainer::report {
namespace {

// Returns what ranks sent to read and update rows of other owners.
double exchanged(Counters const& counts) {
  return counts.of("sent.gradients") + counts.of("sent.refreshes") + counts.of("sent.late_fetches");
}

Interval joined(Interval const& a, Interval const& b) {
  double const steps = a.steps() + b.steps();
  auto const mean = [&](double of_a, double of_b) { return (of_a * a.steps() + of_b * b.steps()) / steps; };
  Interval both{.first = a.first,
                .last = b.last,
                .loss = mean(a.loss, b.loss),
                .samples_per_s = mean(a.samples_per_s, b.samples_per_s),
                .counts = a.counts};
  both.counts += b.counts;
  return both;
}

// Joins intervals with few steps with those before.
std::vector<Interval> without_short(std::vector<Interval> const& all) {
  double longest = 0;
  for (auto const& one : all) longest = std::max(longest, one.steps());
  std::vector<Interval> some;
  for (auto const& one : all) {
    bool const is_short = one.steps() < longest / 4;
    if (is_short && !some.empty()) {
      some.back() = joined(some.back(), one);
    } else {
      some.push_back(one);
    }
  }
  return some;
}

}  // namespace

Counters::Counters(nlohmann::json const& line) {
  for (auto const& [name, value] : line.items()) {
    if (value.is_number()) numbers_[name] = value.get<double>();
    if (!value.is_object()) continue;
    for (auto const& [part, number] : value.items()) {
      if (number.is_number()) numbers_[name + "." + part] = number.get<double>();
    }
  }
}

double Counters::of(std::string const& name) const {
  auto const found = numbers_.find(name);
  return found == numbers_.end() ? 0 : found->second;
}

Counters& Counters::operator+=(Counters const& other) {
  for (auto const& [name, number] : other.numbers_) numbers_[name] += number;
  return *this;
}

Counters Counters::since(Counters const& earlier) const {
  for (char const* name : {"entries", "sent.messages", "stage_seconds.prepare"}) {
    if (of(name) < earlier.of(name)) return *this;
  }
  Counters difference = *this;
  for (auto& [name, number] : difference.numbers_) number -= earlier.of(name);
  return difference;
}

std::vector<Interval> intervals_of(std::vector<nlohmann::json> const& reports, std::size_t most) {
  std::vector<Interval> all;
  Counters before;
  std::int64_t first = 0;
  std::size_t const at_once = (reports.size() + most - 1) / most;
  std::size_t lines = 0;
  for (auto const& report : reports) {
    Counters const now(report);
    Interval one{.first = first,
                 .last = report.at("step").get<std::int64_t>(),
                 .loss = now.of("loss"),
                 .samples_per_s = now.of("samples_per_s"),
                 .counts = now.since(before)};
    first = one.last;
    before = now;
    if (lines++ % at_once == 0) {
      all.push_back(std::move(one));
    } else {
      all.back() = joined(all.back(), one);
    }
  }
  return without_short(all);
}

Counters total_of(std::vector<nlohmann::json> const& reports, nlohmann::json const& summary) {
  Counters total, before;
  for (auto const& report : reports) {
    Counters const now(report);
    total += now.since(before);
    before = now;
  }
  if (summary.is_object()) total += Counters(summary).since(before);
  return total;
}

double HomeEstimate::sent(Counters const& counts) {
  return exchanged(counts) + counts.of("sent.moves") + counts.of("sent.intents");
}

std::optional<HomeEstimate> estimate_of(Counters const& counts) {
  double const rows = counts.of("remote_keys") - counts.of("moved_rows");
  if (rows <= 0) return std::nullopt;
  return HomeEstimate{.bytes_per_row = exchanged(counts) / rows};
}

}  // namespace gpups::trainer::report
