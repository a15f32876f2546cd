// SPDX-License-Identifier: Apache-2.0
// The data of word vectors: a text, and questions about analogies of its words.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/step/task.hpp"
#include "trainer/tasks/words/analogies.hpp"
#include "trainer/tasks/words/corpus.hpp"
#include "trainer/tasks/words/held_out_pairs.hpp"
#include "trainer/tasks/words/skip_gram_task.hpp"
#include "trainer/tasks/words/word_groups.hpp"

namespace gpups::trainer {

// What a split has: analogies, or pairs of words from a part of the text.
struct HeldOutWords {
  Analogies analogies;
  std::vector<HeldOutPair> pairs;

  bool empty() const { return analogies.empty() && pairs.empty(); }
  std::string text() const;  // their number
  std::uint64_t bytes() const;
};

// A text as Data. A sample is a group of 32 positions of the text.
class WordData : public Data {
 public:
  WordData(Corpus corpus, HeldOutWords valid, HeldOutWords test);

  Corpus const& corpus() const { return corpus_; }
  Dictionary const& names() const { return corpus_.words; }
  HeldOutWords const& split(std::string_view name) const { return name == "valid" ? valid_ : test_; }

  NamedRows named_rows() const override { return {&names(), names().size()}; }
  std::uint64_t samples() const override { return groups_of(corpus_.positions.size()); }
  std::string_view noun() const override { return "group"; }
  SpeedUnit speed_unit() const override;
  bool has(std::string_view split) const override { return !this->split(split).empty(); }
  std::uint64_t digest() const override { return digest_; }
  std::vector<std::string> notices() const override { return corpus_.notices; }
  std::string summary() const override;
  nlohmann::json counts() const override;
  MemoryPlan memory_plan(Config const& config, Device device, StepSizes const& step) const override;
  std::unique_ptr<Task> make_task(Config const& config, TaskContext const& context) const override;

 private:
  Corpus corpus_;
  HeldOutWords valid_, test_;
  std::uint64_t digest_;
};

// Reads the text data.train and the questions data.valid and data.test of a configuration. A split without questions
// has its share of the text.
std::unique_ptr<WordData const> read_word_data(Config const& config);

// Word vectors on one rank: skip-gram on a text, evaluated by analogies or by held-out pairs.

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
  std::uint64_t seed_;
};

}  // namespace gpups::trainer
