// SPDX-License-Identifier: Apache-2.0
// Many segments in one launch: the host and a GPU give the results of one call for each segment, and the number of
// launches, waits and copies does not depend on the number of segments.
#include "kernels/runtime/segments.hpp"

#include <deque>
#include <limits>

#include "kernels/index/key_index.hpp"
#include "kernels/pool/pool.hpp"
#include "kernels/rows/copy_rows.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/sum/sum_gradients.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"
#include "tests/support/stream_calls.hpp"

namespace gpups::test::segments_test {
namespace {

using Ids = std::vector<std::uint32_t>;
using kernels::kNoRow;

// Sizes of segments: none, one, and more than the threads of a block.
std::size_t size_of(std::size_t segment) { return std::array{3, 0, 33, 1, 300, 0, 64}[segment % 7]; }

class Segments : public OnDevice {};

TEST_P(Segments, FindKeysOfManyIndicesInOneLaunch) {
  for (std::size_t const count : {1, 2, 40, 100}) {
    Stream stream(GetParam(), 3);
    std::deque<kernels::KeyIndex> indices;
    std::vector<Array<Key>> keys;
    std::vector<Array<std::uint32_t>> ids;
    std::vector<kernels::KeyIndex::Search> searches;
    for (std::size_t k = 0; k < count; ++k) {
      auto& index = indices.emplace_back(stream.device(), 1000, kernels::Growth::kByMoving);
      // Every third key is absent.
      auto all = distinct_keys(size_of(k) + k, 1000 * k);
      auto present = all;
      for (std::size_t i = all.size(); i-- > 0;) {
        if (i % 3 == 1) present.erase(present.begin() + static_cast<std::ptrdiff_t>(i));
      }
      auto const there = to_device(stream, present);
      Array<std::uint32_t> const inserted(stream.device(), present.size());
      index.wait_find_or_insert(stream, there, inserted);
      keys.push_back(to_device(stream, all));
      ids.emplace_back(stream.device(), all.size());
      searches.push_back({&index, keys.back(), ids.back()});
    }
    StreamCallCounter const counter(stream);
    kernels::KeyIndex::find(stream, searches);
    std::uint64_t const copies = GetParam().is_host() || count == 1 ? 0 : 1;
    EXPECT_EQ(counter.calls(), (StreamCalls{1, 0, copies})) << count;
    std::vector<std::uint32_t> absent(count, 0);
    for (std::size_t k = 0; k < count; ++k) {
      auto const found = to_host(stream, ids[k].view());
      std::uint32_t present = 0;
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i], i % 3 == 1 ? kNoRow : present) << k << ", " << i;
        (i % 3 == 1 ? absent[k] : present) += 1;
      }
    }
    if (GetParam().is_host()) continue;  // there, lists with many new keys are not searched
    EXPECT_EQ(kernels::KeyIndex::wait_find_missing(stream, searches), absent);
  }
}

// Gradients of `count` tables. Some rows have so many entries that several teams sum them.
struct SummedTables {
  std::vector<Array<std::uint32_t>> words;
  std::vector<Matrix<float>> sources;
  std::vector<Matrix<std::int64_t>> sums;
  Array<std::uint32_t> bad_rows;
  std::vector<kernels::SumGradients> parts;

  SummedTables(Stream& stream, std::size_t count) {
    Random random(count);
    bad_rows = to_device(stream, std::vector<std::uint32_t>(count, kNoRow));
    words.reserve(2 * count);
    for (std::size_t t = 0; t < count; ++t) {
      std::size_t const rows = size_of(t), dim = std::array{16, 3, 70, 1}[t % 4];
      std::vector<std::uint32_t> offsets{0}, order;
      for (std::size_t r = 0; r < rows; ++r) {
        std::size_t const entries = below(random, 40) == 0 ? 700 : below(random, 4);
        offsets.push_back(offsets.back() + static_cast<std::uint32_t>(entries));
      }
      std::size_t const n = offsets.back();
      order = distinct_ids(random, n, n);
      auto values = floats(random, n, dim);
      if (t % 8 == 2 && n > 0) values[n / 2 * row_stride(dim)] = std::numeric_limits<float>::infinity();
      sources.push_back(matrix(stream, values, n, dim));
      sums.emplace_back(stream.device(), rows, dim);
      words.push_back(to_device(stream, offsets));
      words.push_back(to_device(stream, order));
      parts.push_back({.offsets = words[2 * t],
                       .order = words[2 * t + 1],
                       .sources = {},
                       .source_rows = sources.back(),
                       .coefficients = {},
                       .grid_log2 = -30 - static_cast<int>(t % 3),
                       .sums = sums.back(),
                       .bad_row = bad_rows.view().slice(t, 1)});
    }
  }
};

TEST_P(Segments, SumGradientsOfManyTablesInThreeLaunches) {
  for (std::size_t const count : {1, 2, 40}) {
    Stream stream(GetParam(), 3), host(Device::host(), 1);
    SummedTables const together(stream, count), apart(host, count);
    StreamCallCounter const counter(stream);
    kernels::sum_gradients(stream, together.parts);
    EXPECT_LE(counter.calls().launches, 3U);
    EXPECT_EQ(counter.calls().waits, 0U);
    EXPECT_LE(counter.calls().host_copies, 1U);
    for (auto const& part : apart.parts) kernels::sum_gradients(host, part);
    auto const bad_rows = to_host(host, apart.bad_rows.view());
    EXPECT_EQ(to_host(stream, together.bad_rows.view()), bad_rows);
    for (std::size_t t = 0; t < count; ++t) {
      if (bad_rows[t] != kNoRow) continue;  // the sums of that row are undefined
      EXPECT_EQ(to_host(stream, together.sums[t].view().flat()), to_host(host, apart.sums[t].view().flat())) << t;
    }
  }
}

// Rows of `count` tables that are read as floats, by number.
struct ReadTables {
  std::vector<kernels::RowStorage<float>> tables;
  std::vector<Array<std::uint32_t>> ids;
  std::vector<Matrix<float>> gathered, pooled;
  std::vector<kernels::Gather> gathers;
  std::vector<kernels::PooledTable> pools;

  ReadTables(Stream& stream, std::size_t count) {
    Random random(count);
    constexpr std::size_t kRows = 400;
    for (std::size_t t = 0; t < count; ++t) {
      std::size_t const n = size_of(t), dim = std::array{16, 3, 70, 1, 128}[t % 5], stride = row_stride(dim);
      tables.push_back(rows(stream, floats(random, kRows, dim), kRows, stride));
      ids.push_back(to_device(stream, distinct_ids(random, n, kRows)));
      for (auto* const out : {&gathered, &pooled}) {
        out->emplace_back(stream.device(), n, dim);
        memory::fill_bytes(stream, out->back().view().data(), 0xAA, out->back().view().flat().bytes());
      }
      gathers.push_back({tables.back().const_ref(), ids.back(), gathered.back()});
      pools.push_back({.rows = tables.back().const_ref(), .ids = ids.back(), .out = pooled.back()});
    }
  }
};

TEST_P(Segments, ReadRowsOfManyTablesInOneLaunch) {
  for (std::size_t const count : {1, 3, 40}) {
    Stream stream(GetParam(), 3), host(Device::host(), 1);
    ReadTables const together(stream, count), apart(host, count);
    StreamCallCounter const counter(stream);
    kernels::gather(stream, together.gathers);
    EXPECT_EQ(counter.calls().launches, 1U);
    kernels::find_pooled(stream, {together.pools});
    EXPECT_EQ(counter.calls().launches, 2U);
    EXPECT_EQ(counter.calls().waits, 0U);
    for (std::size_t t = 0; t < count; ++t) {
      kernels::gather(host, apart.gathers[t]);
      kernels::find_pooled(host, {{&apart.pools[t], 1}});
      for (auto const matrices : {&ReadTables::gathered, &ReadTables::pooled}) {
        auto const bits = [t, matrices](Stream& on, ReadTables const& all) {
          auto const floats = (all.*matrices)[t].view().flat();
          return to_host(on, View<std::uint32_t const>(reinterpret_cast<std::uint32_t const*>(floats.data()),
                                                       floats.size(), floats.device()));
        };
        EXPECT_EQ(bits(stream, together), bits(host, apart)) << t << " of " << count;
      }
    }
  }
}

// Several lists have the same rows.
TEST_P(Segments, CountsOccurrencesOfManyLists) {
  constexpr std::size_t kRows = 100;
  for (std::size_t const count : {1, 2, 60}) {
    Stream stream(GetParam(), 3);
    Random random(count);
    Ids words;
    for (std::size_t row = 0; row < kRows; ++row) {
      words.push_back(std::array{0U, 5U, kernels::kWaiting + 2, kernels::kWaiting + kernels::kCountedMax - 3}[row % 4]);
      words.push_back(1);
    }
    auto const lifecycle = rows(stream, words, kRows, kernels::kLifecycleWords);
    std::vector<Array<std::uint32_t>> there;
    std::vector<Array<std::int64_t>> counts;
    std::vector<kernels::CountEntries> entries;
    std::vector<kernels::CountOccurrences> lists;
    for (std::size_t k = 0; k < count; ++k) {
      Ids const ids = distinct_ids(random, below(random, kRows), kRows);
      Ids offsets{0}, order;
      for (std::uint32_t i = 0; i < ids.size(); ++i) {
        offsets.push_back(offsets.back() + 1 + static_cast<std::uint32_t>(below(random, 3)));
        order.push_back(i);
        std::uint32_t& word = words[2 * ids[i]];
        if (kernels::exists(word)) continue;
        word = kernels::after_occurrences(word, offsets[i + 1] - offsets[i]);
        words[2 * ids[i] + 1] = 9;
      }
      for (Ids const* const made : std::initializer_list<Ids const*>{&ids, &offsets, &order})
        there.push_back(to_device(stream, *made));
      counts.emplace_back(stream.device(), ids.size());
    }
    for (std::size_t k = 0; k < count; ++k) {
      entries.push_back({there[3 * k + 1], there[3 * k + 2], counts[k]});
      lists.push_back({lifecycle.ref(), there[3 * k], there[3 * k + 1], 9, {}});
      if (k % 2 == 1) lists.back().counts = counts[k];
    }
    StreamCallCounter const counter(stream);
    kernels::count_entries(stream, entries);
    kernels::count_occurrences(stream, lists);
    EXPECT_EQ(counter.calls(), (StreamCalls{2, 0, GetParam().is_host() || count == 1 ? 0U : 2U}));
    EXPECT_EQ(to_host(stream, lifecycle.ref(), kRows), words) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Segments, kDevices, device_name);

}  // namespace
}  // namespace gpups::test::segments_test
