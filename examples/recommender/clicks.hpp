// SPDX-License-Identifier: Apache-2.0
// The data: an endless stream of synthetic impressions with known click probabilities, so that the best possible
// predictions are known.
//
// Users and items change: an item is shown for 900 steps, a user is active for 100, and one impression in fifty shows
// an item that is shown only once. The impressions of a step are a function of its number, so every rank computes its
// part of them, and nothing is read or sent.
#pragma once

#include <cstdint>
#include <vector>

// An item that a user has liked, and how much.
struct Liked {
  std::uint64_t item;
  float weight;
};

// A user with their history, in a context (the hour of the day, for example), to whom an item can be shown.
struct Visit {
  std::uint64_t user, context;
  std::vector<Liked> history;  // 1 to 5
};

// An item that was shown to a user, and whether the user clicked on it.
struct Impression {
  Visit visit;
  std::uint64_t item;
  bool clicked;
  float logit;  // of the true probability of a click
};

inline constexpr std::size_t kBatch = 2048;  // impressions of a step, over all ranks

// Returns an impression of a step. REQUIRES: number < kBatch.
Impression make_impression(std::int64_t step, std::size_t number);
// Returns an item that may be shown in a step.
std::uint64_t make_item(std::int64_t step, std::size_t number);
// Returns how many users the stream has had before a step.
std::size_t users_until(std::int64_t step);
