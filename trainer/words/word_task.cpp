// SPDX-License-Identifier: Apache-2.0
#include "trainer/words/word_task.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/nvtx.hpp"
#include "trainer/graph/entity_matrix.hpp"
#include "trainer/table_settings.hpp"

namespace gpups::trainer {
namespace {

class WordStep : public TaskStep {
 public:
  WordStep(Stream& stream, WordGroups const& groups, std::uint32_t negatives, WordTask::SkipGramGradients& computed)
      : words_(to_device(stream, groups.words)),
        contexts_(to_device(stream, groups.contexts)),
        windows_(to_device(stream, groups.windows)),
        word_offsets_(to_device(stream, groups.word_offsets)),
        context_offsets_(to_device(stream, groups.context_offsets)),
        negatives_(negatives),
        computed_(computed) {}

  std::vector<TableBatch> tables() const override {
    return {{.table = kWordsTable, .keys = words_}, {.table = kContextsTable, .keys = contexts_}};
  }

  std::int64_t forward_backward(Stream& stream, PreparedBatch const& prepared,
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
                                .negatives = negatives_,
                                .word_gradients = of_words,
                                .context_gradients = of_contexts,
                                .losses = losses});
    gradients_ = {{.sources = of_words}, {.sources = of_contexts}};
    std::vector<std::int64_t> const all = to_host(stream, View<std::int64_t const>(losses));
    return std::accumulate(all.begin(), all.end(), std::int64_t{0});
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
  std::uint32_t negatives_;
  WordTask::SkipGramGradients& computed_;
  std::vector<TableGradients> gradients_;
};

}  // namespace

SkipGramOptions skip_gram_options(Config const& config) {
  return {.window = static_cast<std::uint32_t>(config.model.window),
          .negatives = static_cast<std::uint32_t>(config.model.negatives),
          .subsample = config.model.subsample,
          .seed = static_cast<std::uint64_t>(config.train.seed)};
}

std::vector<TableOptions> word_tables(Config const& config, std::size_t words, std::int64_t schedule_steps) {
  auto const table = [&](char const* name, Initializer const& initial) {
    return TableOptions{.name = name,
                        .dim = static_cast<std::size_t>(config.model.dim),
                        .initializer = initial,
                        .optimizer = row_optimizer(config.optimizer),
                        .schedule = schedule(config.optimizer, schedule_steps),
                        .expected_rows = words,
                        .value_type = row_value_type(config.model)};
  };
  // Contexts start at 0, as in word2vec, so that the first gradients of words come from their neighbours.
  return {table("words", initializer(config.model)), table("contexts", {Initializer::Kind::kConstant, 0})};
}

WordTask::WordTask(WordData const& data, Config const& config, std::int64_t schedule_steps)
    : data_(data),
      config_(config),
      schedule_steps_(schedule_steps),
      sampler_(data.corpus(), skip_gram_options(config)) {}

std::vector<TableOptions> WordTask::tables() const {
  return word_tables(config_, data_.corpus().words.size(), schedule_steps_);
}

std::unique_ptr<TaskStep> WordTask::prepare(Stream& stream, Batch const& batch) {
  auto const negatives = static_cast<std::uint32_t>(config_.model.negatives);
  return std::make_unique<WordStep>(stream, sampler_.groups(batch), negatives, computed_);
}

Metrics WordTask::wait_evaluate(Stream& stream, Store& store, std::string_view split) {
  kernels::NvtxRange const range("evaluate");
  Analogies const& analogies = data_.split(split);
  auto const& keys = data_.corpus().words.keys();
  std::vector<Key> const candidates(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(analogies.words));
  Matrix<float> const rows = read_rows(stream, store, kWordsTable, candidates);
  return wait_answer(stream, store, analogies, rows);
}

}  // namespace gpups::trainer
