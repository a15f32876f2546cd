// SPDX-License-Identifier: Apache-2.0
#include "clicks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace {

constexpr std::uint64_t kContexts = 12;
constexpr std::uint64_t kItemsAtOnce = 300, kStepsPerItem = 3;
constexpr std::uint64_t kUsersAtOnce = 2000, kUsersPerStep = 20;
constexpr std::uint64_t kShownOnce = std::uint64_t{1} << 40;  // items from this number on are shown once
constexpr std::size_t kTastes = 4;

// Random numbers as a function of `what` and `which` (the generator is SplitMix64).
class Random {
 public:
  Random(char what, std::uint64_t which) : state_(mix(mix(static_cast<std::uint64_t>(what)) ^ which)) {}

  std::uint64_t bits() { return mix(state_ += 0x9E3779B97F4A7C15U); }
  std::uint64_t below(std::uint64_t end) { return bits() % end; }
  float uniform() { return static_cast<float>(bits() >> 40) * 0x1p-24F; }  // in [0, 1)
  float normal() {
    float const radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi_v<float> * uniform());
  }

 private:
  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
  }
  std::uint64_t state_;
};

// The properties of an item, on which clicks depend.
struct Item {
  std::array<float, kTastes> taste{};
  float price = 0;
};
Item planted_item(std::uint64_t number) {
  Item item;  // an item that is shown once has no properties, since no model can learn them
  if (number >= kShownOnce) return item;
  Random random('i', number);
  for (float& x : item.taste) x = random.normal();
  item.price = 2 * random.uniform() - 1;
  return item;
}

std::uint64_t live_item(std::int64_t step, Random& random) {
  return static_cast<std::uint64_t>(step) / kStepsPerItem + random.below(kItemsAtOnce);
}

// habit: how often the user clicks. The history has items that were shown in the user's first step.
struct User {
  float habit;
  std::vector<Liked> history;
};
User planted_user(std::uint64_t number) {
  Random random('u', number);
  std::uint64_t const came = number < kUsersAtOnce ? 0 : (number - kUsersAtOnce) / kUsersPerStep;
  User user{0.4F * random.normal(), std::vector<Liked>(1 + random.below(5))};
  for (Liked& liked : user.history) {
    liked = {live_item(static_cast<std::int64_t>(came), random), 0.5F + random.uniform()};
  }
  return user;
}

// A click is likely if the item is similar to those in the history, and not more expensive than the context's budget.
float planted_logit(User const& user, std::uint64_t context, std::uint64_t shown) {
  Item const item = planted_item(shown);
  float alike = 0;
  for (Liked const& liked : user.history) {
    Item const other = planted_item(liked.item);
    for (std::size_t j = 0; j < kTastes; ++j) alike += liked.weight * other.taste[j] * item.taste[j];
  }
  alike /= static_cast<float>(user.history.size());
  float const budget = 2 * (static_cast<float>(context) + 0.5F) / kContexts - 1;
  return 0.3F + user.habit + alike - 2 * std::max(0.0F, item.price - budget);
}

}  // namespace

Impression make_impression(std::int64_t step, std::size_t number) {
  std::uint64_t const place = static_cast<std::uint64_t>(step) * kBatch + number;
  Random random('e', place);
  std::uint64_t const user = static_cast<std::uint64_t>(step) * kUsersPerStep + random.below(kUsersAtOnce);
  std::uint64_t const context = random.below(kContexts);
  std::uint64_t const item = random.below(50) == 0 ? kShownOnce + place : live_item(step, random);
  User planted = planted_user(user);
  float const logit = planted_logit(planted, context, item);
  bool const clicked = random.uniform() < 1 / (1 + std::exp(-logit));
  return {{user, context, std::move(planted.history)}, item, clicked, logit};
}

std::uint64_t make_item(std::int64_t step, std::size_t number) {
  Random random('s', static_cast<std::uint64_t>(step) * kBatch + number);
  return live_item(step, random);
}

std::size_t users_until(std::int64_t step) { return kUsersAtOnce + static_cast<std::size_t>(step) * kUsersPerStep; }
