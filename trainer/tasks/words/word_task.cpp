// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/words/word_task.hpp"

#include <vector>

#include "kernels/base/nvtx.hpp"
#include "trainer/tasks/common/entity_matrix.hpp"
#include "trainer/tasks/words/word_kind.hpp"

namespace gpups::trainer {

SkipGramOptions word_options(Config const& config) {
  WordSettings const& settings = config.settings<WordSettings>();
  SkipGramOptions options = skip_gram_options(settings.skip_gram, config.train);
  options.subsample = settings.subsample;
  return options;
}

WordTask::WordTask(WordData const& data, Config const& config, std::int64_t schedule_steps)
    : SkipGramTask(word_options(config), config, "words", data.names().size(), schedule_steps),
      data_(data),
      sampler_(data.corpus(), word_options(config)) {}

Metrics WordTask::wait_evaluate(Stream& stream, Store& store, std::string_view split) {
  kernels::NvtxRange const range("evaluate");
  Analogies const& analogies = data_.split(split);
  auto const& keys = data_.names().keys();
  std::vector<Key> const candidates(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(analogies.words));
  Matrix<float> const rows = read_rows(stream, store, kVectorsTable, candidates);
  return wait_answer(stream, store, analogies, rows);
}

}  // namespace gpups::trainer
