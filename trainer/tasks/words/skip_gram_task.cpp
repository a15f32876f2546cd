// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/words/skip_gram_task.hpp"

#include <algorithm>
#include <utility>

#include "trainer/config/table_settings.hpp"

namespace gpups::trainer {

Config skip_gram_defaults() {
  Config config;
  config.data.train = config.data.valid = config.data.test = "";
  config.data.valid_share = config.data.test_share = 0;
  config.model.name = "skip_gram";
  config.optimizer.learning_rate = 0.2;
  config.train.batch_size = 256;  // groups of 32 words
  config.train.epochs = 5;
  return config;
}

void set_skip_gram_defaults(Config& config, std::set<std::string> const& given) {
  if (!given.contains("model.init")) config.model.init = "uniform";
  if (!given.contains("model.init_scale")) config.model.init_scale = 0.5 / static_cast<double>(config.model.dim);
}

namespace {

class SkipGramStep : public TaskStep {
 public:
  SkipGramStep(Stream& stream, SkipGramGroups const& groups, SkipGramOptions const& options,
               SkipGramTask::SkipGramGradients& computed)
      : words_(to_device(stream, groups.words)),
        contexts_(to_device(stream, groups.contexts)),
        windows_(to_device(stream, groups.windows)),
        word_offsets_(to_device(stream, groups.word_offsets)),
        context_offsets_(to_device(stream, groups.context_offsets)),
        options_(options),
        computed_(computed) {}

  std::vector<TableBatch> tables() const override {
    return {{.table = kVectorsTable, .keys = words_}, {.table = kContextsTable, .keys = contexts_}};
  }

  View<std::int64_t const> forward_backward(Stream& stream, PreparedBatch const& prepared,
                                            std::span<MatrixView<float const> const> rows) override {
    std::size_t const groups = word_offsets_.size() - 1, dim = rows[0].columns();
    reserve(stream, computed_.of_words, words_.size(), dim);
    reserve(stream, computed_.of_contexts, contexts_.size(), dim);
    if (computed_.losses.size() < groups) {
      stream.wait();
      computed_.losses = Array<std::int64_t>(stream.device(), groups);
    }
    auto const losses = computed_.losses.view().slice(0, groups);
    auto const of_words = computed_.of_words.view().slice(0, words_.size());
    auto const of_contexts = computed_.of_contexts.view().slice(0, contexts_.size());
    kernels::skip_gram(stream, {.words = rows[0],
                                .contexts = rows[1],
                                .word_rows = prepared.positions(0),
                                .context_rows = prepared.positions(1),
                                .windows = windows_,
                                .word_offsets = word_offsets_,
                                .context_offsets = context_offsets_,
                                .negatives = options_.negatives,
                                .shared_negatives = options_.shared_negatives,
                                .l2 = options_.l2,
                                .word_gradients = of_words,
                                .context_gradients = of_contexts,
                                .losses = losses});
    gradients_ = {{.sources = of_words}, {.sources = of_contexts}};
    return losses;
  }

  std::vector<TableGradients> gradients() const override { return gradients_; }

 private:
  static void reserve(Stream& stream, Matrix<float>& matrix, std::size_t rows, std::size_t dim) {
    if (matrix.rows() >= rows && matrix.columns() == dim) return;
    stream.wait();
    matrix = Matrix<float>(stream.device(), rows, dim);
  }

  Array<Key> words_, contexts_;
  Array<kernels::ContextWindow> windows_;
  Array<std::uint32_t> word_offsets_, context_offsets_;
  SkipGramOptions options_;
  SkipGramTask::SkipGramGradients& computed_;
  std::vector<TableGradients> gradients_;
};

}  // namespace

std::vector<std::string> skip_gram_model_names() { return {"skip_gram"}; }

SkipGramOptions skip_gram_options(SkipGramSettings const& settings, TrainConfig const& train) {
  return {.window = static_cast<std::uint32_t>(settings.window),
          .negatives = static_cast<std::uint32_t>(settings.negatives),
          .shared_negatives = static_cast<std::uint32_t>(settings.shared_negatives),
          .l2 = static_cast<float>(settings.l2),
          .subsample = 0,
          .seed = static_cast<std::uint64_t>(train.seed)};
}

std::vector<TableOptions> skip_gram_tables(Config const& config, std::string const& name, std::size_t rows,
                                           std::int64_t schedule_steps) {
  auto const dim = static_cast<std::size_t>(config.model.dim);
  TableOptions contexts = vector_table(config, "contexts", dim, rows, schedule_steps);
  // They start at 0, as in word2vec, so that the first gradients of words come from their neighbours.
  contexts.initializer = {Initializer::Kind::kConstant, 0};
  return {vector_table(config, name, dim, rows, schedule_steps), contexts};
}

void add_skip_gram(MemoryPlan& plan, SkipGramOptions const& options, std::vector<TableOptions> const& tables,
                   std::size_t groups, StepSizes const& step, Device device) {
  std::size_t const rows = tables[0].expected_rows, positions = groups * kGroupPositions;
  std::size_t const contexts = positions + groups * (options.shared_negatives + 2 * std::size_t{options.window});
  plan.push_back({.what = "odds of negatives", .bytes = rows * 2 * sizeof(double), .on_host = true, .with_task = true});
  BatchPart const parts[] = {
      {positions, std::min(rows, positions), tables[0], sizeof(Key) + sizeof(kernels::ContextWindow)},
      {contexts, std::min(rows, contexts), tables[1], sizeof(Key)},
  };
  add_batches(plan, parts, step, device, "model.shared_negatives or model.window");
  plan.push_back({"gradients of a step",
                  (positions + contexts) * row_stride(tables[0].dim) * sizeof(float) + groups * sizeof(std::int64_t),
                  "train.batch_size"});
}

SkipGramTask::SkipGramTask(SkipGramOptions const& options, Config const& config, std::string const& name,
                           std::size_t rows, std::int64_t schedule_steps)
    : tables_(skip_gram_tables(config, name, rows, schedule_steps)), options_(options) {}

std::unique_ptr<TaskStep> SkipGramTask::prepare(Stream& stream, Batch const& batch) {
  return std::make_unique<SkipGramStep>(stream, groups(batch), options_, computed_);
}

}  // namespace gpups::trainer
