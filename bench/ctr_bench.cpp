// SPDX-License-Identifier: Apache-2.0
// Measures how fast one rank trains a click-through model (DLRM), the time of each stage of a step, and the time that
// the matrix products alone take with oneDNN. Prints a line of JSON.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/bare_products.hpp"
#include "bench/core_seconds.hpp"
#include "kernels/base/check.hpp"
#include "trainer/accounts/metrics.hpp"
#include "trainer/accounts/stage_times.hpp"
#include "trainer/step/pipeline.hpp"
#include "trainer/step/session.hpp"
#include "trainer/step/step_runner.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::bench {
namespace {

using namespace gpups::trainer;
using Json = nlohmann::json;

struct Options {
  std::filesystem::path data;
  std::int64_t batch = 4096, microbatches = 8, warm_up = 30, steps = 60, rounds = 3;
  int threads = 2;
};

Config config_of(Options const& o) {
  std::vector<SettingOverride> const settings{"data.reader=clicks",
                                              "data.folder=" + o.data.parent_path().string(),
                                              "data.train=" + o.data.filename().string(),
                                              "data.valid=",
                                              "data.test=",
                                              "data.valid_share=0",
                                              "data.test_share=0",
                                              "model.name=dlrm",
                                              "model.dim=16",
                                              "model.init_scale=0.05",
                                              "model.bottom=[512, 256, 64]",
                                              "model.top=[512, 256]",
                                              "optimizer.learning_rate=0.05",
                                              fmt::format("train.batch_size={}", o.batch),
                                              fmt::format("train.microbatches={}", o.microbatches),
                                              fmt::format("train.steps={}", o.warm_up + o.rounds * o.steps),
                                              fmt::format("run.threads={}", o.threads),
                                              "run.device=host"};
  return parse_config("", "ctr_bench", {}, settings);
}

// Alternates steps and bare products, so that changes of the machine's speed affect both.
class Measurement {
 public:
  Measurement(Options const& o, Config const& config, Data const& data, Group const& group)
      : options_(o),
        session_(open_session(
            config, data, group,
            {.microbatches = static_cast<std::uint32_t>(o.microbatches), .schedule_steps = config.train.steps})),
        pipeline_(session_.store, *session_.task,
                  {data.samples(),
                   {.batch_size = static_cast<std::uint32_t>(o.batch),
                    .microbatches = static_cast<std::uint32_t>(o.microbatches),
                    .seed = 1}},
                  times_,
                  {.end = Clock{config.train.steps},
                   .lookahead = static_cast<std::size_t>(lookahead_steps(config, group.size()))}),
        stepper_(session_.store, *session_.task, times_),
        shapes_(
            layer_shapes(session_.task->dense()->parameters(), static_cast<std::size_t>(o.batch / o.microbatches))) {}

  Json run() {
    steps(options_.warm_up);
    Json const before = to_json(times_);
    std::vector<double> step_s;
    double core_s = 0;
    ProductsTime bare{1e9, 1e9};
    products(bare);
    for (std::int64_t r = 0; r < options_.rounds; ++r) {
      double const begin = core_seconds_of(CLOCK_PROCESS_CPUTIME_ID);
      step_s.push_back(steps(options_.steps) / static_cast<double>(options_.steps));
      core_s += core_seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begin;
      products(bare);
    }
    Json stages = to_json(times_);
    for (auto& [name, seconds] : stages.items()) {
      seconds = (seconds.get<double>() - before.at(name).get<double>()) /
                static_cast<double>(options_.rounds * options_.steps);
    }
    std::sort(step_s.begin(), step_s.end());
    double const step = step_s[step_s.size() / 2];
    double const flops = 2 * products_of(shapes_) * static_cast<double>(options_.microbatches);
    return {{"samples_per_s", static_cast<double>(options_.batch) / step},
            {"step_s", step},
            {"step_core_s", core_s / static_cast<double>(options_.rounds * options_.steps)},
            {"stages_s", stages},
            {"products_s", bare.seconds},
            {"products_core_s", bare.core_seconds},
            {"products_gflops", flops * 1e-9 / bare.seconds},
            {"products_to_step", bare.seconds / step},
            {"batch", options_.batch},
            {"microbatches", options_.microbatches},
            {"threads", options_.threads}};
  }

 private:
  // Returns the seconds of `count` steps, whose samples are prepared at the same time.
  double steps(std::int64_t count) {
    Stopwatch watch;
    watch.start();
    for (std::int64_t i = 0; i < count; ++i) {
      auto step = pipeline_.next();
      GPUPS_ASSERT(step.has_value());
      stepper_.wait_ready(*step);
      stepper_.run(std::move(*step), 0);
    }
    session_.store.wait_applied();
    return watch.seconds();
  }

  // Measures the products of a step alone; `best` becomes the shortest time so far.
  void products(ProductsTime& best) const {
    for (int i = 0; i < 5; ++i) {
      auto const now = time_products(shapes_, static_cast<std::size_t>(options_.microbatches), options_.threads);
      best = {std::min(best.seconds, now.seconds), std::min(best.core_seconds, now.core_seconds)};
    }
  }

  Options const& options_;
  Session session_;
  StageTimes times_;
  Pipeline pipeline_;
  StepRunner stepper_;
  std::vector<LayerShape> shapes_;
};

void run(Options const& o) {
  Config const config = config_of(o);
  auto const data = read_data(config);
  run_ranks({Group::alone()},
            [&](Group const& group) { fmt::print("{}\n", Measurement(o, config, *data, group).run().dump()); });
}

}  // namespace
}  // namespace gpups::bench

int main(int argc, char** argv) {
  gpups::bench::Options o;
  CLI::App app("Trains DLRM on the host, and prints the time of each stage");
  app.add_option("DATA", o.data, "Click data in Criteo's layout; fastest as a file that gpu_train convert has written")
      ->required();
  app.add_option("--batch", o.batch, "Samples of a step");
  app.add_option("--microbatches", o.microbatches, "Parts of a batch")->check(CLI::PositiveNumber);
  app.add_option("--threads", o.threads, "Cores to train with")->check(CLI::PositiveNumber);
  app.add_option("--steps", o.steps, "Steps of a round")->check(CLI::PositiveNumber);
  app.add_option("--rounds", o.rounds, "Rounds of steps, with bare products in between; the median is printed")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    gpups::bench::run(o);
    return 0;
  } catch (std::exception const& error) {
    fmt::print(stderr, "ctr_bench: error: {}\n", error.what());
    return 2;
  }
}
