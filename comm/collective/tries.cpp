// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/tries.hpp"

#include <algorithm>

namespace gpups::comm {
namespace {

// Sums of a try: the first has to get its memory, and does not count. Short ones find the caches warm after some more:
// there are as many as take kLong_s together.
constexpr int kSumsLeast = 3, kSumsMost = 8;
constexpr double kLong_s = 0.004;
int sums_of_try(double expected_s) {
  return std::clamp(static_cast<int>(kLong_s / std::max(expected_s, 1e-6)), kSumsLeast, kSumsMost);
}
// What tries may take more than the fastest: a share of the time of all sums of the kind, and so much at first. Sums of
// a millisecond are tried in every way at once; those of a second only where a try costs little.
constexpr double kShare = 0.05, kFree_s = 0.05;
double most_s(double total_s) { return kFree_s + kShare * total_s; }
// What takes more times the fastest's than this was disturbed: the rest does not count as the try's.
constexpr double kDisturbed = 10;
// What seems to take no more than so many times the least gets another chance every kEvery sums: what was disturbed
// each time that it ran looks as if it were slow. Once all are settled, each try is twice as far from the one before.
constexpr double kWorthTrying = 2.5;

}  // namespace

Estimate const* Tries::worth_a_try(std::vector<Estimate> const& all) const {
  Estimate const& fastest = all.front();
  Estimate const* hopeful = nullptr;
  Estimate const* seldom = nullptr;
  for (Estimate const& e : all) {
    if (&e == &fastest) continue;
    bool const may_be_faster = !e.settled && e.hoped_s < fastest.expected_s;
    if (may_be_faster && (hopeful == nullptr || e.hoped_s < hopeful->hoped_s)) hopeful = &e;
    bool const is_near = e.expected_s < kWorthTrying * fastest.expected_s;
    if (is_near && (seldom == nullptr || e.runs < seldom->runs)) seldom = &e;
  }
  if (hopeful != nullptr) return hopeful;
  return sums_ >= next_ && seldom != nullptr && seldom->runs < fastest.runs ? seldom : nullptr;
}

void Tries::begin(std::vector<Estimate> const& all) {
  Estimate const* const other = worth_a_try(all);
  if (other == nullptr) return;
  int const sums = sums_of_try(other->expected_s);
  double const more_s = sums * (other->expected_s - all.front().expected_s);
  if (spent_s_ + more_s > most_s(total_s_)) return;
  tried_ = other->algorithm;
  left_ = sums;
  learned_ = told_ + static_cast<std::uint64_t>(sums);
  apart_ = other->settled ? std::min(2 * apart_, kEveryMost) : kEvery;
  next_ = sums_ + apart_;
}

Estimate Tries::next(std::vector<Estimate> const& all) {
  if (left_ == 0 && told_ > learned_) begin(all);
  if (left_ == 0) return all.front();
  --left_;
  Estimate chosen = *std::find_if(all.begin(), all.end(), [&](Estimate const& e) { return e.algorithm == tried_; });
  chosen.is_try = chosen.algorithm != all.front().algorithm;
  return chosen;
}

void Tries::learn(bool by_fastest, double fastest_s, double seconds, std::uint64_t stands_for) {
  ++told_;
  sums_ += std::min(stands_for, kEvery);
  double const others = static_cast<double>(stands_for - 1);  // which what disturbed this one may not have met
  total_s_ += seconds + others * std::min(seconds, kDisturbed * fastest_s);
  if (!by_fastest) spent_s_ += std::clamp(seconds, fastest_s, kDisturbed * fastest_s) - fastest_s;
  if (spent_s_ > most_s(total_s_)) left_ = 0;  // it takes more than was expected
}

}  // namespace gpups::comm
