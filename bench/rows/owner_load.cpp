// SPDX-License-Identifier: Apache-2.0
// Measures how evenly the work of owners is distributed: ranks train on batches of categorical features whose values
// have a Zipf distribution, and count the bytes that each rank receives. Only bytes matter, so the ranks are threads.
// Prints a line of JSON.
//   owner_load --ranks 4 --batch 4096 --features 26 --exponent 1.05
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/base/check.hpp"
#include "tests/support/inputs.hpp"
#include "trainer/base/random.hpp"

namespace gpups::bench {
namespace {

struct Options {
  int ranks = 4, steps = 10;
  std::size_t batch = 4096, features = 26, values = 1000000, dim = 64;
  double exponent = 1.05;
};

// Returns this rank's share of a batch: a key for each feature of each sample.
std::vector<Key> keys_of(test::Random& random, Options const& o) {
  trainer::Zipf const zipf(o.values, o.exponent);
  std::vector<Key> keys;
  for (std::size_t sample = 0; sample < o.batch / static_cast<std::size_t>(o.ranks); ++sample) {
    for (std::uint64_t feature = 0; feature < o.features; ++feature) {
      keys.push_back(Key{feature << 32 | zipf(random)});
    }
  }
  return keys;
}

// Returns the bytes that this rank has received before the first step and after each step.
std::vector<std::uint64_t> received_by_step(Group const& group, Options const& o) {
  Store store(group, {.device = Device::host(), .threads = 1});
  auto const table = store.add_table({.name = "values", .dim = o.dim, .expected_rows = o.features * 20000});
  Stream stream = store.make_stream();
  test::Random random(number(group.rank()) + 1);
  std::vector<std::uint64_t> received;
  auto const note = [&] {
    store.wait_applied();
    store.wait_barrier();
    received.push_back(store.stats().received.bytes());
    store.wait_barrier();
  };
  note();
  for (std::int64_t step = 0; step < o.steps; ++step) {
    auto const keys = keys_of(random, o);
    TableBatch const part{.table = table, .keys = View<Key const>(keys)};
    auto const batch = store.prepare(stream, Clock{step}, {&part, 1}, 1);
    store.wait_ready(batch);
    Matrix<float> sources(Device::host(), keys.size(), o.dim);
    memory::fill_bytes(stream, sources.view().data(), 0, sources.view().flat().bytes());
    TableGradients const gradients{.sources = sources};
    store.push(stream, batch, {&gradients, 1});
    store.advance_clock();
    note();
  }
  return received;
}

double max_over_mean(std::vector<std::uint64_t> const& values) {
  auto const sum = std::accumulate(values.begin(), values.end(), std::uint64_t{0});
  return static_cast<double>(*std::max_element(values.begin(), values.end())) * static_cast<double>(values.size()) /
         static_cast<double>(sum);
}

void run(Options const& o) {
  std::vector<std::vector<std::uint64_t>> received(static_cast<std::size_t>(o.ranks));
  run_ranks(Group::threads(o.ranks), [&](Group group) { received[number(group.rank())] = received_by_step(group, o); });
  // Returns the bytes that each rank receives in steps first .. last - 1.
  auto const between = [&](std::size_t first, std::size_t last) {
    std::vector<std::uint64_t> bytes;
    for (auto const& of_rank : received) bytes.push_back(of_rank[last] - of_rank[first]);
    return bytes;
  };
  auto const steps = static_cast<std::size_t>(o.steps);
  double worst = 1;
  for (std::size_t step = 0; step < steps; ++step) worst = std::max(worst, max_over_mean(between(step, step + 1)));
  nlohmann::ordered_json const line{{"ranks", o.ranks},
                                    {"batch", o.batch},
                                    {"features", o.features},
                                    {"exponent", o.exponent},
                                    {"received", between(0, steps)},
                                    {"max_over_mean", max_over_mean(between(0, steps))},
                                    {"max_over_mean_of_worst_step", worst}};
  fmt::print("{}\n", line.dump());
}

}  // namespace
}  // namespace gpups::bench

int main(int argc, char** argv) {
  gpups::bench::Options o;
  CLI::App app("Measures how evenly the work of owners is distributed");
  app.add_option("--ranks", o.ranks, "number of ranks")->check(CLI::Range(2, 256))->capture_default_str();
  app.add_option("--steps", o.steps, "steps to train")->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--batch", o.batch, "samples of all ranks together")->capture_default_str();
  app.add_option("--features", o.features, "features of a sample")->capture_default_str();
  app.add_option("--values", o.values, "values of a feature")->capture_default_str();
  app.add_option("--dim", o.dim, "numbers in a row")->capture_default_str();
  app.add_option("--exponent", o.exponent, "exponent of the Zipf distribution; not 1")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    GPUPS_REQUIRE(o.exponent > 0 && o.exponent != 1, "--exponent is {} (it must be positive and not 1): use 1.05",
                  o.exponent);
    GPUPS_REQUIRE(o.batch >= static_cast<std::size_t>(o.ranks),
                  "--batch is {} (each rank needs a sample): use at least {}", o.batch, o.ranks);
    gpups::bench::run(o);
    return 0;
  } catch (std::exception const& error) {
    fmt::print(stderr, "owner_load: error: {}\n", error.what());
    return 2;
  }
}
