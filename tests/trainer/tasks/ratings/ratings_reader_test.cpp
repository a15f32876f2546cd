// SPDX-License-Identifier: Apache-2.0
// Reads lines of two ids and a rating, with any of the common separators. Other lines are counted as bad.
#include <gmock/gmock.h>

#include <sys/stat.h>

#include <fstream>
#include <set>
#include <thread>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trainer/tasks/ratings/rating_data.hpp"
#include "trainer/tasks/ratings/rating_file.hpp"
#include "trainer/tasks/ratings/rating_set.hpp"

namespace gpups::trainer::ratings_reader_test {
namespace {

using test::expect_error;
using test::TemporaryFolder;
using Lines = std::vector<RatingLine>;

class RatingFile : public testing::Test {
 protected:
  Lines read(std::string_view text, double bad_share_max = 0) {
    notices_.clear();
    return read_rating_file(
        {.folder = folder_.write("ratings", text).parent_path().string(), .bad_share_max = bad_share_max}, "ratings",
        notices_);
  }
  TemporaryFolder folder_;
  std::vector<std::string> notices_;
};

TEST_F(RatingFile, AcceptsCommonFieldSeparators) {
  Lines const want{{3, 7, 4.5F}, {18446744073709551615U, 0, -1e-3F}};
  EXPECT_EQ(read("3 7 4.5\n18446744073709551615 0 -1e-3\n"), want);
  EXPECT_EQ(read("3\t7\t4.5\t881250949\r\n18446744073709551615\t0\t-1e-3\t0"), want);
  EXPECT_EQ(read("3::7::4.5::978300760\n18446744073709551615::0::-1e-3\n"), want);
  EXPECT_EQ(read("\xEF\xBB\xBF  3; 7; 4.5\n18446744073709551615;0;-1e-3;\n"), want);
  EXPECT_EQ(read("3:7:4.5\n18446744073709551615:0:-1e-3\n"), want);
}

TEST_F(RatingFile, ReadsMovieLens) {
  Lines const want{{196, 242, 3}, {186, 302, 3.5F}};
  EXPECT_EQ(read("196\t242\t3\t881250949\n186\t302\t3.5\t891717742\n"), want);
  EXPECT_EQ(read("196::242::3::881250949\n186::302::3.5::891717742\n"), want);
  EXPECT_EQ(read("userId,movieId,rating,timestamp\n196,242,3.0,881250949\n186,302,3.5,891717742\n"), want);
}

TEST_F(RatingFile, RatingsThatAreTooSmallAreZero) {
  EXPECT_EQ(read("3 7 1e-400\n4 7 -1e-400\n5 7 1e-60\n"), (Lines{{3, 7, 0}, {4, 7, -0.0F}, {5, 7, 0}}));
  for (char const* rating : {"1e400", "-1e400", "1e39", "inf", "nan", "1e-400x"}) {
    expect_error([&] { read(std::string("3 7 ") + rating + "\n"); }, {"ratings:1 has no rating"});
  }
}

TEST_F(RatingFile, SaysThatZerosInFrontOfIdsDoNotCount) {
  EXPECT_EQ(read("007 2 3\n7 0 4\n"), (Lines{{7, 2, 3}, {7, 0, 4}}));
  EXPECT_THAT(notices_, testing::ElementsAre(testing::HasSubstr("1 id with a zero in front, such as 007")));
}

TEST_F(RatingFile, SaysThatRatingsLookLikeTimes) {
  read("3 7 881250949\n4 7 891717742\n");
  ASSERT_EQ(notices_.size(), 1U);
  EXPECT_NE(notices_[0].find("look like times"), std::string::npos) << notices_[0];
  EXPECT_NE(notices_[0].find("data.columns"), std::string::npos) << notices_[0];
  read("3 7 881250949\n4 7 4\n");
  EXPECT_TRUE(notices_.empty());
}

TEST_F(RatingFile, TimesAreWholeInTheFile) {
  read("3 7 881250949.5\n4 7 891717742.25\n");
  EXPECT_TRUE(notices_.empty());
  read("3 7 20200131\n4 7 19991201\n");
  ASSERT_EQ(notices_.size(), 1U);
  EXPECT_NE(notices_[0].find("look like times (all are dates"), std::string::npos) << notices_[0];
}

TEST_F(RatingFile, SaysThatTheFirstColumnCountsTheLines) {
  auto const says = [&](char const* text) {
    read(text);
    return std::any_of(notices_.begin(), notices_.end(), [](std::string const& notice) {
      return notice.find(
                 "counts the lines, and is read as a row: if it is none, data.columns = [\"2\", \"3\", \"4\"]") !=
             notice.npos;
    });
  };
  EXPECT_TRUE(says("0,5,7,3\n1,5,8,3.5\n2,7,8,4\n"));
  EXPECT_TRUE(says("nr,who,what,how\n1,5,7,3\n2,5,8,3.5\n3,7,8,4\n"));
  EXPECT_FALSE(says("user,item,rating,time\n1,5,7,881250949\n2,5,8,881250949\n3,7,8,881250949\n"));
  EXPECT_FALSE(says("1,5,3\n2,5,4\n3,7,3.5\n"));
  EXPECT_FALSE(says("1,5,3,881250949\n1,6,4,881250949\n1,7,3.5,881250949\n"));
}

TEST_F(RatingFile, SaysThatTheFourthColumnIsNotRead) {
  for (char const* text : {"9,5,4,0\n9,6,4,0\n8,5,2,5\n", "9,5,4,000\n8,5,3,000\n"}) {
    read(text);
    ASSERT_EQ(notices_.size(), 2U);
    EXPECT_NE(notices_[1].find("the fourth column of "), std::string::npos) << notices_[1];
  }
  for (char const* text : {"9 5 3 881250949\n", "9 5 3 0\n", "9 5 3 2020-01-01\n", "9 5 3 20200101\n", "9 5 3\n"}) {
    read(text);
    EXPECT_TRUE(notices_.empty()) << text;
  }
}

TEST_F(RatingFile, SaysThatPointsMaySeparateThousands) {
  read("1 1 1.250\n1 2 38\n2 1 12.417\n2 2 102.000\n");
  EXPECT_THAT(notices_, testing::ElementsAre(testing::HasSubstr(
                            "3 ratings, such as 1.250, have three digits after a point, and the others are whole: if "
                            "1.250 is 1250, write it without the point")));
  for (char const* text : {
           "1 1 0.125\n1 2 4\n2 1 1.250\n2 2 2.500\n",            // a thousand has no 0 before it
           "1 1 4.500\n1 2 3.250\n2 1 2.000\n",                   // all have three digits
           "1 1 4.500\n1 2 3.25\n2 1 2.125\n2 2 1.125\n3 1 4\n",  // not all have three
           "1 1 3.667\n1 2 4.333\n2 1 2.667\n2 2 4\n",            // means of three
           "1 1 1.250\n1 2 2.250\n2 1 38\n",                      // too few
           "1 1 1234.250\n1 2 2.250\n2 1 38\n2 2 1.250\n3 1 3.250\n",
       }) {
    read(text);
    EXPECT_TRUE(notices_.empty()) << text;
  }
}

TEST_F(RatingFile, SkipsHeaderLine) {
  EXPECT_EQ(read("userId,movieId,rating,timestamp\n3,7,4.5,1\n"), (Lines{{3, 7, 4.5F}}));
  ASSERT_EQ(notices_.size(), 1U);
  EXPECT_NE(notices_[0].find("heading"), std::string::npos);
  expect_error([&] { read("3,7,4.5\nuserId,movieId,rating\n"); }, {"ratings:2 has the names of the columns"});
}

TEST_F(RatingFile, ReadsMatrixMarket) {
  EXPECT_EQ(read("%%MatrixMarket matrix coordinate real general\n% by hand\n\n9 9 2\n3 7 4.5\n1 1 2\n"),
            (Lines{{3, 7, 4.5F}, {1, 1, 2}}));
  EXPECT_EQ(read("%%MatrixMarket matrix coordinate integer general\n9 9 1\n3 7 4\n"), (Lines{{3, 7, 4}}));
  EXPECT_EQ(read("%%MatrixMarket matrix coordinate real general\n9 9 2\n3 7 4.5\n\n% by hand\n1 1 2\n\n"),
            (Lines{{3, 7, 4.5F}, {1, 1, 2}}));
  expect_error([&] { read("%%MatrixMarket matrix coordinate real general\n1 1 18446744073709551615\n3 7 4.5\n"); },
               {"has 1 entries, but its size line says 18446744073709551615"});
  expect_error([&] { read("%%MatrixMarket matrix coordinate real general\n9 9 3\n3 7 4.5\n"); },
               {"has 1 entries, but its size line says 3", "incomplete"});
  expect_error([&] { read("%%MatrixMarket matrix coordinate real general\n9 nine 3\n3 7 4.5\n"); },
               {"ratings:2: the line does not have the numbers"});
  expect_error([&] { read("%%MatrixMarket matrix coordinate real general\n% nothing\n"); },
               {"ends before its size line"});
  expect_error([&] { read("%%MatrixMarket matrix coordinate real symmetric\n9 9 1\n3 7 4.5\n"); }, {"symmetric"});
  for (char const* other : {"array real general", "coordinate pattern general", "coordinate complex general"}) {
    expect_error([&] { read(std::string("%%MatrixMarket matrix ") + other + "\n9 9 1\n3 7 4.5\n"); }, {other});
  }
}

TEST_F(RatingFile, CountsEntriesOutsideTheMatrixAsBad) {
  std::string const text =
      "%%MatrixMarket matrix coordinate real general\n5 3 6\n1 1 1\n5 3 1\n0 1 1\n6 1 1\n1 0 1\n5 4 1\n";
  expect_error([&] { read(text); },
               {"4 bad lines of 6", "ratings:5 has a row that is not between 1 and", "ratings:7 has a column"});
  EXPECT_EQ(read(text, 0.7), (Lines{{1, 1, 1}, {5, 3, 1}}));
}

TEST_F(RatingFile, ReadsFromAPipe) {
  auto const pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << "%%MatrixMarket matrix coordinate real general\n9 9 1\n3 7 4.5\n"; });
  EXPECT_EQ(read_rating_file({.folder = folder_.path().string()}, "pipe", notices_), (Lines{{3, 7, 4.5F}}));
  writer.join();
}

TEST_F(RatingFile, RejectsDevicesAndFolders) {
  auto const read_path = [&](char const* path) { return read_rating_file({.bad_share_max = 1}, path, notices_); };
  expect_error([&] { read_path("/dev/zero"); }, {"/dev/zero:1 has a byte of 0"});
  expect_error([&] { read_path("/dev/null"); }, {"/dev/null has no ratings"});
  expect_error([&] { read_path("/tmp"); }, {"/tmp is a folder"});
}

TEST_F(RatingFile, RejectsBadLinesAndNamesTheFirst) {
  expect_error([&] { read("1 1 1\n-1 2 3\n1 2.5 3\n1 2 x\n1 2\n\n1 2 nan\n1 2 inf\n"); },
               {"6 bad lines of 7", "ratings:2 has no row id", "ratings:3 has no column id", "ratings:4 has no rating",
                "...", "data.bad_share_max"});
  for (char const* line : {"1,,3,978300760\n", "1::::3\n", "1;;3;4\n"}) {
    expect_error([&] { read(line); }, {"ratings:1 has an empty field for column"});
  }
  expect_error([&] { read("1,2,,3\n"); }, {"ratings:1 has an empty field for rating"});
  expect_error([&] { read("1;1;3,5\n1;2;4\n"); }, {"ratings:1 has a rating with a comma"});
  expect_error([&] { read("18446744073709551616 1 1\n"); },
               {"has no row id (ids are numbers from 0 to 2^64 - 1): number names first"});
  EXPECT_EQ(read("1 1 1\nbad\n2 2 2\n", 0.5), (Lines{{1, 1, 1}, {2, 2, 2}}));
  ASSERT_EQ(notices_.size(), 1U);
  EXPECT_NE(notices_[0].find("1 bad line of 3"), std::string::npos) << notices_[0];
}

TEST_F(RatingFile, RejectsFileWithoutRatings) {
  expect_error([&] { read(""); }, {"has no ratings"});
  expect_error([&] { read_rating_file({.folder = folder_.path().string()}, "none", notices_); },
               {"none cannot be opened"});
}

class RatingSets : public testing::Test {
 protected:
  RatingSets() { config_.folder = folder_.path().string(), config_.train = "train", config_.valid = config_.test = ""; }
  TemporaryFolder folder_;
  DataConfig config_{.valid_share = 0, .test_share = 0};
};

TEST_F(RatingSets, NumberIdsInInsertionOrder) {
  folder_.write("train", "900 5 1\n7 5 2\n900 6 3\n");
  RatingSet const set = read_ratings(config_);
  EXPECT_EQ(set.train, (std::vector<Rating>{{0, 0, 1}, {1, 0, 2}, {0, 1, 3}}));
  EXPECT_EQ(set.rows.keys(), (std::vector<Key>{Key{900}, Key{7}}));
  EXPECT_EQ(set.columns.keys(), (std::vector<Key>{Key{5}, Key{6}}));
  EXPECT_EQ(set.known_rows, 2U);
  EXPECT_TRUE(set.notices.empty());
}

TEST_F(RatingSets, ManyIdsKeepTheirNumbers) {
  IdMap numbering;
  for (std::uint64_t i = 0; i < 5000; ++i) EXPECT_EQ(numbering.add(i << 40), i);
  for (std::uint64_t i = 0; i < 5000; ++i) EXPECT_EQ(numbering.add(i << 40), i);
  EXPECT_EQ(numbering.size(), 5000U);
}

TEST_F(RatingSets, ReportRatingsOfUnknownIds) {
  folder_.write("train", "1 1 1\n2 2 2\n");
  folder_.write("test", "1 2 1\n1 3 1\n4 4 1\n");
  config_.test = "test";
  RatingSet const set = read_ratings(config_);
  EXPECT_EQ(set.test.size(), 3U);
  EXPECT_EQ(set.known_columns, 2U);
  EXPECT_EQ(set.columns.size(), 4U);
  ASSERT_EQ(set.notices.size(), 1U);
  EXPECT_NE(set.notices[0].find("2 ratings of the test split, of 3,"), std::string::npos) << set.notices[0];
}

TEST_F(RatingSets, SayHowManyHeldOutPairsAreTrainedOn) {
  folder_.write("train", "1 1 1\n2 2 2\n");
  folder_.write("test", "1 2 1\n1 1 3\n");
  config_.test = "test";
  RatingSet const set = read_ratings(config_);
  ASSERT_EQ(set.notices.size(), 1U);
  EXPECT_NE(set.notices[0].find("1 pair of the test split, of 2, are training samples too"), std::string::npos)
      << set.notices[0];
}

TEST_F(RatingSets, SayHowManyPairsHaveDifferentRatings) {
  std::string text = "1 1 1\n1 1 2\n1 1 3\n2 2 2\n2 2 2\n3 1 4\n3 1 1\n";
  for (int i = 10; i < 2000; ++i) text += std::to_string(i) + " 1 5\n";
  folder_.write("train", text);
  RatingSet const set = read_ratings(config_);
  ASSERT_EQ(set.notices.size(), 1U);
  EXPECT_NE(set.notices[0].find("2 pairs have several different ratings for training"), std::string::npos)
      << set.notices[0];
}

TEST_F(RatingSets, SayHowManyPairsAreInBothHeldOutSplits) {
  folder_.write("train", "1 1 1\n2 2 2\n");
  folder_.write("valid", "1 2 1\n2 1 1\n");
  folder_.write("test", "2 1 3\n");
  config_.valid = "valid", config_.test = "test";
  RatingSet const set = read_ratings(config_);
  ASSERT_EQ(set.notices.size(), 1U);
  EXPECT_NE(set.notices[0].find("1 pair of the test split, of 1, are validation samples too"), std::string::npos)
      << set.notices[0];
}

TEST_F(RatingSets, SplitsHaveTheSameColumns) {
  folder_.write("train", "item,user,rating\n1,1,1\n2,2,2\n");
  folder_.write("test", "1,2,1\n");
  config_.test = "test";
  expect_error([&] { read_ratings(config_); }, {"test has none, and ", "train has a heading"});
}

TEST_F(RatingSets, HoldOutSharesAtRandom) {
  std::string text;
  for (int i = 0; i < 10000; ++i) text += std::to_string(i) + " 1 1\n";
  folder_.write("train", text);
  config_.test_share = 0.2, config_.valid_share = 0.1;
  RatingSet const set = read_ratings(config_);
  EXPECT_NEAR(static_cast<double>(set.test.size()), 2000, 150);
  EXPECT_NEAR(static_cast<double>(set.valid.size()), 1000, 120);
  EXPECT_EQ(set.train.size() + set.valid.size() + set.test.size(), 10000U);
  EXPECT_EQ(set.rows.size(), 10000U);  // each rating is in one split
  config_.split_seed = 2;
  EXPECT_NE(read_ratings(config_).digest(), set.digest());
  config_.test_share = config_.valid_share = 0.45;
  folder_.write("train", "1 1 1\n");
  for (config_.split_seed = 0; config_.split_seed < 40; ++config_.split_seed) {
    try {
      RatingSet const one = read_ratings(config_);
      EXPECT_EQ(one.train.size(), 1U);
      EXPECT_THAT(one.notices,
                  testing::Contains(testing::HasSubstr("data.test_share = 0.45 selects none of 1 rating")));
    } catch (Error const& error) {
      EXPECT_NE(std::string(error.what()).find("all of them are held out"), std::string::npos);
      return;
    }
  }
  ADD_FAILURE() << "the rating was never held out";
}

TEST_F(RatingSets, DigestDependsOnTheData) {
  std::set<std::uint64_t> digests;
  for (char const* text : {"1 2 3\n", "1 2 4\n", "2 1 3\n", "1 2 3\n1 2 3\n"}) {
    folder_.write("train", text);
    digests.insert(read_ratings(config_).digest());
  }
  EXPECT_EQ(digests.size(), 4U);
  folder_.write("train", "1\t2\t3.0\r\n");
  EXPECT_TRUE(digests.contains(read_ratings(config_).digest()));
}

// A number that stands for none, such as -1, shows there; so does a split with another scale.
TEST(RatingRanges, AreSaid) {
  using testing::Contains, testing::Each, testing::HasSubstr, testing::Not;
  TemporaryFolder const folder;
  auto const notices_of = [&](std::string const& train, std::string const& test) {
    folder.write("train", train);
    folder.write("test", test);
    return RatingData(read_ratings({.folder = folder.path().string(),
                                    .train = "train",
                                    .valid = "",
                                    .test = "test",
                                    .valid_share = 0,
                                    .test_share = 0}))
        .notices();
  };
  EXPECT_THAT(notices_of("1 1 0.5\n1 2 5\n2 1 4\n2 2 4.5\n", "1 3 5\n"), Contains("ratings from 0.5 to 5, mean 3.5"));
  EXPECT_THAT(notices_of("1 1 -1\n1 2 5\n2 1 -1\n2 2 5\n", "1 3 20\n1 4 100\n"),
              Contains("ratings from -1 to 5, mean 2; those of the test from 20 to 100, mean 60"));
  EXPECT_THAT(notices_of("1 1 3\n1 2 3\n", "1 3 3\n"), Each(Not(HasSubstr("mean"))));
}

}  // namespace
}  // namespace gpups::trainer::ratings_reader_test
