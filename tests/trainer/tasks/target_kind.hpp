// SPDX-License-Identifier: Apache-2.0
// A kind of task for tests, whose rows learn a number.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/task_kind.hpp"
#include "trainer/input/dictionary.hpp"
#include "trainer/saved/saved_model.hpp"
#include "trainer/step/task.hpp"
#include "trainer/tasks/common/named_vectors.hpp"

namespace gpups::trainer {

// Rows learn to be `target`: sample s is row s. A step halves the error, whose mean over 13 rows is the gradient.
struct TargetSettings {
  double target = 2;
};
struct TargetStep : TaskStep {
  std::vector<TableBatch> tables() const override { return {{.table = TableId{0}, .keys = keys}}; }
  View<std::int64_t const> forward_backward(Stream&, PreparedBatch const& prepared,
                                            std::span<MatrixView<float const> const> rows) override {
    losses.clear();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      float const error = rows[0].row(prepared.positions(0).data()[i])[0] - target;
      errors.view().row(i)[0] = error;
      losses.push_back(static_cast<std::int64_t>(std::floor(error * error * 0x1p30)));
    }
    return View<std::int64_t const>(losses);
  }
  std::vector<TableGradients> gradients() const override { return {{.sources = errors}}; }
  TargetStep(std::vector<Key> const& all, Batch const& batch, float aim)
      : keys(Device::host(), batch.samples.size()), errors(Device::host(), keys.size(), 1), target(aim) {
    for (std::size_t i = 0; i < keys.size(); ++i) keys.data()[i] = all[batch.samples[i]];
  }
  Array<Key> keys;
  std::vector<std::int64_t> losses;
  Matrix<float> errors;
  float target;
};
struct TargetTask : Task {
  using Evaluate = std::function<Metrics(Store&, std::string_view split)>;
  TargetTask(std::vector<Key> const& all, Evaluate const& metrics, Config const& config)
      : keys(all), evaluate(metrics), config_(config) {}
  std::vector<TableOptions> tables() const override {
    return {{.name = "rows", .dim = 1, .optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 6.5F}}};
  }
  std::unique_ptr<TaskStep> prepare(Stream&, Batch const& batch) override {
    return std::make_unique<TargetStep>(keys, batch, static_cast<float>(config_.settings<TargetSettings>().target));
  }
  Metrics wait_evaluate(Stream&, Store& store, std::string_view split) override { return evaluate(store, split); }
  std::vector<Key> const& keys;
  Evaluate const& evaluate;
  Config config_;
};
struct TargetData : Data {
  TargetData() {
    for (char c = 'a'; c <= 'z'; ++c) names.add(std::string(1, c));
  }
  std::uint64_t samples() const override { return names.size(); }
  std::string_view noun() const override { return "row"; }
  bool has(std::string_view split) const override { return evaluate != nullptr && split == "valid"; }
  std::uint64_t digest() const override { return 1; }
  std::vector<std::string> notices() const override { return {}; }
  std::string summary() const override { return "26 rows"; }
  nlohmann::json counts() const override { return {{"rows", names.size()}}; }
  NamedRows named_rows() const override { return {&names, names.size()}; }
  MemoryPlan memory_plan(Config const&, Device, StepSizes const&) const override { return {}; }
  std::unique_ptr<Task> make_task(Config const& config, TaskContext const&) const override {
    return std::make_unique<TargetTask>(names.keys(), evaluate, config);
  }
  Dictionary names{"row"};
  TargetTask::Evaluate evaluate{};  // null: there is no split to evaluate
};
struct TargetKind : TaskKind {
  std::vector<std::string> readers() const override { return {"targets"}; }
  std::vector<std::string> models() const override { return {"row"}; }
  Config defaults() const override {
    Config config;
    config.model.name = "row";
    config.task.values = TargetSettings{};
    return config;
  }
  std::vector<Field> fields() const override {
    return {FieldBuilder("model", "target", in_task<&TargetSettings::target>, "what rows learn")
                .range(-10, 10)
                .fixed_on_resume()};
  }
  std::unique_ptr<Data const> read(Config const&) const override { return std::make_unique<TargetData>(); }
  bool export_model(SavedModel const& model, std::filesystem::path const& folder, ModelFormat format,
                    std::vector<std::string>& notices) const override {
    TargetData const data;
    export_named_vectors(model, data, data.names, nullptr, folder, format, notices);
    return true;
  }
};

}  // namespace gpups::trainer
