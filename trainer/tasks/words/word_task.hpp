// SPDX-License-Identifier: Apache-2.0
// Word vectors on one rank: skip-gram on a text, evaluated by analogies.
#pragma once

#include <string>

#include "trainer/tasks/words/skip_gram_task.hpp"
#include "trainer/tasks/words/word_data.hpp"
#include "trainer/tasks/words/word_groups.hpp"

namespace gpups::trainer {

// Converts a configuration to options.
SkipGramOptions word_options(Config const& config);

// The task of one rank.
class WordTask : public SkipGramTask {
 public:
  // `data` must outlive this object.
  WordTask(WordData const& data, Config const& config, std::int64_t schedule_steps);

  Metrics wait_evaluate(Stream& stream, Store& store, std::string_view split) override;

 protected:
  SkipGramGroups groups(Batch const& batch) const override { return sampler_.groups(batch); }

 private:
  WordData const& data_;
  WordSampler sampler_;
};

}  // namespace gpups::trainer
