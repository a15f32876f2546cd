// SPDX-License-Identifier: Apache-2.0
// Batches with parts of many tables, on one rank and on several.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "gpups/store.hpp"
#include "tests/cache/cluster.hpp"

namespace gpups::test::many_tables_test {
namespace {

// Trains with batches of 40 tables. Tables and ranks share keys, some tables have no keys in a step, one table has two
// parts, and only some tables get new keys. Returns the table hash of each rank.
std::vector<std::uint64_t> hashes_of_many_tables(int ranks, bool last_table_first, double replica_fraction = 0.1) {
  constexpr std::uint32_t kSchema = 40;
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(ranks));
  run_ranks(ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks), [&](Group group) {
    Store store(group, {.replica_fraction = replica_fraction});
    for (std::uint32_t t = 0; t < kSchema; ++t) {
      store.add_table({.name = fmt::format("table {}", t),
                       .dim = 1 + t % 3,
                       .initializer = {Initializer::Kind::kUniform, 0.5F},
                       .optimizer = {.kind = Optimizer::Kind::kAdagrad, .learning_rate = 0.1F}});
    }
    auto stream = store.make_stream();
    for (std::uint64_t s = 0; s < 6; ++s) {
      std::vector<std::vector<Key>> keys;
      std::vector<std::uint32_t> tables;
      for (std::uint32_t t = 0; t <= kSchema; ++t) {
        std::uint32_t const table = t == kSchema ? 3 : last_table_first ? kSchema - 1 - t : t;
        std::uint64_t const first = table % 4 == 1 ? 30 * s : table, count = table % 5 == s % 5 ? 0 : 60;
        std::vector<Key> mine;
        for (std::uint64_t k = 0; k < count; ++k) {
          if (k % static_cast<std::uint64_t>(ranks) == number(store.rank())) mine.push_back(Key{(first + k) * 7 % 400});
        }
        tables.push_back(table);
        keys.push_back(std::move(mine));
      }
      std::vector<TableBatch> parts;
      std::vector<Matrix<float>> sources;
      std::vector<TableGradients> gradients;
      for (std::size_t p = 0; p < keys.size(); ++p) {
        parts.push_back({.table = TableId{tables[p]}, .keys = View<Key const>(keys[p])});
        sources.emplace_back(Device::host(), keys[p].size(), 1 + tables[p] % 3);
        for (std::size_t i = 0; i < keys[p].size(); ++i) {
          std::ranges::fill(sources[p].row(i), static_cast<float>(number(keys[p][i])));
        }
      }
      for (auto const& of_part : sources) gradients.push_back({.sources = of_part});
      auto const batch = store.prepare(stream, store.clock(), parts, static_cast<std::size_t>(6 / ranks));
      store.wait_ready(batch);
      store.push(stream, batch, gradients);
      store.advance_clock();
    }
    hashes[number(store.rank())] = store.table_hash();
    store.wait_barrier();
  });
  return hashes;
}

TEST(ManyTables, BitsAreEqualForAnyOrderAndRanks) {
  auto const hash = hashes_of_many_tables(1, false)[0];
  EXPECT_EQ(hashes_of_many_tables(1, true), std::vector{hash});
  for (double const replica_fraction : {0.0, 0.01, 0.1, 1.0}) {
    EXPECT_EQ(hashes_of_many_tables(3, false, replica_fraction), std::vector(3, hash)) << replica_fraction;
  }
}

// Returns the most waits for a stream that a rank needs in a step with keys that it has used before.
std::uint64_t waits_of_step(int ranks, std::uint32_t tables) {
  constexpr std::int64_t kWarmUp = 4, kSteps = 5;
  std::vector<std::uint64_t> waits(static_cast<std::size_t>(ranks));
  run_ranks(Group::threads(ranks), [&](Group group) {
    Store store(group, {.replica_fraction = 1});
    std::vector<Key> keys;
    for (std::uint64_t k = 0; k < 50; ++k) keys.push_back(Key{k});
    std::vector<TableBatch> parts;
    for (std::uint32_t t = 0; t < tables; ++t) {
      auto const table = store.add_table({.name = fmt::format("table {}", t), .dim = std::size_t{4} << t % 3});
      parts.push_back({.table = table, .keys = View<Key const>(keys)});
    }
    auto stream = store.make_stream();
    auto batch = store.prepare(stream, store.clock(), parts, 1);
    std::vector<Matrix<float>> sources, rows;
    std::vector<TableGradients> gradients;
    std::vector<MatrixView<float>> pulled;
    for (std::uint32_t t = 0; t < tables; ++t) {
      sources.emplace_back(Device::host(), keys.size(), 4 << t % 3);
      for (std::size_t i = 0; i < keys.size(); ++i) std::ranges::fill(sources[t].row(i), 1.0F);
      pulled.push_back(rows.emplace_back(Device::host(), keys.size(), 4 << t % 3));
      gradients.push_back({.sources = sources[t], .source_max_abs = 1.0F});
    }
    std::uint64_t before = 0;
    for (std::int64_t s = 0; s < kWarmUp + kSteps; ++s) {
      if (s == kWarmUp) before = store.stats().stream_waits;
      auto const next = store.prepare(batch.pattern(), store.clock() + 1);
      store.wait_ready(batch);
      store.pull(stream, batch, pulled);
      store.push(stream, batch, gradients);
      store.advance_clock();
      store.wait_applied();
      batch = next;
    }
    waits[number(store.rank())] = (store.stats().stream_waits - before + kSteps - 1) / kSteps;
    store.wait_barrier();
  });
  return *std::max_element(waits.begin(), waits.end());
}

TEST(ManyTables, WaitsDoNotGrowWithTablesOrRanks) {
  EXPECT_LE(waits_of_step(2, 1), 6U);
  EXPECT_LE(waits_of_step(4, 30), 6U);
}

}  // namespace
}  // namespace gpups::test::many_tables_test
