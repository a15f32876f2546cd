// SPDX-License-Identifier: Apache-2.0
// Runs on a text: vectors of words learn their topics and analogies, have the same bits on any number of ranks and
// threads, and can be resumed.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/run/train_fixture.hpp"
#include "trainer/base/random.hpp"
#include "trainer/run/saved_run.hpp"
#include "trainer/tasks/common/nearest.hpp"
#include "trainer/tasks/task_kinds.hpp"
#include "trainer/tasks/words/word_data.hpp"

namespace gpups::trainer::words_train_test {
namespace {

using test::expect_error;

constexpr std::uint64_t kTopics = 4, kTopicWords = 6;

// Sentences of twelve words of one topic. The words of topic 2 are t2w0 to t2w5.
std::string topic_text() {
  std::string text;
  for (std::uint64_t i = 0; i < 250; ++i) {
    for (std::uint64_t k = 0; k < 12; ++k) {
      text += fmt::format("t{}w{} ", random_bits(1, i) % kTopics, random_bits(2, i, k) % kTopicWords);
    }
    text += "\n";
  }
  return text;
}

// Sentences of a word and its two properties: x3y1 is between a3 and b1.
std::string property_text() {
  std::string text;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    std::uint64_t const a = random_bits(3, i) % 6, b = random_bits(4, i) % 4;
    text += fmt::format("a{} x{}y{} b{}\n", a, a, b, b);
  }
  return text;
}

// Analogies of these words: x0y1 is to x0y2 as x3y1 is to x3y2. The last two questions have unknown words.
std::string property_questions() {
  std::string text = ": properties\n";
  for (int a = 0; a < 5; ++a) {
    for (int b = 0; b < 3; ++b) text += fmt::format("X{0}y{1} x{0}y{2} x{3}y{1} x{3}y{2}\n", a, b, b + 1, a + 1);
  }
  return text + ": others\na0 b0 x0y0 unknown\nunknown a0 b0 x0y0\n";
}

class WordsTrainTest : public RunTest {
 protected:
  WordsTrainTest()
      : RunTest({"data.reader=text", "data.train=text.txt", "model.dim=16", "model.negatives=5", "model.window=3",
                 "model.init_scale=0.03", "model.subsample=0.01", "optimizer.learning_rate=0.1",
                 "train.batch_size=4"}) {
    folder_.write("text.txt", topic_text());
  }

  nlohmann::json run_with_questions(std::string const& name, Settings more) {
    folder_.write("text.txt", property_text());
    folder_.write("questions.txt", property_questions());
    more.insert(more.begin(), {"model.subsample=0", "model.window=1", "data.test=questions.txt"});
    return run(name, more);
  }
};

TEST_F(WordsTrainTest, LossFalls) {
  auto const summary = run("run", {"train.epochs=20", "run.report_every=5"});
  auto const reports = lines("run", "loss");
  EXPECT_LT(reports.back().at("loss").get<double>(), 0.8 * reports.front().at("loss").get<double>());
  EXPECT_EQ(summary.at("words"), kTopics * kTopicWords);
  EXPECT_EQ(summary.at("text_words"), 250 * 12);
  EXPECT_FALSE(summary.contains("test"));
}

// All words of the text count, in each epoch, also those that subsampling drops; ends of lines and rare words do not.
TEST_F(WordsTrainTest, SpeedIsInWords) {
  folder_.write("text.txt", topic_text() + "rare words\n");
  testing::internal::CaptureStderr();
  auto const summary = run("run", {"train.epochs=3", "model.min_count=2"});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::ContainsRegex("\n[0-9.]+[kM]? words/s; training took"));
  auto const total = [](nlohmann::json const& json, char const* key) {
    return json.at(key).get<double>() * json.at("train_seconds").get<double>();
  };
  EXPECT_NEAR(total(summary, "words_per_s"), 3 * 250 * 12, 1e-6);
  EXPECT_NEAR(total(summary, "samples_per_s"), summary.at("samples").get<double>(), 1e-6);
  double const words_of_sample = 3 * 250 * 12 / summary.at("samples").get<double>();
  for (auto const& line : lines("run", "loss")) {
    double const samples_per_s = line.at("samples_per_s");
    EXPECT_NEAR(line.at("words_per_s").get<double>() / samples_per_s, words_of_sample, 1e-9);
  }
}

TEST_F(WordsTrainTest, NearestWordsHaveTheSameTopic) {
  run("run", {"train.epochs=20", "run.ranks=2"});
  SavedRun const saved = open_run(folder_.path() / "run", {});
  Dictionary const& words = dynamic_cast<WordData const&>(*saved.data).corpus().words;
  Session session = open_session(saved.saved.config, *saved.data, Group::alone(), saved.plan());
  wait_restore(session, saved.checkpoint);
  Stream stream = session.store.make_stream();
  Matrix<float> const rows = read_rows(stream, session.store, kVectorsTable, words.keys());
  for (std::uint32_t word = 0; word < words.size(); ++word) {
    for (Neighbour const& near : nearest(rows, word, kTopicWords - 1)) {
      std::string_view const name = words.name(near.entity);
      EXPECT_EQ(name.substr(0, 2), words.name(word).substr(0, 2)) << words.name(word) << ", " << name;
    }
  }
}

TEST_F(WordsTrainTest, AnswersAnalogies) {
  auto const summary = run_with_questions("run", {"data.valid=questions.txt"});
  for (char const* split : {"valid", "test"}) {
    auto const& json = summary.at(split);
    EXPECT_EQ(json.at("questions"), 15) << split;
    EXPECT_EQ(json.at("left_out"), 2) << split;
    EXPECT_GT(json.at("accuracy").get<double>(), 0.7) << split;
    EXPECT_EQ(json.at("sections"), nlohmann::json({{"properties", json.at("accuracy")}})) << split;
  }
  // The first step changes contexts only, because they start at 0.
  EXPECT_LT(run_with_questions("untrained", {"train.steps=1"}).at("test").at("accuracy").get<double>(), 0.4);
  SavedRun const saved = open_run(folder_.path() / "run", {});
  for (int ranks : {1, 3}) {
    run_ranks(Group::threads(ranks),
              [&](Group group) { EXPECT_EQ(wait_evaluate_run(saved, group, "test").json, summary.at("test")); });
  }
}

TEST_F(WordsTrainTest, CandidatesAreTheMostFrequentWords) {
  auto const summary = run_with_questions("run", {"train.steps=2", "eval.words_max=30"});
  EXPECT_LT(summary.at("test").at("questions"), 15);
  EXPECT_EQ(summary.at("test").at("questions").get<int>() + summary.at("test").at("left_out").get<int>(), 17);
}

TEST_F(WordsTrainTest, BitsAreIndependentOfRanksAndThreads) {
  auto const alone = result(run("alone", {}));
  EXPECT_EQ(result(run("ranks2", {"run.ranks=2"})), alone);
  EXPECT_EQ(result(run("ranks3", {"run.ranks=3"})), alone);
  EXPECT_EQ(result(run("ranks4", {"run.ranks=4", "run.threads=2"})), alone);
  EXPECT_EQ(result(run("threads", {"run.threads=2"})), alone);
  EXPECT_EQ(result(run("ahead", {"train.lookahead=1"})), alone);
  EXPECT_EQ(result(run("inline", {"train.prefetch_thread=false", "run.ranks=2"})), alone);
  auto const group = Group::simulated(3, {.seed = 1});
  EXPECT_EQ(result(run_on(group, "simulated", {"train.prefetch_thread=false"})), alone);
  EXPECT_EQ(result(run_with_questions("test2", {"run.ranks=2"})), result(run_with_questions("test1", {})));
}

TEST_F(WordsTrainTest, EachOptionOfTheModelHasAnEffect) {
  auto const hash = [&](char const* name, Settings const& settings) {
    return run(name, settings).at("table_hash").get<std::string>();
  };
  std::string const usual = hash("usual", {"train.steps=5"});
  for (char const* setting :
       {"model.window=2", "model.negatives=6", "model.shared_negatives=9", "model.l2=0.01", "model.subsample=0",
        "model.min_count=120", "model.init_scale=0.01", "model.value_type=bfloat16", "train.seed=2"}) {
    EXPECT_NE(hash(setting, {"train.steps=5", setting}), usual) << setting;
  }
}

// Subsampling drops almost all words, so most steps have none.
TEST_F(WordsTrainTest, StepsMayHaveNoWords) {
  auto const alone = run("alone", {"model.subsample=1e-9", "train.batch_size=1"});
  EXPECT_LT(alone.at("loss").get<double>(), 0.1);
  EXPECT_EQ(result(run("ranks3", {"model.subsample=1e-9", "train.batch_size=1", "run.ranks=3"})), result(alone));
}

TEST_F(WordsTrainTest, ResumedRunEqualsUninterruptedRun) {
  auto whole = result(run("whole", {"train.steps=60"}));
  run("run", {"train.steps=37", "run.ranks=3"});  // in the second epoch
  auto resumed = result(run("run", {"train.steps=60", "run.ranks=2"}, true));
  for (auto* one : {&whole, &resumed}) one->erase("loss");  // since the last report
  EXPECT_EQ(resumed, whole);
  expect_error(
      [&] {
        run("run", {"train.steps=61", "model.window=2"}, true);
      },
      {"model.window = 3, and the configuration sets 2"});
  folder_.write("text.txt", topic_text() + "t0w0 t0w1\n");
  expect_error([&] { run("run", {"train.steps=61"}, true); }, {"other data"});
}

TEST_F(WordsTrainTest, RejectsSettingsWithoutEffect) {
  for (char const* setting : {"model.n3=0.1",           "model.loss=softmax",       "model.sampling=shared",
                              "model.biases=true",      "model.wide=true",          "model.admission_count=2",
                              "model.top=[8]",          "model.margin=2",           "eval.hits=[1]",
                              "eval.samples_max=5",     "eval.progressive=true",    "linear.kind=sgd",
                              "dense.optimizer=sgd",    "data.numeric_columns=3",   "placement.initial=graph",
                              "train.expire_after=9",   "train.reuse_batches=true", "run.reader_threads=1",
                              "data.bad_share_max=0.1", "eval.words_max=9"}) {
    expect_error([&] { config({setting}); }, {setting, "has no effect here"});
  }
  expect_error([&] { config({"model.name=complex"}); }, {"data.reader is \"text\"", "use one of skip_gram"});
  expect_error([&] { parse_config("[data]\nreader = 'text'\n", "run.toml", "/", {}); },
               {"data.train is empty", "set it to a file"});
}

// Words of a sentence have one topic, so pairs of a held-out part are nearer than those by chance.
TEST_F(WordsTrainTest, HeldOutTextHasAnAuc) {
  Settings const held_out{"train.epochs=6", "data.valid_share=0.1", "data.test_share=0.2"};
  auto const with = [&](std::string const& setting) {
    Settings settings = held_out;
    settings.push_back(setting);
    return run(setting, settings);
  };
  auto const alone = with("run.ranks=1"), three = with("run.ranks=3");
  for (auto const& [split, pairs] : {std::pair("valid", 250.0), std::pair("test", 500.0)}) {
    EXPECT_GT(alone.at(split).at("auc").get<double>(), 0.8) << split;
    EXPECT_NEAR(alone.at(split).at("pairs").get<double>(), pairs, 100) << split;
    EXPECT_EQ(three.at(split), alone.at(split));
  }
  EXPECT_LT(alone.at("samples"), run("whole", {"train.epochs=6"}).at("samples"));
  EXPECT_LT(with("optimizer.learning_rate=1e-9").at("test").at("auc").get<double>(), 0.7);
  expect_error([&] { run("none", {"data.valid_share=1e-9"}); }, {"data.valid_share holds out nothing", "larger share"});
  folder_.write("questions.txt", "t0w0 t0w1 t0w2 t0w3\n");
  expect_error([&] { config({"data.valid=questions.txt", "data.valid_share=0.1"}); }, {"data.valid has the samples"});
}

TEST_F(WordsTrainTest, ReportsTheDataItRead) {
  testing::internal::CaptureStderr();
  run_with_questions("run", {"train.steps=1"});
  std::string const text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, testing::HasSubstr("34 distinct words in a text of 6000 words; 0 questions for validation, 15 "));
  EXPECT_THAT(text, testing::HasSubstr("1 step of 4 groups"));
  EXPECT_THAT(text, testing::ContainsRegex("test accuracy [0-9.]+ of 15 questions"));
}

// Words of held-out text only, and words that are alone in their lines, have no neighbours.
TEST_F(WordsTrainTest, WordsThatTrainingHasNotUsedHaveNoVectors) {
  std::string text = "alone\n";
  for (std::uint64_t i = 0; i < 250; ++i) text += fmt::format("t0w0 t0w{} once{} t0w2 t0w3\n", i % 3, i);
  folder_.write("text.txt", text);
  run("run", {"data.valid_share=0.3", "model.min_count=1", "model.subsample=0", "train.epochs=2"});
  SavedRun const saved = open_run(folder_.path() / "run", {});
  Corpus const& corpus = dynamic_cast<WordData const&>(*saved.data).corpus();
  std::vector<bool> used(corpus.words.size());
  for (std::uint32_t const word : corpus.positions) {
    if (word != Corpus::kLineEnd) used[word] = true;
  }
  used[*corpus.words.find("alone")] = false;
  auto const count = static_cast<std::size_t>(std::count(used.begin(), used.end(), true));
  EXPECT_LT(count, 230U);
  EXPECT_THAT(
      export_run(folder_.path() / "run", {}, folder_.path() / "out", ModelFormat::kWord2vec),
      testing::ElementsAre(fmt::format("left out {} words of {}, which training has not seen: they have no rows",
                                       used.size() - count, used.size())));
  std::ifstream vectors(folder_.path() / "out" / "vectors.txt");
  std::size_t rows = 0;
  vectors >> rows;
  EXPECT_EQ(rows, count);
  std::vector<std::string> notices;
  std::string const near = nearest_in_run(saved, {{.name = "t0w0"}}, 1000, notices);
  EXPECT_EQ(static_cast<std::size_t>(std::count(near.begin(), near.end(), '\n')), count);  // the word, and all others
  for (std::uint32_t word = 0; word < used.size(); ++word) {
    EXPECT_EQ(near.find(fmt::format("  {}\n", corpus.words.name(word))) != near.npos, used[word] && word > 0);
  }
  expect_error([&] { nearest_in_run(saved, {{.name = "alone"}}, 3, notices); }, {"'alone' was not used in training"});
}

}  // namespace
}  // namespace gpups::trainer::words_train_test
