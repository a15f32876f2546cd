// SPDX-License-Identifier: Apache-2.0
// TableShard::wait_resolve() for many tables in one call: the same rows as with one call for each table. New keys get
// row numbers in the order of the keys.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <numeric>

#include "cache/rows/table_shard.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"

#ifdef __SANITIZE_ADDRESS__
extern "C" char const* __asan_default_options() { return "allocator_may_return_null=1"; }  // NOLINT: its name
#endif
#ifdef __SANITIZE_THREAD__
extern "C" char const* __tsan_default_options() { return "allocator_may_return_null=1"; }  // NOLINT: its name
#endif

namespace gpups::cache::find_or_insert_rows_test {
namespace {

using test::Random;
using Ids = std::vector<std::uint32_t>;

TableOptions options(std::size_t table) {
  return {.name = fmt::format("table {}", table),
          .dim = 1 + table % 5,
          .initializer = {Initializer::Kind::kUniform, 0.5F},
          .optimizer = {.kind = Optimizer::Kind::kAdagrad, .initial_accumulator = 0.25F}};
}

// The shards of one rank, and the expected row of each key.
struct Tables {
  Stream stream;
  std::vector<std::unique_ptr<TableShard>> shards{};
  std::vector<std::map<Key, std::uint32_t>> rows{};

  Tables(Device device, int threads, std::size_t count, std::size_t expected) : stream(device, threads), rows(count) {
    for (std::size_t t = 0; t < count; ++t) {
      shards.push_back(std::make_unique<TableShard>(options(t), 7, expected));
      shards.back()->allocate(device);
    }
  }
  // Returns the expected row of a key; a new key gets the next row.
  std::uint32_t row_of(std::size_t table, Key key) {
    return rows[table].try_emplace(key, static_cast<std::uint32_t>(rows[table].size())).first->second;
  }
};

// The keys of a batch for one table.
struct Part {
  std::size_t table;
  std::vector<Key> keys;
};

// Resolves the parts in one call, or with one call for each part.
std::vector<Ids> resolve(Tables& tables, std::vector<Part> const& parts, bool together) {
  std::vector<Array<Key>> keys;
  std::vector<Array<std::uint32_t>> ids;
  std::vector<TableShard::ShardKeys> all;
  for (auto const& part : parts) {
    keys.push_back(to_device(tables.stream, part.keys));
    ids.emplace_back(tables.stream.device(), part.keys.size());
  }
  for (std::size_t p = 0; p < parts.size(); ++p) all.push_back({tables.shards[parts[p].table].get(), keys[p], ids[p]});
  if (together) {
    TableShard::wait_resolve(tables.stream, all);
  } else {
    for (auto const& part : all) part.shard->wait_resolve(tables.stream, part.keys, part.ids);
  }
  std::vector<Ids> found;
  for (auto const& of_part : ids) found.push_back(to_host(tables.stream, of_part.view()));
  return found;
}

std::vector<Ids> rows_by_order(Tables& tables, std::vector<Part> const& parts) {
  std::vector<Ids> rows;
  for (auto const& part : parts) {
    Ids& of_part = rows.emplace_back();
    for (Key key : part.keys) of_part.push_back(tables.row_of(part.table, key));
  }
  return rows;
}

// Returns all bits of the reserved rows of a shard.
std::vector<std::uint32_t> bits_of(Tables& tables, std::size_t table) {
  auto& shard = *tables.shards[table];
  Ids all(shard.rows_reserved());
  std::iota(all.begin(), all.end(), 0);
  auto const piece = shard.wait_read(tables.stream, to_device(tables.stream, all), TableShard::Columns::kAll);
  std::vector<std::uint32_t> bits = to_host(tables.stream, piece.lifecycle.view());
  for (Key key : to_host(tables.stream, piece.keys.view())) bits.push_back(static_cast<std::uint32_t>(number(key)));
  for (float x : to_host(tables.stream, piece.values.view().flat())) bits.push_back(std::bit_cast<std::uint32_t>(x));
  for (float x : to_host(tables.stream, piece.state.view())) bits.push_back(std::bit_cast<std::uint32_t>(x));
  return bits;
}

// Returns random parts. Some tables have two parts, some parts have no keys. Few keys are new in some tables, nearly
// all in others. Tables share keys, and a part may repeat a key.
std::vector<Part> draw(Random& random, std::size_t tables, int batch) {
  std::vector<Part> parts;
  for (std::size_t t = 0; t < tables; ++t) {
    for (std::size_t left = test::below(random, 3); left > 0; --left) {
      Part& part = parts.emplace_back(Part{t, {}});
      std::size_t const count = t == 3 ? 20000 : t == 4 ? 3000 : test::below(random, 3) * 200;
      std::size_t const first = t % 3 == 0 ? static_cast<std::size_t>(batch) * count : 0;  // else few keys are new
      for (std::size_t i = 0; i < count; ++i)
        part.keys.push_back(test::scrambled(first + test::below(random, 2 * count)));
    }
  }
  return parts;
}

class Resolve : public test::OnDevice {};
INSTANTIATE_TEST_SUITE_P(, Resolve, test::kDevices, test::device_name);

TEST_P(Resolve, ManyTablesMatchOneByOne) {
  constexpr std::size_t kSchema = 40;  // more than fit in one launch
  for (int threads = 1; threads <= 3; ++threads) {
    Random random(static_cast<std::uint64_t>(threads));
    Tables together(GetParam(), threads, kSchema, 100), apart(GetParam(), 2, kSchema, 100);
    for (int batch = 0; batch < 6; ++batch) {
      auto const parts = draw(random, kSchema, batch);
      auto const want = rows_by_order(together, parts);
      EXPECT_EQ(resolve(together, parts, true), want);
      EXPECT_EQ(resolve(apart, parts, false), want);
    }
    std::size_t growths = 0;
    for (std::size_t t = 0; t < kSchema; ++t) {
      EXPECT_EQ(together.shards[t]->rows_reserved(), together.rows[t].size());
      EXPECT_EQ(together.shards[t]->growths(), apart.shards[t]->growths());
      EXPECT_EQ(bits_of(together, t), bits_of(apart, t));
      growths += together.shards[t]->growths();
    }
    EXPECT_GT(growths, kSchema / 2);
  }
}

// In a batch with few new keys all keys are searched before any is inserted; in a batch with many they are not.
TEST_P(Resolve, NewKeysGetNextRows) {
  Tables tables(GetParam(), 2, 3, 5000);
  std::vector<Part> parts{{0, {}}, {1, {}}, {2, {}}};
  for (std::uint64_t k = 0; k < 4000; ++k) {
    for (auto& part : parts) part.keys.push_back(test::scrambled(k + part.table));
  }
  for (int batch = 0; batch < 4; ++batch) {
    EXPECT_EQ(resolve(tables, parts, true), rows_by_order(tables, parts));
    // Another order, and some new keys in two of the tables, each twice and far apart.
    for (auto& part : parts) std::rotate(part.keys.begin(), part.keys.begin() + 1234, part.keys.end());
    for (std::uint64_t k = 0; k < 7; ++k) {
      Key const key = test::scrambled(10000 + 10 * static_cast<std::uint64_t>(batch) + k);
      for (std::size_t const p : {0U, 2U}) parts[p].keys[100 + 11 * k] = parts[p].keys[3900 - 50 * k] = key;
    }
  }
}

TEST_P(Resolve, AcceptsEmptyParts) {
  Tables tables(GetParam(), 2, 2, 10);
  EXPECT_EQ(resolve(tables, {}, true), std::vector<Ids>());
  EXPECT_EQ(resolve(tables, {{0, {}}, {1, {}}}, true), std::vector<Ids>(2));
  EXPECT_EQ(resolve(tables, {{0, {}}, {1, {Key{5}, Key{5}}}, {0, {}}}, true), (std::vector<Ids>{{}, {0, 0}, {}}));
}

// Later batches move keys to the larger index, even without new keys; then the smaller index is freed.
TEST_P(Resolve, IndexGrowthEndsWithoutNewKeys) {
  Tables tables(GetParam(), 2, 1, 100000);
  auto const from = [](std::uint64_t first) {
    std::vector<Key> keys;
    for (std::uint64_t k = 0; k < 1000; ++k) keys.push_back(test::scrambled(first + k));
    return keys;
  };
  for (std::uint64_t first = 0; tables.shards[0]->growths() == 0; first += 1000) {
    resolve(tables, {{0, from(first)}}, true);
  }
  auto const while_growing = memory::usage(GetParam()).bytes;
  for (int i = 0; i < 20; ++i) resolve(tables, {{0, from(0)}}, true);
  EXPECT_LT(memory::usage(GetParam()).bytes + 1000000, while_growing);
}

TEST_P(Resolve, ErrorNamesTableWithoutMemory) {
  Tables tables(GetParam(), 2, 3, 10);
  auto too_large = options(1);
  too_large.dim = std::size_t{1} << 33;  // a chunk of rows is larger than the address space
  tables.shards[1] = std::make_unique<TableShard>(too_large, 7, 10);
  tables.shards[1]->allocate(GetParam());
  std::vector<Part> const parts{{0, {Key{1}}}, {1, {Key{2}}}, {2, {Key{3}}}};
  test::expect_error([&] { resolve(tables, parts, true); },
                     {"new rows of table 'table 1' cannot be added", "no memory"});
}

}  // namespace
}  // namespace gpups::cache::find_or_insert_rows_test
