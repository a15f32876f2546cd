// SPDX-License-Identifier: Apache-2.0
// Ranks that push whole-number gradients to a table with residuals. Rows must become minus the sum of all gradients.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
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

// Pushes this rank's gradients of a step, and ends the step. poison: the first gradient is NaN.
inline void bring(Store& store, Workload const& work, int step, std::vector<Part> const& parts, bool poison) {
  int const rank = static_cast<int>(number(store.rank()));
  if (is_idle(work, step, rank)) {
    store.advance_clock();
  } else {
    auto stream = store.make_stream();
    std::vector<std::vector<Key>> keys;
    std::vector<Matrix<float>> sources;
    std::vector<TableBatch> tables;
    std::vector<TableGradients> gradients;
    for (auto const& part : parts) {
      auto& of_part = keys.emplace_back();
      auto& rows = sources.emplace_back(Device::host(), part.size(), kDim);
      for (std::size_t e = 0; e < part.size(); ++e) {
        of_part.push_back(part[e].key);
        std::copy(part[e].amounts.begin(), part[e].amounts.end(), rows.row(e).begin());
      }
      if (poison && !part.empty()) rows.row(0)[0] = std::numeric_limits<float>::quiet_NaN();
    }
    for (std::size_t p = 0; p < parts.size(); ++p) {
      tables.push_back({.table = TableId{0}, .keys = View<Key const>(keys[p])});
      gradients.push_back({.sources = sources[p]});
    }
    auto const batch = store.prepare(stream, store.clock(), tables, rank == 0 ? kSamples : 0);
    store.wait_ready(batch);
    store.push(stream, batch, gradients);
    store.advance_clock();
  }
}

// Runs one step of this rank. Returns whether it was rejected.
inline bool step(Store& store, Workload const& work, int step, std::vector<Part> const& parts, bool poison) {
  bring(store, work, step, parts, poison);
  try {
    store.wait_applied();
  } catch (GradientError const&) {
    return true;
  }
  return false;
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
};

inline Outcome train(std::vector<Group> const& group, Workload const& work) {
  Outcome outcome;
  run_ranks(group, [&](Group mine) {
    Store store(mine, {.threads = 1});
    store.add_table(table(work.gradient_compression));
    int const rank = static_cast<int>(number(store.rank()));
    Sums sums;
    int rejected = 0;
    for (int s = 0; s < work.steps; ++s) {
      bool bad = is_rejected(work, s);
      auto const own = parts_of(work, s, rank);
      bad = step(store, work, s, own, bad && rank == 0);
      rejected += bad ? 1 : 0;
      for (int q = 0; q < work.ranks && !bad; ++q) {
        if (!is_idle(work, s, q)) add(sums, parts_of(work, s, q));
      }
    }
    std::size_t const before = wrong_numbers(store, sums);
    store.flush_residuals();
    store.advance_clock();
    store.wait_applied();
    std::size_t const after = wrong_numbers(store, sums);
    if (rank == 0) outcome = {before, after, store.stats().sent.gradients, rejected};
  });
  return outcome;
}

}  // namespace gpups::test::residuals
