// SPDX-License-Identifier: Apache-2.0
// Reads lines of three names. Other lines are counted, reported, and rejected if there are more than a limit.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trainer/input/line_reader.hpp"
#include "trainer/tasks/graph/reader.hpp"

namespace gpups::trainer::triples_reader_test {
namespace {

using test::expect_error;
using test::TemporaryFolder;

// A configuration that has only a training file.
DataConfig only_train(TemporaryFolder const& folder, std::string_view text) {
  folder.write("train.txt", text);
  return {.folder = folder.path().string(), .valid = "", .test = ""};
}

TEST(TriplesReader, NumbersNamesAndKeepsOrder) {
  TemporaryFolder const folder;
  Dataset const d = read_triples(only_train(folder, "a\tlikes\tb\nb\tknows\ta\na c\tlikes\t\xC3\xA9\n"));
  EXPECT_EQ(d.train, (std::vector<Triple>{{0, 0, 1}, {1, 1, 0}, {2, 0, 3}}));
  EXPECT_EQ(d.entities.name(2), "a c");
  EXPECT_EQ(d.entities.name(3), "\xC3\xA9");
  EXPECT_EQ(d.relations.name(1), "knows");
  EXPECT_TRUE(d.notices.empty());
}

// Files of OpenKE have the relation last.
TEST(TriplesReader, SaysThatRelationsMayBeObjects) {
  TemporaryFolder const folder;
  char const* const triples = "0\t1\t0\n1\t2\t0\n2\t3\t1\n3\t4\t0\n4\t0\t1\n";
  DataConfig config = only_train(folder, triples);
  EXPECT_THAT(read_triples(config).notices, testing::Contains(testing::HasSubstr("5 relations and 2 objects")));
  config.table.columns = {"1", "3", "2"};
  EXPECT_THAT(read_triples(config).notices, testing::Each(testing::Not(testing::HasSubstr("relations"))));
}

// The columns are told by their numbers of names, or by relations that are entities.
TEST(TriplesReader, SaysWhichColumnMayHaveTheRelations) {
  using testing::Contains, testing::Each, testing::HasSubstr, testing::Not;
  TemporaryFolder const folder;
  std::string first, last, usual, numbers, shared;
  for (int i = 0; i < 40; ++i) {
    std::string const s = fmt::format("e{}", i % 20), r = fmt::format("r{}", i % 3), o = fmt::format("e{}", i * 3 % 10);
    first += fmt::format("{}\t{}\t{}\n", r, s, o);
    last += fmt::format("{}\t{}\t{}\n", s, o, r);
    usual += fmt::format("{}\t{}\t{}\n", s, r, o);
    numbers += fmt::format("{}\t{}\t{}\n", i % 20, i % 8, i * 3 % 10);
    shared += fmt::format("r{}\te{}\te{}\n", i % 5, i % 5, i * 3 % 5);  // as many relations as entities
  }
  auto const notices = [&](std::string const& text) { return read_triples(only_train(folder, text)).notices; };
  for (std::string const* text : {&first, &shared}) {
    EXPECT_THAT(notices(*text), Contains(HasSubstr("set data.columns to [\"2\", \"1\", \"3\"]"))) << *text;
  }
  EXPECT_THAT(notices(first), Contains(HasSubstr("have 20 relations and 3 subjects, and 10 of the relations are obj")));
  EXPECT_THAT(notices(last), Contains(HasSubstr("set data.columns to [\"1\", \"3\", \"2\"]")));
  for (std::string const& text : {usual, numbers, "head\trelation\ttail\n" + shared}) {
    EXPECT_THAT(notices(text), Each(Not(HasSubstr("data.columns")))) << text;
  }
}

TEST(TriplesReader, SaysThatNamesStandForMissingValues) {
  TemporaryFolder const folder;
  Dataset const d = read_triples(only_train(folder, "1\tr\tNULL\n1.0\tr\tnan\n"));
  EXPECT_THAT(d.notices, testing::Contains(testing::HasSubstr("the entity 'NULL' is read as a name")));
  EXPECT_THAT(d.notices, testing::Contains(testing::HasSubstr("the entity '1.0' is not '1'")));
  EXPECT_TRUE(read_triples(only_train(folder, "1.0\tr\t2.0\nNULLs\tr\t.0\n")).notices.empty());
}

TEST(TriplesReader, AcceptsByteOrderMarkAndAnyLineEnd) {
  TemporaryFolder const folder;
  Dataset const d = read_triples(only_train(folder,
                                            "\xEF\xBB\xBF"
                                            "a\tr\tb\r\nb\tr\ta\nb\tr\tb"));
  EXPECT_EQ(d.train, (std::vector<Triple>{{0, 0, 1}, {1, 0, 0}, {1, 0, 1}}));
  EXPECT_EQ(d.entities.name(0), "a");
}

TEST(TriplesReader, RejectsBadLinesAndNamesTheFirst) {
  TemporaryFolder const folder;
  expect_error(
      [&] { read_triples(only_train(folder, "a\tr\tb\na r b\na\tr\n\ta\tr\tb\tc\n\tr\tb\na\tr\tc\n")); },
      {"4 bad lines of 6", "train.txt:2 has 1 field, none for relation", "train.txt:3 has 2 fields, none for object",
       "train.txt:4 has 5 fields instead of 3", "...", "subject, relation and object, separated by tabs"});
  expect_error([&] { read_triples(only_train(folder, "a\tr\tb\na\t\tb\n")); },
               {"train.txt:2 has an empty field for relation"});
}

TEST(TriplesReader, SkipsBadLinesUpToTheLimit) {
  TemporaryFolder const folder;
  DataConfig config = only_train(folder, "a\tr\tb\nbad\na\tr\tc\nworse\n\n");
  config.bad_share_max = 0.5;
  Dataset const d = read_triples(config);
  EXPECT_EQ(d.train.size(), 2U);
  ASSERT_EQ(d.notices.size(), 1U);
  EXPECT_NE(d.notices[0].find("2 bad lines of 4"), std::string::npos) << d.notices[0];
  config.bad_share_max = 0.49;
  expect_error([&] { read_triples(config); }, {"data.bad_share_max"});
}

TEST(TriplesReader, HeldOutTriplesMayHaveUnseenNames) {
  TemporaryFolder const folder;
  DataConfig config = only_train(folder, "a\tr\tb\n");
  folder.write("valid.txt", "b\tr\ta\nb\tr\tnew\nb\tother\ta\n");
  config.valid = "valid.txt";
  Dataset const d = read_triples(config);
  EXPECT_EQ(d.valid, (std::vector<Triple>{{1, 0, 0}, {1, 0, 2}, {1, 1, 0}}));
  EXPECT_EQ(d.count_unseen(d.valid), 2U);
  EXPECT_EQ(d.entities.size(), 3U);
  EXPECT_EQ(d.vocabulary().entities, d.entities.keys());  // also the unseen entity, as a negative
  EXPECT_EQ(d.vocabulary().relations, (std::vector<Key>{d.relations.keys()[0]}));
  ASSERT_EQ(d.notices.size(), 1U);
  EXPECT_NE(d.notices[0].find("2 triples"), std::string::npos) << d.notices[0];
}

TEST(TriplesReader, SaysHowManyHeldOutTriplesAreTrainedOn) {
  TemporaryFolder const folder;
  DataConfig config = only_train(folder, "a\tr\tb\nb\tr\tc\nc\tr\ta\n");
  folder.write("test.txt", "a\tr\tb\nb\tr\ta\na\tr\tb\nc\tr\ta\n");
  config.test = "test.txt";
  Dataset const d = read_triples(config);
  ASSERT_EQ(d.notices.size(), 1U);
  EXPECT_NE(d.notices[0].find("3 triples of the test split, of 4, are training samples too"), std::string::npos)
      << d.notices[0];
}

TEST(TriplesReader, SaysHowManyTriplesAreInBothHeldOutSplits) {
  TemporaryFolder const folder;
  DataConfig config = only_train(folder, "a\tr\tb\nb\tr\tc\nc\tr\ta\n");
  folder.write("valid.txt", "b\tr\ta\nc\tr\tb\n");
  folder.write("test.txt", "b\tr\ta\na\tr\tc\n");
  config.valid = "valid.txt", config.test = "test.txt";
  Dataset const d = read_triples(config);
  ASSERT_EQ(d.notices.size(), 1U);
  EXPECT_NE(d.notices[0].find("1 triple of the test split, of 2, are validation samples too"), std::string::npos)
      << d.notices[0];
}

TEST(TriplesReader, SplitsHaveTheSameColumns) {
  TemporaryFolder const folder;
  DataConfig config = only_train(folder, "tail\trelation\thead\nb\tr\ta\n");
  folder.write("test.txt", "a\tr\tb\n");
  config.test = "test.txt";
  expect_error([&] { read_triples(config); }, {"test.txt has none, and ", "train.txt has a heading"});
}

TEST(TriplesReader, SaysThatTheFirstLineMayBeAHeading) {
  TemporaryFolder const folder;
  std::string text;
  for (int i = 0; i < 12; ++i) text += "e" + std::to_string(i) + "\tr\te" + std::to_string(i % 5) + "\n";
  EXPECT_TRUE(read_triples(only_train(folder, text)).notices.empty());
  DataConfig config = only_train(folder, "Quelle\tArt\tZiel\n" + text);
  Dataset const d = read_triples(config);
  EXPECT_EQ(d.train.size(), 13U);
  ASSERT_EQ(d.notices.size(), 1U);
  EXPECT_NE(d.notices[0].find("may be a heading"), std::string::npos) << d.notices[0];
  config.table.heading = "yes";
  EXPECT_EQ(read_triples(config).train.size(), 12U);
}

TEST(TriplesReader, RejectsAHeldOutFileWithoutTriples) {
  TemporaryFolder const folder;
  DataConfig config = only_train(folder, "a\tr\tb\n");
  folder.write("valid.txt", "");
  config.valid = "valid.txt";
  expect_error([&] { read_triples(config); }, {"valid.txt has no triples to rank"});
}

TEST(TriplesReader, RejectsEmptyAndMissingFiles) {
  TemporaryFolder const folder;
  expect_error([&] { read_triples(only_train(folder, "")); }, {"train.txt has no triples"});
  DataConfig config{.folder = folder.path().string(), .train = "none.txt"};
  expect_error([&] { read_triples(config); }, {"none.txt cannot be opened", "No such file"});
  config.train = "";
  expect_error([&] { read_triples(config); }, {"data.train is empty"});
  config.train = ".";
  expect_error([&] { read_triples(config); }, {"is a folder"});
}

TEST(TriplesReader, DigestDependsOnTheData) {
  TemporaryFolder const a, b;
  auto const of = [](TemporaryFolder const& f, char const* text) { return read_triples(only_train(f, text)).digest(); };
  EXPECT_EQ(of(a, "a\tr\tb\n"), of(b, "a\tr\tb\r\n"));
  EXPECT_NE(of(a, "a\tr\tb\n"), of(b, "a\tr\tc\n"));
  EXPECT_NE(of(a, "a\tr\tb\na\tr\ta\n"), of(b, "a\tr\tb\nb\tr\ta\n"));
}

TEST(LineReader, LinesMayCrossBlocks) {
  TemporaryFolder const folder;
  std::string text;
  for (int i = 0; i < 5; ++i) text += std::string(700000 + i, static_cast<char>('a' + i)) + "\n";
  LineReader reader(folder.write("long.txt", text));
  std::string_view line;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(reader.next(line));
    ASSERT_EQ(line, std::string(700000 + i, static_cast<char>('a' + i)));
    ASSERT_EQ(reader.line_number(), static_cast<std::uint64_t>(i + 1));
  }
  EXPECT_FALSE(reader.next(line));
}

TEST(LineReader, RejectsTooLongLine) {
  TemporaryFolder const folder;
  LineReader reader(folder.write("huge.txt", std::string(20'000'000, 'x')));
  std::string_view line;
  expect_error([&] { reader.next(line); }, {"huge.txt:1", "longer than 16 MiB"});
}

}  // namespace
}  // namespace gpups::trainer::triples_reader_test
