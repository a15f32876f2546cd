// SPDX-License-Identifier: Apache-2.0
// The reading of a text: the numbers of its words, the ends of its lines, and words that two blocks of the file share.
#include "trainer/tasks/words/corpus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trainer/tasks/words/held_out_text.hpp"

namespace gpups::trainer::corpus_test {
namespace {

using test::expect_error;
using testing::ElementsAre;

constexpr std::uint32_t kEnd = Corpus::kLineEnd;

class CorpusTest : public testing::Test {
 protected:
  Corpus read(std::string const& text, std::uint64_t min_count = 1) const {
    return read_corpus(folder_.write("text.txt", text).parent_path(), "text.txt", min_count);
  }

  test::TemporaryFolder folder_;
};

std::vector<std::string> names_of(Corpus const& corpus) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < corpus.words.size(); ++i) names.emplace_back(corpus.words.name(i));
  return names;
}

TEST_F(CorpusTest, NumbersWordsByFrequencyAndThenByTheOrderOfTheText) {
  Corpus const corpus = read("d b a b c a b e\n");
  EXPECT_THAT(names_of(corpus), ElementsAre("b", "a", "d", "c", "e"));
  EXPECT_THAT(corpus.counts, ElementsAre(3, 2, 1, 1, 1));
  EXPECT_THAT(corpus.positions, ElementsAre(2, 0, 1, 0, 3, 1, 0, 4, kEnd));
  EXPECT_EQ(corpus.total, 8U);
  EXPECT_TRUE(corpus.notices.empty());
}

TEST_F(CorpusTest, LeavesOutRareWords) {
  Corpus const corpus = read("d b a b c a b e\ne\nx y\nz e", 2);
  EXPECT_THAT(names_of(corpus), ElementsAre("b", "e", "a"));
  EXPECT_THAT(corpus.counts, ElementsAre(3, 3, 2));
  // The third line has no words left, so it has no end either.
  EXPECT_THAT(corpus.positions, ElementsAre(0, 2, 0, 2, 0, 1, kEnd, 1, kEnd, 1, kEnd));
  EXPECT_EQ(corpus.total, 8U);
  EXPECT_THAT(corpus.notices, ElementsAre("left out 5 words with fewer than 2 occurrences: 38 % of the text"));
  EXPECT_EQ(read("d b a b c", 0).words.size(), 4U);
}

TEST_F(CorpusTest, LinesEndOnce) {
  std::vector<std::uint32_t> const want{0, 1, kEnd, 0, 1, 0, kEnd, 1, kEnd};
  for (char const* text : {"a b\na b a\nb\n", "a b\na b a\nb", "a b\r\na b a\r\nb\r\n",
                           "\n\na b\n\r\n \t\n\na\tb  a\r\nb\n\n", " a b \n a b a \nb \t"}) {
    EXPECT_EQ(read(text).positions, want) << text;
  }
}

// Each of the eight offsets puts another part of the text at the ends of blocks.
TEST_F(CorpusTest, ReadsWordsThatTwoBlocksShare) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  for (std::size_t blanks = 0; blanks < 8; ++blanks) {
    for (std::size_t const bytes : {kMiB, 2 * kMiB + kMiB / 2}) {
      std::string text(blanks, ' ');
      std::size_t lines = 0;
      for (; text.size() < bytes; ++lines) text += "abc def\n";
      text.pop_back();
      Corpus const corpus = read(text);
      ASSERT_THAT(names_of(corpus), ElementsAre("abc", "def")) << blanks << ", " << bytes;
      ASSERT_THAT(corpus.counts, ElementsAre(lines, lines));
      ASSERT_EQ(corpus.positions.size(), 3 * lines);
      std::size_t different = 0;
      for (std::size_t i = 0; i < corpus.positions.size(); ++i) {
        different += corpus.positions[i] != (i % 3 == 2 ? kEnd : i % 3);
      }
      EXPECT_EQ(different, 0U) << blanks << ", " << bytes;
    }
  }
}

TEST_F(CorpusTest, DigestDependsOnWordsOrderAndLines) {
  std::uint64_t const digest = read("a b a\nc b a\n").digest();
  EXPECT_EQ(read(" a\tb a \r\n\nc b a").digest(), digest);
  for (char const* text : {"a b a\nc b a a\n", "a a b\nc b a\n", "a b a c\nb a\n", "a b a c b a\n", "a b a\nd b a\n"}) {
    EXPECT_NE(read(text).digest(), digest) << text;
  }
}

TEST_F(CorpusTest, RejectsTextsWithoutWords) {
  expect_error([&] { read_corpus(folder_.path(), "none.txt", 1); }, {"none.txt cannot be opened"});
  expect_error([&] { read_corpus(folder_.path(), ".", 1); }, {"is a folder"});
  for (char const* text : {"", "\n\n", " \r\n\t"}) {
    expect_error([&] { read(text); }, {"text.txt has 0 words with at least 1 occurrence", "nothing to learn"});
  }
  expect_error([&] { read("a a a\na"); }, {"has 1 word with"});
  expect_error([&] { read("a b a b c c c", 3); }, {"has 1 word with at least 3 occurrences", "lower model.min_count"});
}

TEST_F(CorpusTest, RejectsTextsWithAWordInEachLine) {
  for (char const* text : {"a\nb\nc\na\n", "a\r\n\r\nb"}) {
    expect_error([&] { read(text); }, {"text.txt has no line with two of the words", "write a sentence or more"});
  }
  expect_error([&] { read("a x\nb y\na z\nb\n", 2); }, {"has no line with two of the words", "model.min_count"});
  EXPECT_EQ(read("a\nb a\n").positions.size(), 5U);
}

TEST_F(CorpusTest, SaysThatLinesHaveColumns) {
  std::string tagged, sentences;
  for (int i = 0; i < 24; ++i) {
    tagged += i % 6 == 5 ? "\n" : "word" + std::to_string(i % 4) + "\tTAG\n";
    sentences += i % 2 == 0 ? "two words\n" : "and three words\n";
  }
  EXPECT_TRUE(read(tagged.substr(0, 100)).notices.empty());
  tagged += "<s>\n" + tagged;
  EXPECT_THAT(read(tagged).notices,
              ElementsAre(testing::HasSubstr("40 of 41 lines of text.txt have 2 words each: if they are columns")));
  EXPECT_TRUE(read(sentences).notices.empty());
}

TEST_F(CorpusTest, SaysThatTextIsCsv) {
  for (char const* text : {
           "1,\"a film to see\",good\n2,\"not at all\",bad\n3,\"a \"\"film\"\"\",bad\n",
           "\"a film, to see\",good\n\"not at all\",bad\n\"a film\",bad\n",
           "\"3\",\"a film to see\"\n\"4\",\"not at all\"\n\"5\",\"a film\"\n",
           "id,review,sentiment\n1,\"a film\nto see\nat all\",good\n",
           "\"id\",\"review\"\n\"1\",\"a film\nto see\nat all\"\n",
           "review,sentiment\na film to see,good\nnot at all,bad\n",
           ",text\n0,a film to see\n1,not at all\n",
           "\"\",\"text\"\n\"0\",\"a film to see\"\n\"1\",\"not at all\"\n",
       }) {
    EXPECT_THAT(read(text).notices, ElementsAre(testing::HasSubstr("text.txt looks like CSV, as '"))) << text;
  }
  for (char const* text : {
           "\"Yes,\" she said, \"now.\"\n\"No,\" he said, \"never\",\n\"Oh,\" said a \"b\", c\n",
           "well,\nit cost 1,000\n2,000 or more\n3,000 at most\n",
           "a,b\nis a pair of words\nand that is all\n",
           ",b\nis a word\nand that is all\n",
           "[a, b] and [c]\n'a' or 'b'\n['a', b\n",
           "a film, to see\nnot, at all\nwell, yes\n",
       }) {
    EXPECT_TRUE(read(text).notices.empty()) << text;
  }
}

TEST_F(CorpusTest, SaysThatTextIsLists) {
  for (char const* text :
       {"['a', 'film']\n['to', 'see']\n['at']\n", "['a', 'film']\n[\"it's\", 'on']\n['at', \"it's\"]\n"}) {
    EXPECT_THAT(read(text).notices, ElementsAre(testing::HasSubstr("text.txt has lists of words, such as '["))) << text;
  }
}

TEST_F(CorpusTest, RejectsLongWords) {
  std::string const longest(std::size_t{1} << 16, 'x');
  EXPECT_THAT(names_of(read("a " + longest + " a\n")), ElementsAre("a", longest));
  expect_error([&] { read("a " + longest + "x a\n"); }, {"text.txt has a word of more than 64 KiB", "check the file"});
  expect_error([&] { read("a " + longest + longest + longest); }, {"more than 64 KiB"});
  expect_error([&] { read(std::string(std::size_t{3} << 20, 'x')); }, {"more than 64 KiB"});
}

// What stays has no neighbours across a gap, and a pair is of one block and one line.
TEST(HeldOutText, IsRemovedAsBlocks) {
  constexpr std::uint32_t kWords = 32'000, kLine = 100;
  Corpus corpus;
  for (std::uint32_t i = 0; i < kWords; ++i) corpus.positions.push_back(i % kLine == kLine - 1 ? Corpus::kLineEnd : i);
  std::vector<std::uint32_t> const whole = corpus.positions;
  std::vector<HeldOutPair> const pairs = hold_out_blocks(corpus, 0.2, RandomBits(3));
  EXPECT_NEAR(static_cast<double>(pairs.size()), 0.2 * kWords, 0.05 * kWords);
  std::set<std::uint32_t> held_out;
  for (auto const [first, second] : pairs) {
    EXPECT_LT(first, second);
    EXPECT_LE(second, first + 5);
    EXPECT_EQ(first / 32, second / 32);
    EXPECT_EQ(first / kLine, second / kLine);
    held_out.insert(first);
    held_out.insert(second);
  }
  for (std::size_t i = 0; i < corpus.positions.size(); ++i) {
    std::uint32_t const word = corpus.positions[i];
    if (word == Corpus::kLineEnd) continue;
    EXPECT_FALSE(held_out.contains(word));
    if (i > 0 && corpus.positions[i - 1] != Corpus::kLineEnd) {
      EXPECT_EQ(corpus.positions[i - 1], word - 1);
    }
  }
  corpus.positions = whole;
  EXPECT_EQ(hold_out_blocks(corpus, 0.2, RandomBits(3)), pairs);
  EXPECT_TRUE(hold_out_blocks(corpus, 0, RandomBits(3)).empty());
}

}  // namespace
}  // namespace gpups::trainer::corpus_test
