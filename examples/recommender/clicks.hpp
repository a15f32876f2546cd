// SPDX-License-Identifier: Apache-2.0
// The data: an endless stream of impressions whose truth is planted, so that the best possible predictions are known.
//
// Users and items come and go: an item is shown for 900 steps, a user stays for 100, and one impression in fifty shows
// an item that is never seen again. A step's impressions are a function of its number, so every rank makes its own part
// of them, and nothing is read or sent.
#pragma once

#include <cstdint>
#include <vector>

// An item that a user liked before, and how much.
struct Liked {
  std::uint64_t item;
  float weight;
};

// Somebody who could be shown something: a user with their history, in a context (the hour of the day, perhaps).
struct Visit {
  std::uint64_t user, context;
  std::vector<Liked> history;  // 1 to 5
};

// A user was shown an item, and clicked on it or not.
struct Impression {
  Visit visit;
  std::uint64_t item;
  bool clicked;
  float logit;  // of the planted probability of a click: what a model would have to find
};

inline constexpr std::size_t kBatch = 2048;  // impressions of a step, over all ranks

// number < kBatch.
Impression make_impression(std::int64_t step, std::size_t number);
// An item that may be shown at a step.
std::uint64_t make_item(std::int64_t step, std::size_t number);
// How many users the stream has had by a step.
std::size_t users_until(std::int64_t step);
