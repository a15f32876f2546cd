// SPDX-License-Identifier: Apache-2.0
// Benchmarks steps of bilinear models with rows that are already pulled, and scoring for evaluation. The last argument
// of each is the number of threads.
#include <benchmark/benchmark.h>

#include "tests/support/model_fixture.hpp"

namespace gpups::bench {
namespace {

using namespace test;

constexpr std::size_t kEntities = 15000, kRelations = 237;

Matrix<float> random_matrix(std::size_t rows, std::size_t dim) {
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> uniform(-0.3F, 0.3F);
  Matrix<float> matrix(Device::host(), rows, dim);
  for (float& x : matrix.view().flat()) x = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    for (float& x : matrix.row(i)) x = uniform(random);
  }
  return matrix;
}

void step(benchmark::State& state, GraphModelOptions const& options, std::size_t samples, std::size_t microbatches,
          int threads) {
  auto const model = trainer::make_graph_model(options, make_vocabulary(kEntities, kRelations));
  auto const& bilinear = dynamic_cast<Bilinear const&>(*model);
  Stream stream(Device::host(), threads);
  GraphEntries const work = model->prepare(stream, make_batch(samples, microbatches, kEntities, kRelations));
  Distinct const e = distinct(work.parts[0]), r = distinct(work.parts[1]);
  Matrix<float> const entities = random_matrix(e.keys.size(), options.dim);
  Matrix<float> const relations = random_matrix(r.keys.size(), relation_dim(options));
  MatrixView<float const> const rows[] = {entities, relations};
  GraphGradients gradients;
  for (auto _ : state) bilinear.compute(stream, work, {e.positions, r.positions}, rows, gradients);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(samples));
}

void own_negatives(benchmark::State& state) {
  GraphModelOptions options;
  options.dim = 100, options.negatives = 6;
  if (state.range(1) == 1) options.loss = "softmax";
  if (state.range(2) == 1) options.l2 = 1e-3F;
  step(state, options, static_cast<std::size_t>(state.range(0)), 8, static_cast<int>(state.range(3)));
}
BENCHMARK(own_negatives)
    ->ArgNames({"samples", "softmax", "l2", "threads"})
    ->ArgsProduct({{4096}, {0, 1}, {0}, {1, 2}})
    ->Args({4096, 0, 1, 1})
    ->Args({4096, 0, 1, 2})
    ->Args({1024, 0, 0, 2})
    ->Args({16384, 0, 0, 2})
    ->UseRealTime();

void shared_negatives(benchmark::State& state) {
  GraphModelOptions options;
  options.dim = 200, options.negatives = 512, options.sampling = "shared", options.loss = "softmax";
  auto const samples = static_cast<std::size_t>(state.range(0));
  step(state, options, samples, 8, static_cast<int>(state.range(1)));
  double const products = 6.0 * 512 * 200 * static_cast<double>(samples);  // multiply-adds
  state.counters["GFMA/s"] =
      benchmark::Counter(products * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(shared_negatives)->ArgNames({"samples", "threads"})->ArgsProduct({{2048, 4096}, {1, 2}})->UseRealTime();

void prepare(benchmark::State& state) {
  GraphModelOptions options;
  auto const model = trainer::make_graph_model(options, make_vocabulary(kEntities, kRelations));
  Stream stream(Device::host(), static_cast<int>(state.range(0)));
  Batch const batch = make_batch(4096, 8, kEntities, kRelations);
  for (auto _ : state) benchmark::DoNotOptimize(model->prepare(stream, batch));
  state.SetItemsProcessed(state.iterations() * 4096);
}
BENCHMARK(prepare)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();

void score_all(benchmark::State& state) {
  GraphModelOptions options;
  options.dim = static_cast<std::size_t>(state.range(0));
  auto const queries = static_cast<std::size_t>(state.range(1));
  auto const model = trainer::make_graph_model(options, make_vocabulary(1, 1));
  Stream stream(Device::host(), static_cast<int>(state.range(2)));
  Matrix<float> const entities = random_matrix(kEntities, options.dim);
  Matrix<float> const relations = random_matrix(queries, options.dim);
  Matrix<float> const scores(Device::host(), queries, kEntities);
  for (auto _ : state) {
    model->score_all(stream, true, entities.view().slice(0, queries), relations, entities, scores);
  }
  state.counters["GFMA/s"] = benchmark::Counter(
      1e-9 * static_cast<double>(options.dim * queries * kEntities) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}
BENCHMARK(score_all)
    ->ArgNames({"dim", "queries", "threads"})
    ->ArgsProduct({{100, 200}, {256}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gpups::bench

BENCHMARK_MAIN();
