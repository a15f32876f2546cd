// SPDX-License-Identifier: Apache-2.0
// Counts what a training step costs apart from its work: kernel launches, waits for streams, and copies between host
// and device, by the number of tables and ranks. The ranks are threads. Batches are prepared from the patterns of a
// fixed set of batches, so prepare() uses no stream and the counts are those of pull, push and the round. Prints a line
// of JSON.
//   round_counts --ranks 8 --tables 26
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <deque>
#include <vector>

#include "bench/rows/rank_stats.hpp"
#include "gpups/gpups.hpp"
#include "tests/support/inputs.hpp"
#include "trainer/base/random.hpp"

namespace gpups::bench {
namespace {

constexpr std::array<std::size_t, 3> kDims{8, 16, 64};  // of tables, in turn
constexpr std::size_t kValues = 100000;                 // keys of a table
constexpr double kExponent = 1.05;

struct Options {
  int ranks = 8;
  std::size_t tables = 26, rows = 256;
  std::int64_t lookahead = 4, warm_up = 10, steps = 20, staleness = 0;
  double away = 0;
  std::string device = "host", placement = "static";
};

// One rank: its store, and the arrays that its steps read and write.
class CountedRank {
 public:
  CountedRank(Group const& group, Options const& o)
      : o_(o),
        store_(group, {.device = device_from(o.device),
                       .threads = 1,
                       .placement = placement_policy(o.placement),
                       .placement_bytes_min = 0,
                       .staleness = o.staleness}),
        stream_(store_.make_stream()) {
    test::Random random(number(group.rank()) + 1);
    for (std::size_t t = 0; t < o.tables; ++t) {
      std::size_t const dim = kDims[t % kDims.size()];
      tables_.push_back(store_.add_table({.name = fmt::format("table {}", t),
                                          .dim = dim,
                                          .optimizer = {.kind = Optimizer::Kind::kAdagrad},
                                          .expected_rows = kValues}));
      rows_.emplace_back(store_.options().device, o.rows, dim);
      auto values = test::floats(random, o.rows, dim);
      for (float& value : values) value *= .01F;
      sources_.push_back(test::matrix(stream_, values, o.rows, dim));
      row_views_.push_back(rows_.back());
      gradients_.push_back({.sources = sources_.back()});
    }
    if (o.away > 0) localize(random);
    for (std::int64_t step = 0; step < o.lookahead; ++step) ahead_.push_back(prepare_new(random, Clock{step}));
  }

  // Trains the steps of the warm-up, and returns the counters before and after the other steps.
  CountedSteps count() {
    for (std::int64_t step = 0; step < o_.warm_up; ++step) train();
    CountedSteps counted{.before = wait_stats(store_), .after = {}};
    for (std::int64_t step = 0; step < o_.steps; ++step) train();
    counted.after = wait_stats(store_);
    return counted;
  }

 private:
  // Moves random rows of each table to this rank: all ranks together move this share of them.
  void localize(test::Random& random) {
    auto const count = static_cast<std::size_t>(o_.away * static_cast<double>(kValues) / o_.ranks);
    for (TableId const table : tables_) {
      std::vector<Key> keys(count);
      for (Key& key : keys) key = test::scrambled(test::below(random, kValues));
      store_.localize(stream_, table, View<Key const>(keys));
    }
  }

  PreparedBatch prepare_new(test::Random& random, Clock clock) {
    trainer::Zipf const zipf(kValues, kExponent);
    std::vector<Array<Key>> keys;
    std::vector<TableBatch> parts;
    for (TableId const table : tables_) {
      std::vector<Key> drawn(o_.rows);
      for (Key& key : drawn) key = test::scrambled(zipf(random));
      keys.push_back(to_device(stream_, drawn));
      parts.push_back({.table = table, .keys = keys.back()});
    }
    return store_.prepare(stream_, clock, parts, o_.rows);
  }

  void train() {
    PreparedBatch const batch = ahead_.front();
    ahead_.pop_front();
    ahead_.push_back(store_.prepare(batch.pattern(), batch.clock() + o_.lookahead));
    store_.wait_ready(batch);
    store_.pull(stream_, batch, row_views_);
    store_.push(stream_, batch, gradients_);
    store_.advance_clock();
  }

  Options const& o_;
  Store store_;
  Stream stream_;
  std::vector<TableId> tables_;
  std::vector<Matrix<float>> rows_, sources_;  // (rows, dim) of each table
  std::vector<MatrixView<float>> row_views_;
  std::vector<TableGradients> gradients_;
  std::deque<PreparedBatch> ahead_;  // batches of the next steps
};

void run(Options const& o) {
  std::vector<CountedSteps> ranks(static_cast<std::size_t>(o.ranks));
  run_ranks(Group::threads(o.ranks),
            [&](Group const& group) { ranks[number(group.rank())] = CountedRank(group, o).count(); });
  auto const most = [&](std::uint64_t Stats::*counter) { return most_per_step(ranks, o.steps, counter); };
  std::uint64_t rows_reserved = 0;
  for (auto const& rank : ranks) rows_reserved += rank.after.rows_reserved;
  nlohmann::ordered_json const line{{"device", o.device},
                                    {"ranks", o.ranks},
                                    {"tables", o.tables},
                                    {"rows", o.rows},
                                    {"lookahead", o.lookahead},
                                    {"steps", o.steps},
                                    {"away", o.away},
                                    {"placement", o.placement},
                                    {"staleness", o.staleness},
                                    {"waits", most(&Stats::stream_waits)},
                                    {"launches", most(&Stats::launches)},
                                    {"host_copies", most(&Stats::host_copies)},
                                    {"host_copied_bytes", most(&Stats::host_copied_bytes)},
                                    {"late_keys", most(&Stats::late_keys)},
                                    {"sent", sent_per_step(ranks, o.steps)},
                                    {"rows_reserved", rows_reserved}};
  fmt::print("{}\n", line.dump());
}

}  // namespace
}  // namespace gpups::bench

int main(int argc, char** argv) {
  gpups::bench::Options o;
  CLI::App app("Counts launches, waits and copies of training steps, per step of the rank that has most");
  app.add_option("--ranks", o.ranks, "number of ranks")->check(CLI::Range(1, 256))->capture_default_str();
  app.add_option("--tables", o.tables, "number of tables, of dim 8, 16 and 64 in turn")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--rows", o.rows, "entries of a batch in each table")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--lookahead", o.lookahead, "steps that batches are prepared ahead, and the number of batches in turn")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--away", o.away, "share of the rows that are moved to random ranks before the first step")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--placement", o.placement, "policy that moves rows while training: static, adaptive")
      ->capture_default_str();
  app.add_option("--staleness", o.staleness, "see StoreOptions")->check(CLI::Range(0, 1000))->capture_default_str();
  app.add_option("--warm-up", o.warm_up, "steps that are not counted")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  app.add_option("--steps", o.steps, "steps that are counted")->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--device", o.device, "device of all ranks: host, cuda, cuda:1")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    gpups::bench::run(o);
    return 0;
  } catch (std::exception const& error) {
    fmt::print(stderr, "round_counts: error: {}\n", error.what());
    return 2;
  }
}
