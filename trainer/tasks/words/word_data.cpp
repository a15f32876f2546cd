// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/words/word_data.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <filesystem>
#include <vector>

#include "kernels/base/nvtx.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/tasks/common/nearest.hpp"
#include "trainer/tasks/words/word_kind.hpp"

namespace gpups::trainer {

namespace {

std::uint64_t digest_of(Corpus const& corpus, Analogies const& valid, Analogies const& test) {
  static_assert(sizeof(Analogy) == 20);
  std::uint64_t hash = corpus.digest();
  for (auto const* questions : {&valid.questions, &test.questions}) {
    hash = XXH3_64bits_withSeed(questions->data(), questions->size() * sizeof(Analogy), hash);
  }
  return hash;
}

}  // namespace

std::unique_ptr<WordData const> read_word_data(Config const& config) {
  std::filesystem::path const folder = config.data.folder;
  WordSettings const& settings = config.settings<WordSettings>();
  Corpus corpus = read_corpus(folder, config.data.train, static_cast<std::uint64_t>(settings.min_count));
  auto const read = [&](std::string const& file) {
    if (file.empty()) return Analogies{};
    return read_analogies(folder / file, corpus, static_cast<std::size_t>(settings.words_max));
  };
  Analogies valid = read(config.data.valid), test = read(config.data.test);
  return std::make_unique<WordData>(std::move(corpus), std::move(valid), std::move(test));
}

WordData::WordData(Corpus corpus, Analogies valid, Analogies test)
    : corpus_(std::move(corpus)),
      valid_(std::move(valid)),
      test_(std::move(test)),
      digest_(digest_of(corpus_, valid_, test_)) {}

std::string WordData::summary() const {
  return fmt::format("{} in a text of {}; {} for validation, {} for the test",
                     with_count(corpus_.words.size(), "distinct word"), with_count(corpus_.total, "word"),
                     with_count(valid_.questions.size(), "question"), test_.questions.size());
}

SpeedUnit WordData::speed_unit() const {
  return {.name = "words", .per_sample = static_cast<double>(corpus_.total) / static_cast<double>(samples())};
}

nlohmann::json WordData::counts() const { return {{"words", corpus_.words.size()}, {"text_words", corpus_.total}}; }

MemoryPlan WordData::memory_plan(Config const& config, Device device, StepSizes const& step) const {
  auto const tables = skip_gram_tables(config, "words", corpus_.words.size(), 1);
  std::size_t const dim = tables[0].dim;
  MemoryPlan plan;
  plan.push_back({.what = "the data",
                  .bytes = corpus_.words.bytes() + corpus_.counts.size() * sizeof(std::uint64_t) +
                           corpus_.positions.capacity() * sizeof(std::uint32_t) +
                           (valid_.questions.capacity() + test_.questions.capacity()) * sizeof(Analogy),
                  .on_host = true,
                  .taken = true});
  add_skip_gram(plan, word_options(config), tables, step.samples, step, device);
  if (!has("valid") && !has("test")) return plan;
  plan.push_back({"evaluation: vectors and scores", std::max(analogy_bytes(valid_, dim), analogy_bytes(test_, dim)),
                  "eval.words_max"});
  plan.push_back(
      {"evaluation: a look-up", std::min(kKeysAtOnce, corpus_.words.size()) * row_stride(dim) * sizeof(float)});
  return plan;
}

std::unique_ptr<Task> WordData::make_task(Config const& config, TaskContext const& context) const {
  return std::make_unique<WordTask>(*this, config, context.schedule_steps);
}

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
