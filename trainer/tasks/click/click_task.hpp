// SPDX-License-Identifier: Apache-2.0
// Training and evaluation of a click-through model on one rank.
#pragma once

#include <memory>
#include <optional>

#include "trainer/step/task.hpp"
#include "trainer/tasks/click/click_data.hpp"
#include "trainer/tasks/click/click_metrics.hpp"
#include "trainer/tasks/click/click_predictor.hpp"
#include "trainer/tasks/click/model/click_computation.hpp"
#include "trainer/tasks/click/model/click_model.hpp"

namespace gpups::trainer {

// Samples that an evaluation predicts together.
inline constexpr std::size_t kPredictBlock = 4096;

// The task of a run on click data.
class ClickTask : public Task {
 public:
  // `data` must outlive this object.
  ClickTask(ClickData const& data, Config const& config, TaskContext const& context);

  std::vector<TableOptions> tables() const override;
  DenseLayers* dense() override { return &dense_; }
  std::unique_ptr<TaskStep> prepare(Stream& stream, Batch const& batch) override;
  Metrics wait_evaluate(Stream& stream, Store& store, std::string_view split) override;
  bool is_progressive() const override;
  std::optional<Metrics> wait_progressive(Store& store) override;
  std::vector<Blob> wait_save(Stream& stream) const override;
  void wait_restore(Stream& stream, std::span<Blob const> blobs) override;

 private:
  RowDropout row_dropout(Batch const& batch) const;

  ClickData const& data_;
  Config const config_;
  TaskContext const context_;
  ClickModel model_;
  DenseLayers dense_;
  SampleBatch samples_;  // memory of prepare(), reused
  ClickComputation training_{model_};
  ClickPredictor predictor_{model_, dense_};
  PredictionCollector progressive_;
};

}  // namespace gpups::trainer
