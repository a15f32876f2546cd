// SPDX-License-Identifier: Apache-2.0
// Files of questions about analogies, and answers by hand-made vectors on any number of ranks.
#include "trainer/tasks/words/analogies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::trainer::analogies_test {
namespace {

using test::expect_error;
using testing::ElementsAre;

Corpus corpus_of(std::vector<char const*> const& words) {
  Corpus corpus;
  for (char const* word : words) {
    corpus.words.add(word);
    corpus.counts.push_back(1);
    ++corpus.total;
  }
  return corpus;
}

class ReadAnalogies : public testing::Test {
 protected:
  Analogies read(std::string const& text, std::size_t words_max = 100) const {
    return read_analogies(folder_.write("questions.txt", text), corpus_, words_max);
  }

  test::TemporaryFolder folder_;
  Corpus const corpus_ = corpus_of({"man", "woman", "king", "queen", "Turkey", "turkey", "rare"});
};

std::vector<std::uint32_t> numbers_of(Analogy const& question) {
  return {question.a, question.b, question.c, question.answer};
}

TEST_F(ReadAnalogies, ReadsSectionsAndFindsWordsInLowerCase) {
  Analogies const analogies =
      read(": family\nman woman king queen\n\n: none\r\n: capital\n Man\tKING  woman Queen \r\n");
  EXPECT_THAT(analogies.sections, ElementsAre("family", "none", "capital"));
  ASSERT_EQ(analogies.questions.size(), 2U);
  EXPECT_THAT(numbers_of(analogies.questions[0]), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(analogies.questions[0].section, 0U);
  EXPECT_THAT(numbers_of(analogies.questions[1]), ElementsAre(0, 2, 1, 3));
  EXPECT_EQ(analogies.questions[1].section, 2U);
  EXPECT_EQ(analogies.left_out, 0U);
  EXPECT_EQ(analogies.words, 7U);
  EXPECT_FALSE(analogies.empty());
  EXPECT_TRUE(Analogies{}.empty());
}

TEST_F(ReadAnalogies, PrefersTheWordAsItIsWritten) {
  Analogies const analogies = read("man Turkey king turkey\nman TURKEY king queen");
  EXPECT_THAT(analogies.sections, ElementsAre("all"));
  EXPECT_THAT(numbers_of(analogies.questions.at(0)), ElementsAre(0, 4, 2, 5));
  EXPECT_THAT(numbers_of(analogies.questions.at(1)), ElementsAre(0, 5, 2, 3));
}

TEST_F(ReadAnalogies, LeavesOutQuestionsWithOtherWordsThanTheCandidates) {
  std::string const text = "man woman king queen\nman woman king rare\nman unknown king queen\n";
  Analogies const all = read(text), frequent = read(text, 6);
  EXPECT_EQ(all.questions.size(), 2U);
  EXPECT_EQ(all.left_out, 1U);
  EXPECT_EQ(frequent.questions.size(), 1U);
  EXPECT_EQ(frequent.left_out, 2U);
  EXPECT_EQ(frequent.words, 6U);
}

TEST_F(ReadAnalogies, SaysThatTheFirstLineMayBeAHeading) {
  Analogies const analogies = read("one two three four\nman woman king queen\n");
  EXPECT_EQ(analogies.left_out, 1U);
  EXPECT_THAT(analogies.notice, testing::HasSubstr("may be a heading, since the text has no word of it: 'one two three "
                                                   "four'"));
  EXPECT_EQ(read("man two three four\nman woman king queen\n").notice, "");
  EXPECT_EQ(read("man woman king queen\none two three four\n").notice, "");
  EXPECT_EQ(read(": some\none two three four\nman woman king queen\n").notice, "");
}

TEST_F(ReadAnalogies, RejectsOtherLines) {
  expect_error([&] { read(": family\nman woman king\n"); }, {"questions.txt:2 has 3 words", "correct the line"});
  expect_error([&] { read("man woman king queen\nman woman king queen man\n"); }, {"questions.txt:2 has 5 words"});
  expect_error([&] { read("man\n"); }, {"questions.txt:1 has 1 word ("});
  expect_error([&] { read(""); }, {"questions.txt has no question", "raise eval.words_max"});
  expect_error([&] { read("man woman king queen\n", 3); }, {"among the 3 most frequent"});
  expect_error([&] { read_analogies(folder_.path() / "none.txt", corpus_, 9); }, {"none.txt cannot be opened"});
}

// Vectors for which man is to woman as king is to queen. Their lengths differ, and without the division by them
// "large" would be the answer to every question.
std::vector<std::vector<float>> family_vectors() {
  return {{0, 2, 0, 2},      // man
          {0, 0, 1, 1},      // woman
          {3, 3, 0, 3},      // king
          {1, 0, 1, 1},      // queen
          {90, 90, 90, 90},  // large
          {0, 0, 0, 0}};
}

enum : std::uint32_t { kMan, kWoman, kKing, kQueen, kLarge, kZeros };

Analogies questions_of(std::vector<Analogy> questions, std::size_t words) {
  return {.sections = {"right", "wrong", "none"}, .questions = std::move(questions), .left_out = 3, .words = words};
}

Metrics answer(std::vector<std::vector<float>> const& vectors, Analogies const& analogies, Group const& group) {
  Store store(group, {.threads = 1});
  store.add_table({.name = "table", .dim = 1});
  Stream stream = store.make_stream();
  Matrix<float> const rows(Device::host(), vectors.size(), vectors[0].size());
  for (float& x : rows.view().flat()) x = 0;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    std::copy(vectors[i].begin(), vectors[i].end(), rows.row(i).begin());
  }
  return wait_answer(stream, store, analogies, rows);
}

double accuracy(std::vector<std::vector<float>> const& vectors, Analogy const& question) {
  return answer(vectors, questions_of({question}, vectors.size()), Group::alone()).quality;
}

TEST(Answers, AreTheNearestWordsByCosine) {
  auto const vectors = family_vectors();
  EXPECT_EQ(accuracy(vectors, {kMan, kWoman, kKing, kQueen, 0}), 1);
  EXPECT_EQ(accuracy(vectors, {kMan, kKing, kWoman, kQueen, 0}), 1);
  EXPECT_EQ(accuracy(vectors, {kWoman, kMan, kQueen, kKing, 0}), 1);
  EXPECT_EQ(accuracy(vectors, {kMan, kWoman, kKing, kLarge, 0}), 0);
  EXPECT_EQ(accuracy(vectors, {kKing, kMan, kLarge, kQueen, 0}), 0);
  EXPECT_EQ(accuracy(vectors, {kMan, kWoman, kKing, kZeros, 0}), 0);
}

// A word with the vector of the answer is as near, so the answer is not unique.
TEST(Answers, AreWrongForTiesAndForNan) {
  auto vectors = family_vectors();
  vectors[kZeros] = vectors[kQueen];
  EXPECT_EQ(accuracy(vectors, {kMan, kWoman, kKing, kQueen, 0}), 0);
  vectors = family_vectors();
  vectors[kQueen][2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(accuracy(vectors, {kMan, kWoman, kKing, kQueen, 0}), 0);
  vectors = family_vectors();
  vectors[kMan][0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(accuracy(vectors, {kMan, kWoman, kKing, kQueen, 0}), 0);
}

// There are more questions than are answered together, and more words than a tile of rank_scores().
TEST(Answers, AreEqualOnAnyRanks) {
  auto vectors = family_vectors();
  for (int i = 0; i < 5000; ++i) vectors.push_back({-1, static_cast<float>(i % 7), -2, static_cast<float>(-i % 11)});
  std::vector<Analogy> questions;
  for (int i = 0; i < 1000; ++i) {
    questions.push_back(i % 4 == 0 ? Analogy{kMan, kWoman, kKing, kLarge, 1} : Analogy{kMan, kWoman, kKing, kQueen, 0});
  }
  Analogies const analogies = questions_of(questions, vectors.size());
  Metrics const alone = answer(vectors, analogies, Group::alone());
  EXPECT_EQ(
      alone.json,
      nlohmann::json(
          {{"accuracy", 0.75}, {"questions", 1000}, {"left_out", 3}, {"sections", {{"right", 1.0}, {"wrong", 0.0}}}}));
  EXPECT_EQ(alone.quality, 0.75);
  EXPECT_THAT(alone.text, testing::HasSubstr("accuracy 0.7500 of 1000 questions (3 with other words than the 5006"));
  for (int ranks : {2, 3}) {
    std::mutex mutex;
    int answered = 0;
    run_ranks(Group::threads(ranks), [&](Group group) {
      Metrics const mine = answer(vectors, analogies, group);
      std::lock_guard const lock(mutex);
      ++answered;
      EXPECT_EQ(mine.json, alone.json) << ranks;
      EXPECT_EQ(mine.text, alone.text) << ranks;
    });
    EXPECT_EQ(answered, ranks);
  }
}

}  // namespace
}  // namespace gpups::trainer::analogies_test
