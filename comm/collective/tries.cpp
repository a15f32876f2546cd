// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/tries.hpp"

#include <algorithm>
#include <utility>

namespace gpups::comm {
namespace {

// Sums of a try: the first has to get its memory, and does not count. Short ones find the caches warm after some more:
// there are as many as take kLong_s together.
constexpr std::uint64_t kSumsLeast = 3, kSumsMost = 8;
constexpr double kLong_s = 0.01;
std::uint64_t sums_of_try(double expected_s) {
  return std::clamp(static_cast<std::uint64_t>(kLong_s / std::max(expected_s, 1e-6)), kSumsLeast, kSumsMost);
}
// What tries may take more than the usual way: a share of the time of all sums of the kind, and so much at first.
// Sums of a millisecond are tried in every way at once; those of a second only where a try costs little.
constexpr double kShare = 0.05, kFree_s = 0.05;
double most_s(double total_s) { return kFree_s + kShare * total_s; }
// What takes more times the usual time than this was disturbed, if nothing else of the try takes so long: the rest does
// not count as the try's.
constexpr double kDisturbed = 10;
// What seems slower gets another chance every kEvery sums, as it may have been disturbed each time that it ran, or
// links may have become others. Once all are settled, each try is twice as far from the one before. What is nearly as
// fast gets more of these chances than what is not; and what seems to take many times as long has as many as if it took
// kFar times, until it is settled.
constexpr double kFar = 2.5;
// What was never measured has chances if it should be near, by what is known of other sums or by the model alone: it
// may take a thousand times as long, and as much more memory.
bool may_have_chances(Estimate const& e, Estimate const& usual) {
  return e.measured_s > 0 || e.expected_s < kFar * usual.expected_s || e.modelled_s < kFar * usual.modelled_s;
}
double due(Estimate const& e, Estimate const& usual) {
  double times = e.expected_s / usual.expected_s;
  if (!e.settled) times = std::min(times, kFar);
  return static_cast<double>(e.idle) / (times * times);
}
// What it should take more than the usual one. What was measured may have been disturbed.
double cost_s(Estimate const& e, Estimate const& usual) {
  double const most = e.measured_s > 0 ? kDisturbed * usual.expected_s : e.expected_s;
  return static_cast<double>(sums_of_try(e.expected_s)) * (std::min(e.expected_s, most) - usual.expected_s);
}
// So many sums are chosen for at most between a sum and the first choice that knows how long it took.
constexpr std::uint64_t kLate = 2;

}  // namespace

Estimate const* Tries::worth_a_try(std::vector<Estimate> const& all) const {
  Estimate const& usual = all.front();
  if (usual.measured_s == 0) return nullptr;  // nothing can be compared with it
  Estimate const* hopeful = nullptr;
  Estimate const* seldom = nullptr;
  for (Estimate const& e : all) {
    if (&e == &usual || spent_s_ + cost_s(e, usual) > most_s(total_s_)) continue;
    bool const may_be_faster = !e.settled && e.hoped_s < usual.expected_s;
    if (may_be_faster && (hopeful == nullptr || e.hoped_s < hopeful->hoped_s)) hopeful = &e;
    if (may_have_chances(e, usual) && (seldom == nullptr || due(e, usual) > due(*seldom, usual))) seldom = &e;
  }
  return hopeful != nullptr || sums_ < next_ ? hopeful : seldom;
}

bool Tries::begin(std::vector<Estimate> const& all) {
  Estimate const* const other = worth_a_try(all);
  if (other == nullptr) return false;
  tried_ = other->way;
  each_ = sums_of_try(other->expected_s);
  was_disturbed_ = false;
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
      left_ = each_ - (last_ == all.front().way ? std::min(on_end_, each_) : 0);
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
  Way const* const taken = leg_ == Leg::kTry ? tried_ : all.front().way;
  Estimate chosen = *std::find_if(all.begin(), all.end(), [&](Estimate const& e) { return e.way == taken; });
  chosen.is_compared = leg_ != Leg::kNone;
  return chosen;
}

void Tries::learn(Told const& sum, Estimate const& usual) {
  ++told_;
  sums_ += std::min(sum.stands_for, kEvery);
  bool const goes_on = sum.way == last_ && sum.stands_for == 1 && sum.right_after;
  on_end_ = goes_on ? on_end_ + 1 : 1;
  last_ = sum.way;
  double const most = kDisturbed * usual.expected_s;
  double const others = static_cast<double>(sum.stands_for - 1);  // which what disturbed this one may not have met
  if (sum.way == usual.way) {
    total_s_ += sum.seconds + others * std::min(sum.seconds, most);
    return;
  }
  total_s_ += usual.expected_s;  // the rest is spent
  bool const is_disturbed = sum.seconds > most && !std::exchange(was_disturbed_, true);
  double const more_s = std::max((is_disturbed ? most : sum.seconds) - usual.expected_s, 0.);
  spent_s_ += more_s;
  bool const is_too_slow = more_s > 0 && spent_s_ > most_s(total_s_);
  if (leg_ == Leg::kTry && sum.way == tried_ && is_too_slow) left_ = 0;
}

}  // namespace gpups::comm
