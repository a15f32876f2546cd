// SPDX-License-Identifier: Apache-2.0
// Benchmarks the preparation of batches as in a store, on the cores that training uses too: batches of graphs, of
// matrix factorization and of recommenders.
//   prepare_bench --benchmark_filter=graph
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "cache/batch/prepared_batch.hpp"
#include "tests/support/inputs.hpp"

namespace gpups {
namespace {

struct PartSize {
  std::size_t entries, keys, bags = 0;
};

struct Batch {
  std::vector<std::vector<Key>> keys;
  std::vector<std::vector<std::uint32_t>> offsets;
  std::vector<TableBatch> tables;

  Batch(test::Random& random, std::vector<PartSize> const& sizes) : offsets(sizes.size()) {
    for (PartSize const& size : sizes) keys.push_back(test::zipf_keys(random, size.entries, size.keys));
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      for (std::size_t b = 0; sizes[p].bags > 0 && b <= sizes[p].bags; ++b) {
        offsets[p].push_back(static_cast<std::uint32_t>(sizes[p].entries * b / sizes[p].bags));
      }
      tables.push_back({TableId{static_cast<std::uint32_t>(p)}, keys[p], offsets[p]});
    }
  }
};

void prepare(benchmark::State& state, std::vector<PartSize> const& sizes, int threads, int ranks = 1) {
  constexpr std::size_t kBatches = 16;  // different ones in turn, since branch predictors learn repeated batches
  Stream stream(Device::host(), threads);
  test::Random random(1);
  std::vector<std::unique_ptr<Batch>> batches;
  for (std::size_t b = 0; b < kBatches; ++b) batches.push_back(std::make_unique<Batch>(random, sizes));
  std::size_t entries = 0, next = 0;
  for (PartSize const& size : sizes) entries += size.entries;
  for (auto _ : state) {
    auto const& tables = batches[next++ % kBatches]->tables;
    benchmark::DoNotOptimize(cache::wait_make_pattern(stream, tables, 1, ranks, tables.size()));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(entries));
}

// 4,096 triples with 6 + 6 negatives, and 200 relations.
std::vector<PartSize> const kGraph{{57344, 15000}, {4096, 200}};
std::vector<PartSize> const kTiny{{64, 100}, {64, 100}};
std::vector<PartSize> const kRelations{{4096, 200}};
std::vector<PartSize> const kFactors{{4096, 20000}, {4096, 2000}};
std::vector<PartSize> const kManyFactors{{16384, 20000}, {16384, 2000}};
std::vector<PartSize> const kTables(26, {4096, 3000});
std::vector<PartSize> const kPooledTables(26, {4096, 3000, 1024});
std::vector<PartSize> const kLarge{{1000000, 10000000}};

BENCHMARK_CAPTURE(prepare, tiny, kTiny, 2)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK_CAPTURE(prepare, relations, kRelations, 2)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK_CAPTURE(prepare, graph, kGraph, 2)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK_CAPTURE(prepare, graph_1_thread, kGraph, 1)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK_CAPTURE(prepare, graph_4_ranks, kGraph, 2, 4)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK_CAPTURE(prepare, factors_4096, kFactors, 2)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK_CAPTURE(prepare, factors_4096_1_thread, kFactors, 1)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK_CAPTURE(prepare, factors_16384, kManyFactors, 2)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK_CAPTURE(prepare, tables, kTables, 2)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK_CAPTURE(prepare, pooled_tables, kPooledTables, 2)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK_CAPTURE(prepare, million, kLarge, 2)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace gpups

BENCHMARK_MAIN();
