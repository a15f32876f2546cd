// SPDX-License-Identifier: Apache-2.0
// The click data of a run: samples for training, validation and the test.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/step/task.hpp"
#include "trainer/tasks/click/features.hpp"
#include "trainer/tasks/click/frequent_values.hpp"
#include "trainer/tasks/click/sample_statistics.hpp"
#include "trainer/tasks/click/samples.hpp"

namespace gpups::trainer {

// Returns the layout of click data that a configuration sets.
Layout layout_of(Config const& config);

// Consecutive samples of a file: first .. first + count - 1.
struct Split {
  Samples samples;
  std::uint64_t first = 0, count = 0;
};

// Adds a notice that the order of columns could not be compared: a file has no names of them, and another has.
void say_no_names(std::string_view path, std::string_view other, std::vector<std::string>& notices);

// Opens files of samples: one that is binary, or some of text. Adds to `notices` what a user should know. Throws Error
// if the layout of a binary file is not the configuration's. same: of other files of the run, or null; a binary file
// without names of its columns is not compared.
Samples open_click_files(std::span<std::filesystem::path const> files, Config const& config,
                         std::vector<std::string>& notices, SameColumns* same = nullptr);

// The samples of a run, and statistics of its training samples.
class ClickData : public Data {
 public:
  explicit ClickData(Config const& config);

  Split const& train() const { return train_; }
  // Statistics of the training samples.
  SampleStatistics const& statistics() const { return statistics_; }
  // Of all splits; empty if all are binary files without names of columns.
  SameColumns const& columns() const { return same_columns_; }
  // Returns the values that occur at least `min_count` times in the training samples, in the categories of `features`.
  // The first call measures them. Any thread. REQUIRES: all calls have the same arguments.
  FrequentValues const& frequent_values(Features const& features, std::uint32_t min_count) const;
  // REQUIRES: has(split).
  Split const& split(std::string_view split) const { return split == "valid" ? *valid_ : *test_; }

  std::uint64_t samples() const override { return train_.count; }
  std::string_view noun() const override { return "sample"; }
  std::uint64_t block() const override { return kSampleBlock; }
  bool is_shuffled() const override { return is_shuffled_; }
  bool has(std::string_view split) const override { return (split == "valid" ? valid_ : test_).has_value(); }
  std::uint64_t digest() const override;
  std::vector<std::string> notices() const override { return notices_; }
  std::string summary() const override;
  nlohmann::json counts() const override;
  MemoryPlan memory_plan(Config const& config, Device device, StepSizes const& step) const override;
  std::unique_ptr<Task> make_task(Config const& config, TaskContext const& context) const override;

 private:
  void say_if_all_rare(Config const& config);
  void say_if_unknown(Config const& config);
  std::vector<Features::KeyEstimate> key_estimates(Features const& features, std::size_t batch) const;

  std::vector<std::string> notices_;
  SameColumns same_columns_;
  bool is_shuffled_;
  Split train_;
  std::optional<Split> valid_, test_;
  SampleStatistics statistics_;
  mutable std::once_flag measured_;
  mutable FrequentValues frequent_;
  mutable std::vector<ValueCounts> values_;  // of each category, measured with frequent_
  // Estimates for a batch of `estimated_for_` samples. They are kept, since all ranks of a process request the same.
  mutable std::mutex estimating_;
  mutable std::size_t estimated_for_ = 0;
  mutable std::vector<Features::KeyEstimate> estimates_;
};

}  // namespace gpups::trainer
