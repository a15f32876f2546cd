// SPDX-License-Identifier: Apache-2.0
// Batches with parts of many tables, on one rank and on several.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "gpups/store.hpp"
#include "tests/cache/cluster.hpp"

namespace gpups::test {
namespace {

// Trains with batches of 40 tables. Tables and ranks share keys, some tables have no keys in a step, one table has two
// parts, and only some tables get new keys. Returns the table hash of each rank.
std::vector<std::uint64_t> hashes_of_many_tables(int ranks, bool last_table_first) {
  constexpr std::uint32_t kSchema = 40;
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(ranks));
  run_ranks(ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks), [&](Group group) {
    Store store(group, {});
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
  EXPECT_EQ(hashes_of_many_tables(3, false), std::vector(3, hash));
}

}  // namespace
}  // namespace gpups::test
