// SPDX-License-Identifier: Apache-2.0
// Ranks that push whole-number gradients to a table with residuals. Rows must become minus the sum of all gradients.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <random>

#include "gpups/gpups.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::test::residuals {
inline constexpr std::size_t kDim = 5;
inline constexpr int kSamples = 4;
using Sums = std::map<Key, std::vector<std::int64_t>>;  // of gradients, whole numbers, by column

// Values are exactly minus the sum of gradients divided by kSamples: all numbers are multiples of 2^-6 and below 2^17.
inline TableOptions table(RowCompression const& gradient_compression) {
  return {.name = "t",
          .dim = kDim,
          .initializer = {Initializer::Kind::kConstant, 0},
          .optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 1},
          .grid_log2 = -4,
          .gradient_compression = gradient_compression};
}

struct Workload {
  int ranks = 2;
  int steps = 30;
  std::uint64_t seed = 1;
  std::uint64_t keys = 40;
  int entries = 12;           // of a rank in a step, at most
  double idle_share = 0.2;    // of steps in which a rank other than 0 has no batch
  double rejected_share = 0;  // of steps that are rejected
  int parts = 2;              // of a batch, all of the same table
  RowCompression gradient_compression{};
  PlacementPolicy policy = PlacementPolicy::kStatic;
  int lookahead = 0;  // steps that batches are prepared ahead
};

struct Entry {
  Key key;
  std::vector<int> amounts;
};
using Part = std::vector<Entry>;

inline std::mt19937_64 generator(Workload const& work, int step, int rank, int what) {
  std::seed_seq sequence{work.seed, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(rank),
                         static_cast<std::uint64_t>(what)};
  return std::mt19937_64(sequence);
}
inline bool chance(Workload const& work, int step, int rank, int what, double share) {
  auto random = generator(work, step, rank, what);
  return static_cast<double>(random() % 1000) < 1000 * share;
}
inline bool is_idle(Workload const& work, int step, int rank) {
  return rank > 0 && chance(work, step, rank, 1, work.idle_share);
}
inline bool is_rejected(Workload const& work, int step) { return chance(work, step, 0, 2, work.rejected_share); }

// Returns the gradients of a rank in a step: small numbers, and sometimes a large one.
inline std::vector<Part> parts_of(Workload const& work, int step, int rank) {
  auto random = generator(work, step, rank, 3);
  std::vector<Part> parts(static_cast<std::size_t>(work.parts));
  for (auto& part : parts) {
    part.resize(random() % static_cast<unsigned>(work.entries + 1));
    for (auto& [key, amounts] : part) {
      key = Key{(random() % 2 == 0 ? random() % (work.keys / 8 + 1) : random() % work.keys) * 0x9E3779B97F4A7C15U};
      int const most = random() % 8 == 0 ? 400 : 9;
      for (std::size_t j = 0; j < kDim; ++j) {
        amounts.push_back(static_cast<int>(random() % static_cast<unsigned>(2 * most)) - most);
      }
    }
  }
  return parts;
}

inline void add(Sums& sums, std::vector<Part> const& parts) {
  for (auto const& part : parts) {
    for (auto const& [key, amounts] : part) {
      auto& sum = sums[key];
      sum.resize(kDim);
      for (std::size_t j = 0; j < kDim; ++j) sum[j] += amounts[j];
    }
  }
}

// Prepares this rank's batch of a step; nothing if it has none.
inline std::optional<PreparedBatch> prepare(Store& store, Workload const& work, int step,
                                            std::vector<Part> const& parts) {
  if (is_idle(work, step, static_cast<int>(number(store.rank())))) return std::nullopt;
  std::vector<std::vector<Key>> keys;
  std::vector<TableBatch> tables;
  for (auto const& part : parts) {
    auto& of_part = keys.emplace_back();
    for (auto const& entry : part) of_part.push_back(entry.key);
  }
  for (auto const& of_part : keys) tables.push_back({.table = TableId{0}, .keys = View<Key const>(of_part)});
  auto stream = store.make_stream();
  return store.prepare(stream, Clock{step}, tables, store.rank() == Rank{0} ? kSamples : 0);
}

// Pushes this rank's gradients of a step, if it has a batch, and ends the step. poison: the first gradient is NaN.
inline void bring(Store& store, std::optional<PreparedBatch> const& batch, std::vector<Part> const& parts,
                  bool poison) {
  if (batch) {
    auto stream = store.make_stream();
    std::vector<Matrix<float>> sources;
    std::vector<TableGradients> gradients;
    for (auto const& part : parts) {
      auto& rows = sources.emplace_back(Device::host(), part.size(), kDim);
      for (std::size_t e = 0; e < part.size(); ++e) {
        std::copy(part[e].amounts.begin(), part[e].amounts.end(), rows.row(e).begin());
      }
      if (poison && !part.empty()) rows.row(0)[0] = std::numeric_limits<float>::quiet_NaN();
    }
    for (auto const& rows : sources) gradients.push_back({.sources = rows});
    store.wait_ready(*batch);
    store.push(stream, *batch, gradients);
  }
  store.advance_clock();
}
inline void bring(Store& store, Workload const& work, int step, std::vector<Part> const& parts, bool poison) {
  bring(store, prepare(store, work, step, parts), parts, poison);
}

inline bool was_rejected(Store& store) {
  try {
    store.wait_applied();
  } catch (GradientError const&) {
    return true;
  }
  return false;
}

// Runs one step of this rank. Returns whether it was rejected.
inline bool step(Store& store, Workload const& work, int step, std::vector<Part> const& parts, bool poison) {
  bring(store, work, step, parts, poison);
  return was_rejected(store);
}

// Returns how many numbers of the table differ from the values that these sums give.
inline std::size_t wrong_numbers(Store& store, Sums const& sums) {
  auto stream = store.make_stream();
  std::vector<Key> keys;
  for (auto const& [key, sum] : sums) keys.push_back(key);
  Matrix<float> rows(Device::host(), keys.size(), kDim);
  store.lookup(stream, TableId{0}, View<Key const>(keys), rows, {});
  std::size_t wrong = 0, row = 0;
  for (auto const& [key, sum] : sums) {
    for (std::size_t j = 0; j < kDim; ++j) {
      wrong += static_cast<double>(rows.row(row)[j]) == static_cast<double>(-sum[j]) / kSamples ? 0 : 1;
    }
    ++row;
  }
  store.wait_barrier();
  return wrong;
}

struct Outcome {
  std::size_t wrong_before = 0, wrong = 0;  // wrong numbers before the residuals are flushed, and after
  std::uint64_t gradient_bytes = 0;         // of rank 0
  int rejected = 0;
  std::uint64_t moved = 0;  // rows that rank 0 has passed to others
};

inline Outcome train(std::vector<Group> const& group, Workload const& work) {
  Outcome outcome;
  run_ranks(group, [&](Group mine) {
    Store store(mine, {.threads = 1, .placement = work.policy, .placement_bytes_min = 0});
    store.add_table(table(work.gradient_compression));
    int const rank = static_cast<int>(number(store.rank()));
    Sums sums;
    int rejected = 0;
    std::deque<std::optional<PreparedBatch>> ahead;
    for (int s = 0, prepared = 0; s < work.steps; ++s) {
      for (; prepared < work.steps && prepared <= s + work.lookahead; ++prepared) {
        ahead.push_back(prepare(store, work, prepared, parts_of(work, prepared, rank)));
      }
      bring(store, ahead.front(), parts_of(work, s, rank), is_rejected(work, s) && rank == 0);
      ahead.pop_front();
      bool const bad = was_rejected(store);
      rejected += bad ? 1 : 0;
      for (int q = 0; q < work.ranks && !bad; ++q) {
        if (!is_idle(work, s, q)) add(sums, parts_of(work, s, q));
      }
    }
    std::size_t const before = wrong_numbers(store, sums);
    // Residuals of rows that are away from their homes reach their owners with the second step.
    for (int s = 0; s < (work.policy == PlacementPolicy::kStatic ? 1 : 2); ++s) {
      store.flush_residuals();
      store.advance_clock();
      store.wait_applied();
    }
    std::size_t const after = wrong_numbers(store, sums);
    if (rank == 0) outcome = {before, after, store.stats().sent.gradients, rejected, store.stats().moved_rows};
  });
  return outcome;
}

}  // namespace gpups::test::residuals
