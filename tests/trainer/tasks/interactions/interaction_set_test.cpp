// SPDX-License-Identifier: Apache-2.0
// Reads lines of a user and items. The splits are disjoint, and names of training have the lowest numbers.
#include "trainer/tasks/interactions/interaction_set.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>
#include <utility>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trainer/tasks/interactions/interaction_data.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer::interaction_set_test {
namespace {

using test::expect_error;
using testing::ElementsAre;
using testing::HasSubstr;
using Names = std::vector<std::pair<std::string, std::string>>;

class InteractionSetTest : public testing::Test {
 protected:
  DataConfig config() const {
    DataConfig data;
    data.folder = folder_.path().string();
    data.train = "train.txt";
    data.valid = data.test = "";
    data.valid_share = data.test_share = 0;
    return data;
  }
  static Names names(InteractionSet const& set, Interactions const& split) {
    Names all;
    for (auto const& [user, item] : split.pairs()) all.emplace_back(set.users.name(user), set.items.name(item));
    return all;
  }

  test::TemporaryFolder folder_;
};

TEST_F(InteractionSetTest, LinesHaveUserAndItems) {
  folder_.write("train.txt", "ann red\tblue\nbob\n\ncid  blue white \nann green red\r\n");
  InteractionSet const set = read_interactions(config());
  EXPECT_EQ(names(set, set.train),
            (Names{{"ann", "red"}, {"ann", "blue"}, {"ann", "green"}, {"cid", "blue"}, {"cid", "white"}}));
  EXPECT_EQ(set.users.size(), 2U);  // bob chose nothing
  EXPECT_EQ(set.known_items, 4U);
  EXPECT_THAT(set.popularity(), ElementsAre(1, 2, 1, 1));
  EXPECT_TRUE(set.train.has({1, 3}));
  EXPECT_FALSE(set.train.has({1, 0}));
  EXPECT_THAT(set.notices, ElementsAre(testing::AllOf(HasSubstr("left out 1 line of "),
                                                      HasSubstr("with a user and no item, of 4"))));
}

TEST_F(InteractionSetTest, RejectsFilesOfUsersAlone) {
  folder_.write("train.txt", "a\nb\nc\nd e\n");
  expect_error([&] { read_interactions(config()); }, {"train.txt has 3 lines with a user and no item, of 4"});
  folder_.write("train.txt", "a x y\nb x\n");
  folder_.write("test.txt", "a\nb y\nc\n");
  DataConfig data = config();
  data.test = "test.txt";
  EXPECT_THAT(read_interactions(data).notices, testing::Contains(HasSubstr("left out 2 lines of ")));
  folder_.write("test.txt", "");
  expect_error([&] { read_interactions(data); }, {"test.txt has no interactions to rank"});
}

// Items have names of one kind, and a table has a kind in each column.
TEST_F(InteractionSetTest, RejectsTablesWithoutColumns) {
  std::string table, lists;
  for (int i = 0; i < 10; ++i) {
    table += fmt::format("u{},i{},2020-01-{} 10:00:00\n", i, i % 4, 10 + i % 7);
    lists += fmt::format("u{},i{},i{}\n", i, i % 4, (i + 1) % 4);
  }
  folder_.write("train.txt", table);
  expect_error([&] { read_interactions(config()); }, {"has lines of 3 fields", "would become items", "data.columns"});
  folder_.write("train.txt", lists);
  EXPECT_EQ(read_interactions(config()).train.size(), 20U);
}

// A heading that is not known is no row of a user and items.
TEST_F(InteractionSetTest, RejectsTablesBelowAnUnknownHeading) {
  std::string text = "OrderNo,Sku,Qty,Client,Land\n";
  for (int i = 0; i < 30; ++i) text += fmt::format("{},sku{},{},{},UK\n", i, i * 7 % 11, 1 + i % 4, i % 5);
  folder_.write("train.txt", text);
  expect_error([&] { read_interactions(config()); }, {"has lines of 5 fields", "would become items"});
}

TEST_F(InteractionSetTest, RejectsTablesOfFewRows) {
  for (char const* text : {"u1 i1 2021-03-01\nu2 i2 2021-03-02\nu3 i1 2021-03-03\n",
                           "u1|i1|True\nu2|i2|False\nu3|i1|True\n", "u1 i1 5/5\nu2 i2 3/5\nu3 i1 5/5\n"}) {
    folder_.write("train.txt", text);
    expect_error([&] { read_interactions(config()); }, {"has lines of 3 fields", "data.columns"});
  }
  folder_.write("train.txt", "u1 a b\nu2 b c\nu3 c a\n");
  EXPECT_EQ(read_interactions(config()).items.size(), 3U);
  for (char const* text : {"u i5 1 i19 5\nv i5 2\n", "u,5,1.0,19,5.0\nv,7,2.0\n"}) {
    folder_.write("train.txt", text);
    expect_error([&] { read_interactions(config()); }, {"has a number after each item"});
  }
  folder_.write("train.txt", "1 -1 2 -2\n4 -1 2 -1 5 -2\n");
  expect_error([&] { read_interactions(config()); }, {"SPMF"});
}

// Items of a list are distinct, and the values of a matrix are not.
TEST_F(InteractionSetTest, RejectsMatrices) {
  std::string ratings = "userId", dense, sparse = "user a b c d e\n";
  for (int item = 0; item < 40; ++item) ratings += fmt::format(",{}", item + 1);
  for (int user = 0; user < 30; ++user) {
    ratings += fmt::format("\n{}", user + 1);
    dense += fmt::format("{}", user);
    sparse += fmt::format("u{} {} 0 {} 0 1\n", user, user % 2, user % 3 / 2);
    for (int item = 0; item < 40; ++item) {
      int const value = user * 7 + item * 3;
      ratings += fmt::format(",{}", value % 4 == 0 ? value % 6 : 0);
      dense += fmt::format("\t{}.0", value % 5);
    }
    dense += "\n";
  }
  for (auto const& text : {ratings, dense, sparse, std::string("userId,1,2,3\n1,5,3,5\n2,0,4,0\n3,1,1,0\n")}) {
    folder_.write("train.txt", text);
    expect_error([&] { read_interactions(config()); }, {"values repeat", "matrix", "data.columns"});
  }
  // Lists of equal length, of which a few repeat an item.
  std::string lists;
  for (int user = 0; user < 30; ++user) {
    lists += fmt::format("u{} i{} i{} i{} i{}\n", user, user % 7, (user + 1) % 7, (user + 3) % 7, (user + 5) % 7);
    if (user % 10 == 0) lists += fmt::format("w{} i1 i1 i2 i2\n", user);
  }
  folder_.write("train.txt", lists);
  EXPECT_EQ(read_interactions(config()).users.size(), 33U);
}

// Lines of a log that gained a column, or of ratings below views.
TEST_F(InteractionSetTest, RejectsLongerLinesBelowPairs) {
  std::string pairs;
  for (int i = 0; i < 1000; ++i) pairs += fmt::format("u{}\ti{}\n", i % 30, i % 77);
  for (char const* const more : {"u1\ti2\t5\n", "u1\ti2\t5\t881250949\n", "u1\ti2\tx\ty\tz\n"}) {
    folder_.write("train.txt", pairs + "u0\ti1\n" + more);
    expect_error([&] { read_interactions(config()); },
                 {"1 bad line of 1002", "train.txt:1002 has ", "and each of the first 1000 lines has 2",
                  "[\"1\", \"2-\"] reads all fields after the first as items", "name two columns"});
    DataConfig data = config();
    data.table.columns = {"1", "2-"};
    EXPECT_GT(read_interactions(data).items.size(), 77U);
  }
  // An empty field is none, and a user without items is left out.
  folder_.write("train.txt", pairs + "u1\ti2\t\t\nu7\n");
  EXPECT_EQ(read_interactions(config()).items.size(), 77U);
  // Lists differ in their lengths.
  folder_.write("train.txt", "u\ta\tb\tc\td\n" + pairs + "u1\ti2\ti3\ti4\n");
  EXPECT_EQ(read_interactions(config()).items.size(), 81U);
}

// A number of items is no user or item.
TEST_F(InteractionSetTest, RejectsNumbersOfItems) {
  for (char const* text : {"3 1 4 7\n2 4 9\n4 1 2 8 9\n", "u 3 1 4 7\nv 2 4 9\n"}) {
    folder_.write("train.txt", text);
    expect_error([&] { read_interactions(config()); }, {"the number of their items", "remove it"});
  }
  folder_.write("train.txt", "3 1 4 7\n2 4 9 1 5 6\n");
  EXPECT_EQ(read_interactions(config()).train.size(), 8U);
}

TEST_F(InteractionSetTest, SaysThatItemsMayBeTimes) {
  folder_.write("train.txt", "u\t2010-10-19T23:55:27Z\t30.2\tp1\nu\t2010-10-18T22:17:43Z\t30.3\tp2\n");
  DataConfig data = config();
  data.table.columns = {"1", "2"};
  EXPECT_THAT(read_interactions(data).notices, testing::Contains(HasSubstr("begin with dates")));
  data.table.columns = {"1", "4"};
  EXPECT_THAT(read_interactions(data).notices, testing::Each(testing::Not(HasSubstr("begin with dates"))));
}

// A rating or a time must not become an item.
TEST_F(InteractionSetTest, RejectsRatingsWithoutColumns) {
  for (char const* text :
       {"u1 i1 5\nu1 i2 3\nu2 i1 4\nu2 i3 5\n", "196\t242\t3\t881250949\n186\t302\t3\t891717742\n",
        "1::1193::5::978300760\n1::661::3::978302109\n", "u1,i1,5\nu2,i1,4,99\n", "u1 i1 5 99 x\nu2 i1 3 98 y\n",
        "u1 i1 5\nu1 i2\nu2 i1 4 880798440\n", "ann tea bought 2020-01-01\nann tea seen 2020-01-02\n"}) {
    folder_.write("train.txt", text);
    expect_error([&] { read_interactions(config()); }, {"has lines of ", "would become items", "data.columns"});
    DataConfig data = config();
    data.table.columns = {"1", "2"};
    InteractionSet const set = read_interactions(data);
    EXPECT_LE(set.items.size(), 3U) << text;
    EXPECT_LE(set.train.size(), 4U) << text;
    data.table.columns = {"1", "2-"};
    EXPECT_GT(read_interactions(data).items.size(), set.items.size()) << text;
  }
}

TEST_F(InteractionSetTest, SplitsHaveTheSameColumns) {
  folder_.write("train.txt", "item,user\ni,u\nj,u\n");
  folder_.write("test.txt", "u,i\n");
  DataConfig data = config();
  data.test = "test.txt";
  expect_error([&] { read_interactions(data); }, {"test.txt has none, and ", "train.txt has a heading"});
}

TEST_F(InteractionSetTest, SaysThatLinesMayBeBaskets) {
  std::string baskets, lists, follows, numbers;
  for (int i = 0; i < 40; ++i) {
    for (int j = 0; j < 2 + i % 4; ++j) {
      std::string const item = fmt::format("{}", (7 * i + 3 * j) % 10);
      baskets += (j == 0 ? "item_" : ",item_") + item;
      lists += (j == 0 ? fmt::format("user_{},item_", i) : ",item_") + item;
      numbers += (j == 0 ? "" : " ") + item;
    }
    for (auto* text : {&baskets, &lists, &numbers}) *text += '\n';
    follows += fmt::format("p{},p{}\n", i % 10, (3 * i + 1) % 10);
  }
  using testing::Contains, testing::Each, testing::Not;
  auto const notices_of = [&](std::string const& text) {
    folder_.write("train.txt", text);
    return read_interactions(config()).notices;
  };
  EXPECT_THAT(notices_of(baskets), Contains(testing::AllOf(HasSubstr("10 of 10 users of train.txt are also items"),
                                                           HasSubstr("put a user before it"))));
  EXPECT_THAT(notices_of(lists), Each(Not(HasSubstr("also items"))));
  EXPECT_THAT(notices_of(numbers), Each(Not(HasSubstr("also items"))));
  EXPECT_THAT(notices_of("user,item\n" + follows), Each(Not(HasSubstr("also items"))));
}

TEST_F(InteractionSetTest, ReadsTheUserAndItemOfAHeading) {
  folder_.write("train.txt",
                "userId,movieId,rating,timestamp\n1,7,4.0,964982703\n1,9,4.0,964981247\n2,7,5.0,964982224\n");
  InteractionSet const set = read_interactions(config());
  EXPECT_EQ(names(set, set.train), (Names{{"1", "7"}, {"1", "9"}, {"2", "7"}}));
  EXPECT_THAT(set.notices, ElementsAre(HasSubstr("separated by commas, with a heading; columns userId, movieId")));
}

TEST_F(InteractionSetTest, EarlierSplitsHaveInteractionsAlone) {
  folder_.write("train.txt", "a x y\nb y v\n");
  folder_.write("valid.txt", "a y z\nb x\n");
  folder_.write("test.txt", "a z w\nc x\n");
  DataConfig data = config();
  data.valid = "valid.txt";
  data.test = "test.txt";
  InteractionSet const set = read_interactions(data);
  EXPECT_EQ(names(set, set.valid), (Names{{"a", "z"}, {"b", "x"}}));
  EXPECT_EQ(names(set, set.test), (Names{{"a", "w"}, {"c", "x"}}));
  EXPECT_EQ(set.known_users, 2U);
  EXPECT_EQ(set.known_items, 3U);
  EXPECT_THAT(set.notices, ElementsAre(HasSubstr("valid: 1 of 3 interactions left out"),
                                       HasSubstr("test: 1 of 3 interactions left out"),
                                       HasSubstr("1 interaction of the valid split, of 2, have a user or an item"),
                                       HasSubstr("2 interactions of the test split, of 2, have a user or an item")));
}

TEST_F(InteractionSetTest, SharesAreDrawnAndNamesOfTrainingComeFirst) {
  std::string text;
  for (int user = 0; user < 50; ++user) {
    text += "u" + std::to_string(user);
    for (int item = 0; item < 40; ++item) text += " i" + std::to_string(item + (user % 2) * 20);
    text += "\n";
  }
  folder_.write("train.txt", text);
  DataConfig data = config();
  data.valid_share = 0.1;
  data.test_share = 0.2;
  InteractionSet const set = read_interactions(data);
  EXPECT_EQ(set.train.size() + set.valid.size() + set.test.size(), 2000U);
  EXPECT_NEAR(static_cast<double>(set.valid.size()), 200, 60);
  EXPECT_NEAR(static_cast<double>(set.test.size()), 400, 80);
  std::set<std::pair<std::string, std::string>> all;
  for (Interactions const* split : {&set.train, &set.valid, &set.test}) {
    for (auto const& pair : names(set, *split)) EXPECT_TRUE(all.insert(pair).second);
  }
  for (auto const& [user, item] : set.train.pairs()) {
    EXPECT_LT(user, set.known_users);
    EXPECT_LT(item, set.known_items);
  }
  data.split_seed = 2;
  EXPECT_NE(read_interactions(data).digest(), set.digest());
}

TEST_F(InteractionSetTest, SaysIfAShareSelectsNothing) {
  folder_.write("train.txt", "a x y\nb x z\n");
  DataConfig data = config();
  data.test_share = 1e-9;
  EXPECT_THAT(read_interactions(data).notices,
              ElementsAre("data.test_share = 1e-09 selects none of 4 interactions: there is no test split"));
}

TEST_F(InteractionSetTest, RejectsDataWithoutInteractionsOrNegatives) {
  folder_.write("train.txt", "alone\n");
  expect_error([&] { read_interactions(config()); },
               {"train.txt has 1 line with a user and no item", "data.separator"});
  folder_.write("train.txt", "a x y\nb x\n");
  Config bpr = default_config("interactions");
  bpr.data = config();
  bpr.model.name = "bpr";
  expect_error([&] { read_interaction_data(bpr); }, {"user a chose every item", "\"ials\""});
  bpr.model.name = "ials";
  EXPECT_EQ(read_interaction_data(bpr)->samples(), 1024U + 2U);
  DataConfig missing = config();
  missing.train = "missing.txt";
  expect_error([&] { read_interactions(missing); }, {"missing.txt"});
}

}  // namespace
}  // namespace gpups::trainer::interaction_set_test
