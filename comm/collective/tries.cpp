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
// What seems to take no more than so many times the least gets another chance every kEvery sums: what was disturbed
// each time that it ran looks as if it were slow. Once all are settled, each try is twice as far from the one before.
constexpr double kWorthTrying = 2.5;

// What is nearly as fast gets such chances more often than what is not.
double had_chances(Estimate const& e, Estimate const& usual) {
  double const times = e.expected_s / usual.expected_s;
  return static_cast<double>(e.runs) * times * times;
}

}  // namespace

Estimate const* Tries::worth_a_try(std::vector<Estimate> const& all) const {
  Estimate const& usual = all.front();
  Estimate const* hopeful = nullptr;
  Estimate const* seldom = nullptr;
  for (Estimate const& e : all) {
    if (&e == &usual) continue;
    bool const may_be_faster = !e.settled && e.hoped_s < usual.expected_s;
    if (may_be_faster && (hopeful == nullptr || e.hoped_s < hopeful->hoped_s)) hopeful = &e;
    bool const is_near = e.expected_s < kWorthTrying * usual.expected_s;
    if (is_near && (seldom == nullptr || had_chances(e, usual) < had_chances(*seldom, usual))) seldom = &e;
  }
  if (hopeful != nullptr) return hopeful;
  return sums_ >= next_ && seldom != nullptr && seldom->runs < usual.runs ? seldom : nullptr;
}

bool Tries::begin(std::vector<Estimate> const& all) {
  Estimate const* const other = worth_a_try(all);
  if (other == nullptr) return false;
  std::uint64_t const sums = sums_of_try(other->expected_s);
  double const more_s = static_cast<double>(sums) * (other->expected_s - all.front().expected_s);
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
      left_ = each_ - std::min(usual_, each_);
      learned_ = told_ + left_ + 2 * each_;
      if (left_ > 0) return;
      [[fallthrough]];
    case Leg::kBefore:
      leg_ = Leg::kTry;
      left_ = each_;
      return;
    case Leg::kTry:
      leg_ = Leg::kAfter;
      left_ = each_ + 1;  // it is told of a sum when the next has begun
  }
}

Estimate Tries::next(std::vector<Estimate> const& all) {
  if (left_ == 0) turn(all);
  left_ -= std::min<std::uint64_t>(left_, 1);
  Algorithm const* const taken = leg_ == Leg::kTry ? tried_ : all.front().algorithm;
  Estimate chosen = *std::find_if(all.begin(), all.end(), [&](Estimate const& e) { return e.algorithm == taken; });
  chosen.is_try = taken != all.front().algorithm;
  chosen.is_compared = leg_ != Leg::kNone;
  return chosen;
}

void Tries::learn(bool by_usual, double usual_s, double seconds, std::uint64_t stands_for) {
  ++told_;
  sums_ += std::min(stands_for, kEvery);
  usual_ = !by_usual ? 0 : stands_for > 1 ? 1 : usual_ + 1;
  double const others = static_cast<double>(stands_for - 1);  // which what disturbed this one may not have met
  total_s_ += seconds + others * std::min(seconds, kDisturbed * usual_s);
  if (!by_usual) spent_s_ += std::clamp(seconds, usual_s, kDisturbed * usual_s) - usual_s;
  if (leg_ == Leg::kTry && spent_s_ > most_s(total_s_)) left_ = 0;  // it takes more than was expected
}

}  // namespace gpups::comm
