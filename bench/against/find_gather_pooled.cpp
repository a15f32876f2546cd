// SPDX-License-Identifier: Apache-2.0
// Compares a look-up by key with one whose row numbers are known, which shows the cost of a dynamic table over a static
// one. 26 tables of 100,000 rows, alternately of dim 128 and 16; a million entries in bags of one to seven, which are
// summed. Keys are drawn with popularity 1 / (k + 1), or uniformly, in which case most rows and buckets are read from
// memory.
#include <memory>

#include "bench/against/races.hpp"
#include "kernels/index/key_index.hpp"
#include "kernels/pool/pool.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::bench {
namespace {

constexpr std::size_t kTables = 26, kRows = 100'000, kEntries = 1'000'000 / kTables;

struct Table {
  kernels::KeyIndex index;
  kernels::RowStorage<float> rows;
  Array<Key> keys;
  Array<std::uint32_t> ids, offsets;
  Matrix<float> out;
};

enum class Keys { kZipf, kUniform };

Table table(Stream& stream, std::size_t dim, Keys keys, std::uint64_t seed) {
  test::Random random(seed);
  Table t;
  t.index = kernels::KeyIndex(stream.device(), kRows);
  auto const all = to_device(stream, test::distinct_keys(kRows));
  Array<std::uint32_t> all_ids(stream.device(), kRows);
  t.index.wait_find_or_insert(stream, all, all_ids);
  t.rows = kernels::RowStorage<float>(stream.device(), row_stride(dim), kernels::NewRows::kZero);
  t.rows.reserve(stream, kRows);

  std::vector<Key> drawn;
  if (keys == Keys::kZipf) drawn = test::zipf_keys(random, kEntries, kRows);
  while (drawn.size() < kEntries) drawn.push_back(test::scrambled(test::below(random, kRows)));
  std::vector<std::uint32_t> offsets{0};
  while (offsets.back() < kEntries) {
    auto const next = offsets.back() + 1 + static_cast<std::uint32_t>(test::below(random, 7));
    offsets.push_back(std::min(next, static_cast<std::uint32_t>(kEntries)));
  }
  t.keys = to_device(stream, drawn);
  t.ids = Array<std::uint32_t>(stream.device(), kEntries);
  t.index.find(stream, t.keys, t.ids);
  t.offsets = to_device(stream, offsets);
  t.out = Matrix<float>(stream.device(), offsets.size() - 1, dim);
  return t;
}

Race race(Stream& stream, Keys keys) {
  auto const tables = std::make_shared<std::vector<Table>>();
  auto const known = std::make_shared<std::vector<kernels::PooledTable>>();
  auto const searched = std::make_shared<std::vector<kernels::PooledTable>>();
  for (std::size_t t = 0; t < kTables; ++t) {
    Table const& one = tables->emplace_back(table(stream, t % 2 == 0 ? 128 : 16, keys, t));
    known->push_back({.rows = one.rows.const_ref(), .ids = one.ids, .offsets = one.offsets, .out = one.out});
    searched->push_back({.rows = one.rows.const_ref(),
                         .index = one.index.buckets(),
                         .keys = one.keys,
                         .offsets = one.offsets,
                         .out = one.out});
  }
  auto const pool = [tables, &stream](std::vector<kernels::PooledTable> const& all) {
    kernels::find_pooled(stream, {all});
    stream.wait();
  };
  double const entries = static_cast<double>(kTables * kEntries);
  return {"entries",
          {"find_gather_pooled", entries, [=] { pool(*searched); }},
          {"row numbers known before", entries, [=] { pool(*known); }}};
}

}  // namespace

Race find_gather_pooled_race(Stream& stream) { return race(stream, Keys::kZipf); }
Race find_gather_pooled_uniform_race(Stream& stream) { return race(stream, Keys::kUniform); }

}  // namespace gpups::bench
