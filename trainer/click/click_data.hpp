// SPDX-License-Identifier: Apache-2.0
// Click data as a task: samples to learn from, and to predict.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/click/features.hpp"
#include "trainer/click/frequent_values.hpp"
#include "trainer/click/sample_statistics.hpp"
#include "trainer/click/samples.hpp"
#include "trainer/model_shape.hpp"
#include "trainer/task.hpp"

namespace gpups::trainer {

// The layout that a configuration describes.
Layout layout_of(DataConfig const& config);

// Some consecutive samples of a file.
struct Split {
  Samples samples;
  std::uint64_t first = 0, count = 0;
};

// A file of samples, text or binary. Throws Error where it has another layout than the configuration.
Samples open_click_file(std::filesystem::path const& path, Config const& config, std::vector<std::string>& notices);

// Reads what a configuration names.
std::unique_ptr<Data const> read_clicks(Config const& config);
ModelShape click_shape(Config const& config);

class ClickData : public Data {
 public:
  explicit ClickData(Config const& config);

  Split const& train() const { return train_; }
  // Of the training samples.
  SampleStatistics const& statistics() const { return statistics_; }
  // Of the training samples, by the categories of `features`; measured by the first call. Any thread. REQUIRES: the
  // same arguments in every call.
  FrequentValues const& frequent_values(Features const& features, std::uint32_t min_count) const;
  // REQUIRES: has(split).
  Split const& split(std::string_view split) const { return split == "valid" ? *valid_ : *test_; }

  std::uint64_t samples() const override { return train_.count; }
  std::string_view noun() const override { return "sample"; }
  std::uint64_t block() const override { return kSampleBlock; }
  bool has(std::string_view split) const override { return (split == "valid" ? valid_ : test_).has_value(); }
  std::uint64_t digest() const override;
  std::vector<std::string> notices() const override { return notices_; }
  std::string summary() const override;
  nlohmann::json counts() const override;
  MemoryPlan memory_plan(Config const& config, Device device, StepSizes const& step) const override;
  std::unique_ptr<Task> make_task(Config const& config, TaskContext const& context) const override;

 private:
  std::vector<Features::KeyEstimate> key_estimates(Features const& features, std::size_t batch) const;

  std::vector<std::string> notices_;
  Split train_;
  std::optional<Split> valid_, test_;
  SampleStatistics statistics_;
  mutable std::once_flag measured_;
  mutable FrequentValues frequent_;
  // The keys of a batch of `estimated_for_` samples; ranks of a process ask for the same.
  mutable std::mutex estimating_;
  mutable std::size_t estimated_for_ = 0;
  mutable std::vector<Features::KeyEstimate> estimates_;
};

}  // namespace gpups::trainer
