// SPDX-License-Identifier: Apache-2.0
// Skip-gram with negative sampling on one rank, for the words of a text or the nodes of a network. The table "words" or
// "nodes" has the vectors; the table "contexts" has the vectors that they predict.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "trainer/config/fields.hpp"
#include "trainer/step/task.hpp"
#include "trainer/tasks/words/skip_gram_groups.hpp"

namespace gpups::trainer {

// The settings that texts and networks share, those of skip-gram.
struct SkipGramSettings {
  std::int64_t negatives = 15;
  std::int64_t shared_negatives = 48;
  std::int64_t window = 5;
  double l2 = 0;
};

// Settings of a kind have a member `skip_gram`.
template <class Settings, auto Member>
FieldPointer in_skip_gram(Config& config) {
  return &(config.settings<Settings>().skip_gram.*Member);
}

// The keys of [model] and [optimizer] of a kind with these settings.
template <class Settings>
std::vector<Field> skip_gram_fields() {
  using S = SkipGramSettings;
  return joined(
      {row_fields(),
       {FieldBuilder("model", "negatives", in_skip_gram<Settings, &S::negatives>,
                     "weight of negatives in the loss of a pair, as a number of negatives of word2vec")
            .range(1, 1 << 20)
            .fixed_on_resume(),
        FieldBuilder("model", "shared_negatives", in_skip_gram<Settings, &S::shared_negatives>,
                     "negatives that 32 neighbouring words or nodes draw and share")
            .range(1, 1 << 20)
            .fixed_on_resume(),
        FieldBuilder("model", "window", in_skip_gram<Settings, &S::window>,
                     "largest number of words or nodes on each side that one predicts")
            .range(1, 1024)
            .fixed_on_resume(),
        FieldBuilder("model", "l2", in_skip_gram<Settings, &S::l2>,
                     "weight of the squared norms of a pair's two rows; in a network, for a node with one neighbour")
            .range(0, 1e6)
            .fixed_on_resume()},
       optimizer_fields(),
       schedule_fields()});
}

// Returns common defaults of skip-gram: those of word2vec, except that a group of words shares its negatives.
Config skip_gram_defaults();
// Sets model.init and model.init_scale, as word2vec, if they are not given.
void set_skip_gram_defaults(Config& config, std::set<std::string> const& given);

inline constexpr TableId kVectorsTable{0}, kContextsTable{1};

// Returns the names of the models.
std::vector<std::string> skip_gram_model_names();
// Converts settings to options; subsample is 0.
SkipGramOptions skip_gram_options(SkipGramSettings const& settings, TrainConfig const& train);
// Returns the tables. name: of the vectors; rows: their number. schedule_steps: see TaskContext.
std::vector<TableOptions> skip_gram_tables(Config const& config, std::string const& name, std::size_t rows,
                                           std::int64_t schedule_steps);
// Adds the batches and gradients of a rank's step of `groups` groups. tables: from skip_gram_tables().
void add_skip_gram(MemoryPlan& plan, SkipGramOptions const& options, std::vector<TableOptions> const& tables,
                   std::size_t groups, StepSizes const& step, Device device);

// The task of one rank, without an evaluation.
class SkipGramTask : public Task {
 public:
  // config, name, rows, schedule_steps: see skip_gram_tables().
  SkipGramTask(SkipGramOptions const& options, Config const& config, std::string const& name, std::size_t rows,
               std::int64_t schedule_steps);

  std::vector<TableOptions> tables() const override { return tables_; }
  std::unique_ptr<TaskStep> prepare(Stream& stream, Batch const& batch) override;

  // Results of a step; the arrays are reused in later steps.
  struct SkipGramGradients {
    Matrix<float> of_words, of_contexts;  // gradients
    Array<std::int64_t> losses;
  };

 protected:
  // Returns the groups of a batch. The result depends on configuration, data and batch only.
  virtual SkipGramGroups groups(Batch const& batch) const = 0;

 private:
  std::vector<TableOptions> tables_;
  SkipGramOptions options_;
  SkipGramGradients computed_;
};

}  // namespace gpups::trainer
