// SPDX-License-Identifier: Apache-2.0
// Word vectors on one rank: skip-gram with negative sampling. The table "words" has the vectors; the table "contexts"
// has the vectors that they predict.
#pragma once

#include <memory>
#include <vector>

#include "trainer/task.hpp"
#include "trainer/words/word_data.hpp"
#include "trainer/words/word_groups.hpp"

namespace gpups::trainer {

inline constexpr TableId kWordsTable{0}, kContextsTable{1};

// Converts a configuration to options.
SkipGramOptions skip_gram_options(Config const& config);
// Returns the tables. words: their number. schedule_steps: see TaskContext.
std::vector<TableOptions> word_tables(Config const& config, std::size_t words, std::int64_t schedule_steps);

// The task of one rank.
class WordTask : public Task {
 public:
  // `data` must outlive this object.
  WordTask(WordData const& data, Config const& config, std::int64_t schedule_steps);

  std::vector<TableOptions> tables() const override;
  std::unique_ptr<TaskStep> prepare(Stream& stream, Batch const& batch) override;
  Metrics wait_evaluate(Stream& stream, Store& store, std::string_view split) override;

  // Results of a step; the arrays are reused in later steps.
  struct SkipGramGradients {
    Matrix<float> of_words, of_contexts;  // gradients
    Array<std::int64_t> losses;
  };

 private:
  WordData const& data_;
  Config const config_;
  std::int64_t schedule_steps_;
  WordSampler sampler_;
  SkipGramGradients computed_;
};

}  // namespace gpups::trainer
