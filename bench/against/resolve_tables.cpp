// SPDX-License-Identifier: Apache-2.0
// Compares one call that finds the rows of a batch's keys in 26 tables with one call for each table. The tables have
// 100,000 rows; a batch has 4,000 keys of each, all known or a few of them new.
#include <fmt/core.h>

#include <memory>
#include <vector>

#include "bench/against/races.hpp"
#include "bench/against/random_key.hpp"
#include "cache/rows/table_shard.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::bench {
namespace {

using cache::TableShard;

constexpr std::size_t kTables = 26, kRows = 100000, kKeys = 4000;

// The tables and the batches of one side.
struct Tables {
  Stream& stream;
  std::size_t new_keys;  // for each table in each batch
  test::Random random{1};
  std::size_t count = kRows;  // number of existing keys
  std::vector<std::unique_ptr<TableShard>> shards{};
  std::vector<Key> keys = std::vector<Key>(kKeys);
  Array<Key> batch;
  std::vector<Array<std::uint32_t>> ids{};

  Tables(Stream& on, std::size_t new_keys_of_batch) : stream(on), new_keys(new_keys_of_batch) {
    std::vector<Key> all;
    for (std::size_t k = 0; k < kRows; ++k) all.push_back(random_key(k));
    batch = to_device(stream, all);
    Array<std::uint32_t> const rows(stream.device(), kRows);
    for (std::size_t t = 0; t < kTables; ++t) {
      TableOptions const options{.name = fmt::format("table {}", t), .dim = 16};
      shards.push_back(std::make_unique<TableShard>(options, 1, 2 * kRows));
      shards.back()->allocate(stream.device());
      shards.back()->wait_resolve(stream, batch, rows);
      ids.emplace_back(stream.device(), kKeys);
    }
  }
  void next() {
    for (std::size_t k = 0; k < kKeys; ++k) keys[k] = random_key(k < new_keys ? count++ : test::below(random, kRows));
    batch = to_device(stream, keys);
  }
  void together() {
    std::vector<TableShard::ShardKeys> parts;
    for (std::size_t t = 0; t < kTables; ++t) parts.push_back({shards[t].get(), batch, ids[t]});
    TableShard::wait_resolve(stream, parts);
  }
  void one_by_one() {
    for (std::size_t t = 0; t < kTables; ++t) shards[t]->wait_resolve(stream, batch, ids[t]);
  }
};

Race race_of(Stream& stream, std::size_t new_keys) {
  auto const ours = std::make_shared<Tables>(stream, new_keys), theirs = std::make_shared<Tables>(stream, new_keys);
  return {"keys",
          {"all tables at once", kTables * kKeys, [ours] { ours->together(); }, [ours] { ours->next(); }},
          {"one by one", kTables * kKeys, [theirs] { theirs->one_by_one(); }, [theirs] { theirs->next(); }}};
}

}  // namespace

Race resolve_known_race(Stream& stream) { return race_of(stream, 0); }
Race resolve_few_new_race(Stream& stream) { return race_of(stream, 40); }

}  // namespace gpups::bench
