// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/tries.hpp"

#include <algorithm>

namespace gpups::comm {
namespace {

// Sums of a try: the first has to get its memory, and does not count. Short ones find the caches warm after some more:
// there are as many as take kLong_s together.
constexpr std::uint64_t kSumsLeast = 3, kSumsMost = 8;
constexpr double kLong_s = 0.01;
std::uint64_t sums_of_try(double expected_s) {
  return std::clamp(static_cast<std::uint64_t>(kLong_s / std::max(expected_s, 1e-6)), kSumsLeast, kSumsMost);
}
// What tries may take more than the usual algorithm: a share of the time of all sums of the kind, and so much at first.
// Sums of a millisecond are tried in every way at once; those of a second only where a try costs little.
constexpr double kShare = 0.05, kFree_s = 0.05;
double most_s(double total_s) { return kFree_s + kShare * total_s; }
// What takes more times the usual time than this was disturbed: the rest does not count as the try's.
constexpr double kDisturbed = 10;
// What seems slower gets another chance every kEvery sums, as it may have been disturbed each time that it ran, or
// links may have become others. Once all are settled, each try is twice as far from the one before. What is nearly as
// fast gets more of these chances than what is not; and what seems to take many times as long has as many as if it took
// kFar times, until it is settled.
constexpr double kFar = 2.5;
double due(Estimate const& e, Estimate const& usual) {
  double times = e.expected_s / usual.expected_s;
  if (!e.settled) times = std::min(times, kFar);
  return static_cast<double>(e.idle) / (times * times);
}
// So many sums are chosen for at most between a sum and the first choice that knows how long it took.
constexpr std::uint64_t kLate = 2;

}  // namespace

Estimate const* Tries::worth_a_try(std::vector<Estimate> const& all) const {
  Estimate const& usual = all.front();
  Estimate const* hopeful = nullptr;
  Estimate const* seldom = nullptr;
  for (Estimate const& e : all) {
    if (&e == &usual || e.settled) continue;
    bool const may_be_faster = e.hoped_s < usual.expected_s;
    if (may_be_faster && (hopeful == nullptr || e.hoped_s < hopeful->hoped_s)) hopeful = &e;
  }
  if (hopeful != nullptr || sums_ < next_) return hopeful;
  for (Estimate const& e : all) {
    if (&e != &usual && (seldom == nullptr || due(e, usual) > due(*seldom, usual))) seldom = &e;
  }
  return seldom;
}

bool Tries::begin(std::vector<Estimate> const& all) {
  Estimate const* const other = worth_a_try(all);
  if (other == nullptr) return false;
  std::uint64_t const sums = sums_of_try(other->expected_s);
  double const usual_s = all.front().expected_s;
  double const more_s = static_cast<double>(sums) * (std::min(other->expected_s, kDisturbed * usual_s) - usual_s);
  if (spent_s_ + more_s > most_s(total_s_)) return false;
  tried_ = other->algorithm;
  each_ = sums;
  apart_ = other->settled ? std::min(2 * apart_, kEveryMost) : kEvery;
  next_ = sums_ + apart_;
  return true;
}

// To the next leg that has any sums.
void Tries::turn(std::vector<Estimate> const& all) {
  switch (leg_) {
    case Leg::kAfter:
      leg_ = Leg::kNone;
      [[fallthrough]];
    case Leg::kNone:
      if (told_ <= learned_ || !begin(all)) return;
      leg_ = Leg::kBefore;
      left_ = each_ - (last_ == all.front().algorithm ? std::min(on_end_, each_) : 0);
      learned_ = told_ + left_ + 2 * each_ + kLate - 1;
      if (left_ > 0) return;
      [[fallthrough]];
    case Leg::kBefore:
      leg_ = Leg::kTry;
      left_ = each_;
      return;
    case Leg::kTry:
      leg_ = Leg::kAfter;
      left_ = each_ + kLate;
  }
}

Estimate Tries::next(std::vector<Estimate> const& all) {
  if (left_ == 0) turn(all);
  left_ -= std::min<std::uint64_t>(left_, 1);
  Algorithm const* const taken = leg_ == Leg::kTry ? tried_ : all.front().algorithm;
  Estimate chosen = *std::find_if(all.begin(), all.end(), [&](Estimate const& e) { return e.algorithm == taken; });
  chosen.is_compared = leg_ != Leg::kNone;
  return chosen;
}

void Tries::learn(Algorithm const* algorithm, Estimate const& usual, double seconds, std::uint64_t stands_for) {
  ++told_;
  sums_ += std::min(stands_for, kEvery);
  on_end_ = algorithm == last_ && stands_for == 1 ? on_end_ + 1 : 1;
  last_ = algorithm;
  double const most = kDisturbed * usual.expected_s;
  double const others = static_cast<double>(stands_for - 1);  // which what disturbed this one may not have met
  total_s_ += seconds + others * std::min(seconds, most);
  if (algorithm == usual.algorithm) return;
  double const more_s = std::clamp(seconds, usual.expected_s, most) - usual.expected_s;
  spent_s_ += more_s;
  bool const is_too_slow = more_s > 0 && spent_s_ > most_s(total_s_);
  if (leg_ == Leg::kTry && algorithm == tried_ && is_too_slow) left_ = 0;
}

}  // namespace gpups::comm
