// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/words/word_data.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "kernels/base/check.hpp"
#include "kernels/base/nvtx.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/base/random.hpp"
#include "trainer/tasks/common/nearest.hpp"
#include "trainer/tasks/words/held_out_text.hpp"
#include "trainer/tasks/words/word_kind.hpp"

namespace gpups::trainer {

namespace {

constexpr std::uint64_t kHeldOut = 6;  // the purpose of random bits

std::uint64_t digest_of(Corpus const& corpus, HeldOutWords const& valid, HeldOutWords const& test) {
  static_assert(sizeof(Analogy) == 20 && sizeof(HeldOutPair) == 8);
  std::uint64_t hash = corpus.digest();
  auto const add = [&hash](auto const& v) { hash = XXH3_64bits_withSeed(v.data(), v.size() * sizeof(v[0]), hash); };
  for (HeldOutWords const* split : {&valid, &test}) add(split->analogies.questions);
  for (HeldOutWords const* split : {&valid, &test}) {
    if (!split->pairs.empty()) add(split->pairs);
  }
  return hash;
}

}  // namespace

std::unique_ptr<WordData const> read_word_data(Config const& config) {
  std::filesystem::path const folder = config.data.folder;
  WordSettings const& settings = config.settings<WordSettings>();
  Corpus corpus = read_corpus(folder, config.data.train, static_cast<std::uint64_t>(settings.min_count));
  auto const seed = static_cast<std::uint64_t>(config.data.split_seed);
  auto const read = [&](std::string const& file, std::string_view split, double share) {
    HeldOutWords words;
    if (!file.empty()) {
      words.analogies = read_analogies(folder / file, corpus, static_cast<std::size_t>(settings.words_max));
      if (!words.analogies.notice.empty()) corpus.notices.push_back(words.analogies.notice);
      return words;
    }
    words.pairs = hold_out_blocks(corpus, share, RandomBits(seed, kHeldOut, split == "valid" ? 0 : 1));
    GPUPS_REQUIRE(share <= 0 || !words.pairs.empty(),
                  "data.{}_share holds out nothing of {} (nothing could be compared): choose a larger share, or 0",
                  split, with_count(corpus.total, "word"));
    return words;
  };
  double const test_share = config.data.test.empty() ? config.data.test_share : 0;
  double const valid_share = config.data.valid.empty() ? config.data.valid_share / (1 - test_share) : 0;
  HeldOutWords test = read(config.data.test, "test", test_share);
  HeldOutWords valid = read(config.data.valid, "valid", valid_share);
  return std::make_unique<WordData>(std::move(corpus), std::move(valid), std::move(test));
}

std::string HeldOutWords::text() const {
  return pairs.empty() ? with_count(analogies.questions.size(), "question") : with_count(pairs.size(), "pair");
}

std::uint64_t HeldOutWords::bytes() const {
  return analogies.questions.capacity() * sizeof(Analogy) + pairs.capacity() * sizeof(HeldOutPair);
}

WordData::WordData(Corpus corpus, HeldOutWords valid, HeldOutWords test)
    : corpus_(std::move(corpus)),
      valid_(std::move(valid)),
      test_(std::move(test)),
      digest_(digest_of(corpus_, valid_, test_)) {}

std::string WordData::summary() const {
  return fmt::format("{} in a text of {}; {} for validation, {} for the test",
                     with_count(corpus_.words.size(), "distinct word"), with_count(corpus_.total, "word"),
                     valid_.text(), test_.text());
}

SpeedUnit WordData::speed_unit() const {
  auto const& positions = corpus_.positions;  // without held-out ones
  auto const words =
      static_cast<std::int64_t>(positions.size()) - std::count(positions.begin(), positions.end(), Corpus::kLineEnd);
  return {.name = "words", .per_sample = static_cast<double>(words) / static_cast<double>(samples())};
}

nlohmann::json WordData::counts() const { return {{"words", corpus_.words.size()}, {"text_words", corpus_.total}}; }

MemoryPlan WordData::memory_plan(Config const& config, Device device, StepSizes const& step) const {
  auto const tables = skip_gram_tables(config, "words", corpus_.words.size(), 1);
  std::size_t const dim = tables[0].dim;
  MemoryPlan plan;
  plan.push_back({.what = "the data",
                  .bytes = corpus_.words.bytes() + corpus_.counts.size() * sizeof(std::uint64_t) +
                           corpus_.positions.capacity() * sizeof(std::uint32_t) + valid_.bytes() + test_.bytes(),
                  .on_host = true,
                  .taken = true});
  add_skip_gram(plan, word_options(config), tables, step.samples, step, device);
  if (!has("valid") && !has("test")) return plan;
  if (!valid_.pairs.empty() || !test_.pairs.empty()) {
    plan.push_back({"evaluation: rows of pairs", pair_bytes(row_stride(dim))});
  }
  if (valid_.analogies.empty() && test_.analogies.empty()) return plan;
  plan.push_back({"evaluation: vectors and scores",
                  std::max(analogy_bytes(valid_.analogies, dim), analogy_bytes(test_.analogies, dim)),
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
      sampler_(data.corpus(), word_options(config)),
      seed_(static_cast<std::uint64_t>(config.data.split_seed)) {}

Metrics WordTask::wait_evaluate(Stream& stream, Store& store, std::string_view split) {
  kernels::NvtxRange const range("evaluate");
  HeldOutWords const& words = data_.split(split);
  auto const& keys = data_.names().keys();
  if (!words.pairs.empty()) {
    return wait_compare_pairs(stream, store, words.pairs,
                              {.keys = keys, .draw = sampler_.negatives(), .may_be_pair = {}, .seed = seed_});
  }
  Analogies const& analogies = words.analogies;
  std::vector<Key> const candidates(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(analogies.words));
  Matrix<float> const rows = read_rows(stream, store, kVectorsTable, candidates);
  return wait_answer(stream, store, analogies, rows);
}

}  // namespace gpups::trainer
