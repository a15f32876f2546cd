// SPDX-License-Identifier: Apache-2.0
// The end of a run: the last checkpoint, the summary, and the test of the best step.
#include <fmt/format.h>

#include "trainer/base/versions.hpp"
#include "trainer/dense/dense_gradient_reducer.hpp"
#include "trainer/run/training.hpp"

namespace gpups::trainer {
namespace {

// The largest number of ranks for which summary.json lists the traffic of each pair.
constexpr int kPairsRanksMaxAtEnd = 128;
constexpr std::size_t kHottestRows = 20;  // in summary.json

// Prints a line for each table with admission that has no rows. Collective.
void wait_say_if_no_rows(Store& store, Task const& task, ProgressReporter& progress) {
  std::vector<TableOptions> const tables = task.tables();
  for (std::uint32_t t = 0; t < tables.size(); ++t) {
    if (tables[t].admission_count <= 1 || store.size(TableId{t}) > 0) continue;
    progress.print(fmt::format(
        "table '{}' has no rows: a row is created at occurrence {} of its value, and no value occurred so often; "
        "lower {}.admission_count",
        tables[t].name, tables[t].admission_count, tables[t].name == "weights" ? "linear" : "model"));
  }
}

}  // namespace

bool Training::wait_finish() {
  if (state_.clock != step_reported_) wait_report();
  wait_progressive();
  if (!stopped_ && !patience_over_ && data_.has("valid")) wait_validate();
  if (!stopped_) say_if_none_is_best();
  wait_save(checkpoint_);
  if (!stopped_) wait_say_if_no_rows(store(), task(), progress_);
  nlohmann::json summary = wait_summary();
  wait_test(summary);
  for (auto const& line : summary.value("allreduces", nlohmann::json::array())) {
    progress_.print("allreduce: " + line.get<std::string>());
  }
  if (folder_) {
    folder_->write_summary(summary);
    SpeedUnit const unit = data_.speed_unit();
    double const speed = summary.at("samples_per_s").get<double>() * unit.per_sample;
    progress_.print(fmt::format("{} {}/s; training took {}, this process {} in all; results in {}", short_count(speed),
                                unit.name, short_time(summary.at("train_seconds").get<double>()),
                                short_time(seconds_of_process_ + total_.seconds()), folder_->path().string()));
  }
  if (stopped_) {
    progress_.print(fmt::format("stopped at step {} by a signal; resume with --resume --run {}", state_.clock,
                                checkpoint_.parent_path().string()));
  }
  return !stopped_;
}

// Adds the best validation and the test to the summary. The test is that of the best validation, if it was kept.
void Training::wait_test(nlohmann::json& summary) {
  BestValidation const& best = state_.best;
  if (best.step != 0) {
    summary["best"] = best.summary;
    if (stopped_ || !data_.has("test")) return;
    double const epoch = static_cast<double>(best.step) / static_cast<double>(steps_per_epoch_);
    std::string const which = best.step == state_.clock
                                  ? ""
                                  : fmt::format("of step {} (epoch {:.4g}, the best validation) ", best.step, epoch);
    progress_.print(fmt::format("test {}{}", which, best.test_text));
    summary["test"] = summary["best"]["test"];
  } else if (!stopped_ && data_.has("test")) {
    std::optional<Metrics> const test = wait_evaluate("test");
    stopped_ = !test;
    summary["finished"] = !stopped_;
    if (!test) return;
    progress_.print("test " + test->text);
    summary["test"] = test->json;
  }
}

nlohmann::json Training::wait_summary() {
  Stats const mine = store().stats();
  Totals const totals = wait_totals(store(), {}, mine);
  say_if_late(totals.row_report);
  nlohmann::json const pairs =
      store().ranks() <= kPairsRanksMaxAtEnd ? wait_pairs(store(), mine) : nlohmann::json::array();
  nlohmann::json const hottest_rows = wait_hottest_rows(store(), kHottestRows);
  std::uint64_t const hash = store().table_hash();
  double const seconds = seconds_before_ + watch_.seconds();
  nlohmann::json summary{{"finished", !stopped_},
                         {"steps", state_.clock},
                         {"epochs", static_cast<double>(state_.clock) / static_cast<double>(steps_per_epoch_)},
                         {"samples", state_.samples},
                         {"train_seconds", seconds},
                         {"table_hash", fmt::format("{:016x}", hash)},
                         {"data_digest", fmt::format("{:016x}", data_digest_)},
                         {"ranks", store().ranks()},
                         {"device", to_string(store().options().device)},
                         {"microbatches", state_.microbatches},
                         {"hottest_rows", hottest_rows},
                         {"pairs", pairs},
                         {"versions", versions()}};
  summary.update(speeds(seconds > 0 ? static_cast<double>(state_.samples) / seconds : 0));
  summary.update(accounts_of(mine, totals));
  summary.update(data_.counts());
  if (task().dense() != nullptr) {
    summary["dense_hash"] = fmt::format("{:016x}", task().dense()->wait_hash(*stream_));
    summary["dense_parameters"] = task().dense()->parameters().count();
  }
  auto const sums = explain_sums(totals.traffic_report);
  if (!sums.empty()) summary["allreduces"] = sums;
  if (state_.loss) summary["loss"] = *state_.loss;
  if (!state_.progressive.is_null()) summary["progressive"] = state_.progressive;
  if (valid_) {
    summary["valid"] = valid_->json;
    summary["validation"] = {{"quality", valid_->quality}, {"text", valid_->text}};
  }
  return summary;
}

std::vector<std::string> Training::explain_sums(TrafficReport const& traffic_report) {
  std::vector<std::string> lines = group_.explain_allreduces();
  if (task().dense() == nullptr) return lines;
  DenseAllreduceTraffic const sent{.bytes = traffic_report.sent.allreduces, .steps = store().stats().steps};
  for (std::string& line : trainer::explain(task().dense()->allreduce_summary(), store().ranks(), sent)) {
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace gpups::trainer
