// SPDX-License-Identifier: Apache-2.0
// New rows of many tables: keys are inserted with one wait, and rows are initialised in one launch for each data type.
// Repeated rows of many lists are found in one launch.
#include <deque>

#include "kernels/index/key_index.hpp"
#include "kernels/rows/check_rows.hpp"
#include "kernels/rows/init_rows.hpp"
#include "kernels/rows/number_type.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"
#include "tests/support/stream_calls.hpp"

namespace gpups::test::new_rows_test {
namespace {

using kernels::kNoRow;
using Ids = std::vector<std::uint32_t>;

class NewRows : public OnDevice {};

// A batch of keys for each of `count` indices. Keys repeat, and half of the indices have free numbers.
struct Batches {
  std::deque<kernels::KeyIndex> indices;
  std::vector<std::vector<Key>> keys;
  std::vector<Array<Key>> keys_there;
  std::vector<Array<std::uint32_t>> ids;
  std::vector<kernels::KeyIndex::Search> searches;

  Batches(Stream& stream, std::size_t count, std::size_t expected_keys) {
    Random random(count);
    for (std::size_t k = 0; k < count; ++k) {
      auto& index = indices.emplace_back(stream.device(), expected_keys, kernels::Growth::kByMoving);
      auto const old = to_device(stream, distinct_keys(20, 0));
      Array<std::uint32_t> const old_ids(stream.device(), 20);
      index.wait_find_or_insert(stream, old, old_ids);
      if (k % 2 == 1) index.wait_erase(stream, old.view().slice(3, 9));
      std::size_t const n = std::array{40, 0, 300, 1}[k % 4];
      std::vector<Key> batch;
      for (std::size_t i = 0; i < n; ++i) batch.push_back(scrambled(below(random, k % 3 == 0 ? 20 : 90)));
      keys.push_back(batch);
      keys_there.push_back(to_device(stream, batch));
      ids.emplace_back(stream.device(), n);
      searches.push_back({&index, keys_there.back(), ids.back()});
    }
  }
};

TEST_P(NewRows, InsertsKeysOfManyIndicesWithOneWait) {
  for (std::size_t const expected_keys : {1000, 10}) {  // with 10, the indices grow
    for (std::size_t const count : {1, 2, 40}) {
      Stream stream(GetParam(), 3), host(Device::host(), 1);
      Batches together(stream, count, expected_keys), apart(host, count, expected_keys);
      auto const missing = kernels::KeyIndex::wait_find_missing(stream, together.searches);
      std::vector<kernels::KeyIndex::Insertion> insertions;
      for (std::size_t k = 0; k < count; ++k) {
        insertions.push_back({&together.indices[k], together.keys_there[k], together.ids[k], missing[k]});
      }
      StreamCallCounter const counter(stream);
      auto const new_ids = kernels::KeyIndex::wait_insert(stream, insertions);
      if (expected_keys == 1000 && !GetParam().is_host()) {
        EXPECT_LE(counter.calls().waits, 1U);
        EXPECT_LE(counter.calls().launches, 5U);
        EXPECT_LE(counter.calls().host_copies, 3U);
      }
      for (std::size_t k = 0; k < count; ++k) {
        auto& index = apart.indices[k];
        auto const expected = index.wait_find_or_insert(host, apart.keys_there[k], apart.ids[k]);
        EXPECT_EQ(to_host(stream, new_ids[k].view()), to_host(host, expected.view())) << k << " of " << count;
        EXPECT_EQ(to_host(stream, together.ids[k].view()), to_host(host, apart.ids[k].view())) << k;
        EXPECT_EQ(together.indices[k].size(), index.size());
        EXPECT_EQ(together.indices[k].ids_end(), index.ids_end());
        EXPECT_EQ(to_host(stream, together.indices[k].keys(), index.ids_end()),
                  to_host(host, index.keys(), index.ids_end()));
        Array<std::uint32_t> const found(stream.device(), together.keys[k].size());
        together.indices[k].find(stream, together.keys_there[k], found);
        EXPECT_EQ(to_host(stream, found.view()), to_host(host, apart.ids[k].view())) << k;
      }
    }
  }
}

// Tables of several dims, data types and initializers, of which some rows are new.
struct InitialisedTables {
  static constexpr std::size_t kRows = 40;
  std::vector<kernels::ValueStorage> values;
  std::vector<kernels::RowStorage<float>> state;
  std::vector<kernels::RowStorage<std::uint64_t>> keys;
  std::vector<Array<std::uint32_t>> ids;
  std::vector<kernels::InitRows> tables;

  InitialisedTables(Stream& stream, std::size_t count) {
    Random random(count);
    std::vector<std::uint64_t> numbers;
    for (auto const key : distinct_keys(kRows)) numbers.push_back(number(key));
    for (std::size_t t = 0; t < count; ++t) {
      std::size_t const dim = std::array{16, 3, 40, 1}[t % 4],
                        columns = std::array{0, 1, 20}[t % 3 == 0 ? 0 : t % 2 + 1];
      values.emplace_back(stream.device(), dim, static_cast<DataType>(t % 3));
      values.back().reserve(stream, kRows);
      auto const rows_there = values.back().ref();
      each_chunk(stream, rows_there.as<std::byte>(), 1, [&](std::size_t, View<std::byte> chunk) {
        memory::fill_bytes(stream, chunk.data(), 0xAA,
                           kRows * rows_there.stride * kernels::bytes_of_number(rows_there.type));
      });
      state.push_back(rows(stream, std::vector<float>(kRows * columns, 7), kRows, columns));
      keys.push_back(rows(stream, numbers, kRows, 1));
      ids.push_back(to_device(stream, distinct_ids(random, t % 5 == 2 ? 0 : below(random, kRows), kRows)));
      tables.push_back({.ids = ids.back(),
                        .keys = {},
                        .values = rows_there,
                        .state = state.back().ref(),
                        .dim = dim,
                        .state_columns = columns,
                        .initializer = {Initializer::Kind::kUniform, 0.5F},
                        .accumulators = columns / 2,
                        .initial_accumulator = 0.25F,
                        .seed = t,
                        .key_of_id = keys.back().const_ref()});
    }
  }
  std::vector<std::byte> bytes(Stream& stream, std::size_t t) const {
    auto const& table = tables[t];
    std::vector<std::byte> all(kRows * table.values.stride * kernels::bytes_of_number(table.values.type));
    each_chunk(stream, table.values.as<std::byte>(), 1, [&](std::size_t, View<std::byte> chunk) {
      memory::copy(stream, all.data(), Device::host(), chunk.data(), stream.device(), all.size());
    });
    if (table.state_columns == 0) return all;
    auto const states = to_host(stream, table.state, kRows);
    auto const* const from = reinterpret_cast<std::byte const*>(states.data());
    all.insert(all.end(), from, from + states.size() * sizeof states[0]);
    return all;
  }
};

TEST_P(NewRows, InitialisesRowsOfManyTables) {
  for (std::size_t const count : {1, 26}) {
    Stream stream(GetParam(), 3), host(Device::host(), 1);
    InitialisedTables const together(stream, count), apart(host, count);
    StreamCallCounter const counter(stream);
    kernels::init_rows(stream, together.tables);
    std::uint64_t const types = count == 1 ? 1 : 3;
    EXPECT_EQ(counter.calls(),
              (GetParam().is_host() ? StreamCalls{1, 0, 0} : StreamCalls{types, 0, count == 1 ? 0U : 3U}));
    for (std::size_t t = 0; t < count; ++t) {
      auto table = apart.tables[t];  // with the keys as a list
      std::vector<Key> keys;
      auto const numbers = to_host(host, table.key_of_id, InitialisedTables::kRows);
      for (auto const id : to_host(host, table.ids)) keys.push_back(Key{numbers[id]});
      table.keys = View<Key const>(keys);
      kernels::init_rows(host, table);
      EXPECT_EQ(together.bytes(stream, t), apart.bytes(host, t)) << t << " of " << count;
    }
  }
}

TEST_P(NewRows, FindsRepeatedIdsOfManyLists) {
  for (std::size_t const count : {1, 2, 60}) {
    Stream stream(GetParam(), 3);
    Random random(count);
    auto const marks = rows(stream, std::vector<std::uint64_t>(500, 0), 500, 1);  // all lists are of one table
    Array<std::uint32_t> const repeated(stream.device(), count);
    memory::fill_bytes(stream, repeated.data(), 0xFF, repeated.bytes());
    std::vector<Array<std::uint32_t>> there;
    std::vector<kernels::RepeatedIds> lists;
    Ids expected;
    for (std::size_t k = 0; k < count; ++k) {
      Ids ids = distinct_ids(random, below(random, 300), 500);
      expected.push_back(kNoRow);
      for (std::size_t n = k % 3; n > 0 && ids.size() > 1; --n) {
        std::uint32_t const id = ids[below(random, ids.size())];
        ids.insert(ids.begin() + static_cast<std::ptrdiff_t>(below(random, ids.size())), id);
        expected[k] = std::min(expected[k], id);
      }
      there.push_back(to_device(stream, ids));
      lists.push_back({there.back(), marks.ref(), static_cast<std::uint32_t>(k + 1), repeated.view().slice(k, 1)});
    }
    StreamCallCounter const counter(stream);
    kernels::repeated_ids(stream, lists);
    EXPECT_EQ(counter.calls(), (StreamCalls{1, 0, GetParam().is_host() || count == 1 ? 0U : 1U}));
    EXPECT_EQ(to_host(stream, repeated.view()), expected) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, NewRows, kDevices, device_name);

}  // namespace
}  // namespace gpups::test::new_rows_test
