// SPDX-License-Identifier: Apache-2.0
// How well impressions were predicted before they were learnt from: an honest measure, since none comes twice.
#pragma once

#include <cstdint>

#include "clicks.hpp"
#include "gpups/gpups.hpp"

// One rank's sums over impressions. Losses are in units of 2^-30: sums of integers have no order, so every number of
// ranks prints the same digits.
struct Progress {
  std::int64_t loss = 0;   // of the model
  std::int64_t least = 0;  // of the planted probabilities: no model can have a smaller one
  std::int64_t clicks = 0, impressions = 0;
  std::int64_t requests = 0;  // answered meanwhile

  void add(Impression const& impression, float logit);
};

// The same over all ranks, per impression.
struct Report {
  double loss = 0, least = 0;
  double base = 0;  // of a model that knows the share of clicks only
  std::size_t requests = 0;
  std::size_t rows = 0;    // of all tables
  std::size_t places = 0;  // that are taken in memory, by keys that wait for admission and forgotten rows too

  // 1: as good as the truth; 0: as if there were no users and items.
  double learnt() const { return (base - loss) / (base - least); }
};
// Collective.
Report wait_report(gpups::Store& store, Progress const& mine);
