// SPDX-License-Identifier: Apache-2.0
// Index columns that pandas and R write, headings of numbers, and quotes that are not closed.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/trainer/input/table_fixture.hpp"

namespace gpups::trainer::index_columns_test {
namespace {

using namespace table_test;
using testing::Contains, testing::Each, testing::HasSubstr, testing::Not;

class IndexColumns : public TableTest {
 protected:
  void expect_left_out(std::string_view text, TableKind const& kind, Rows const& rows, char const* name) {
    SCOPED_TRACE(text);
    EXPECT_EQ(read(text, kind), rows);
    EXPECT_THAT(notices_, Contains(HasSubstr(fmt::format("the first column, {}, is an index and is left out", name))));
  }
};

// In all kinds of tables, above numbers and names.
TEST_F(IndexColumns, AreLeftOutByTheirNames) {
  for (auto const& [name, shown] :
       std::initializer_list<std::pair<char const*, char const*>>{{"", "without a name"},
                                                                  {"Unnamed: 0", "'Unnamed: 0'"},
                                                                  {"Unnamed: 0.1", "'Unnamed: 0.1'"},
                                                                  {"...1", "'...1'"},
                                                                  {"rownames", "'rownames'"},
                                                                  {"row.names", "'row.names'"}}) {
    auto const with = [first = std::string(name)](char const* rest) { return first + "," + rest; };
    expect_left_out(with("gene1,gene2\n0,1,9\n1,1,16\n"), kEdges, {{"1", "9"}, {"1", "16"}}, shown);
    expect_left_out(with("gene1,gene2,score\n0,1,9,1\n1,1,16,.5\n"), kEdges, {{"1", "9", "1"}, {"1", "16", ".5"}},
                    shown);
    expect_left_out(with("gene1,gene2\n0,a,b\n1,a,c\n"), kEdges, {{"a", "b"}, {"a", "c"}}, shown);
    expect_left_out(with("a,b,c\n0,x,r,y\n1,z,r,x\n"), kTriples, {{"x", "r", "y"}, {"z", "r", "x"}}, shown);
    expect_left_out(with("a,b,c\n0,3,1,5\n1,4,2,2.5\n"), kRatings, {{"3", "1", "5"}, {"4", "2", "2.5"}}, shown);
    expect_left_out(with("who,what\n0,x,y\n1,z,y\n"), kLists, {{"x", "y"}, {"z", "y"}}, shown);
    expect_left_out(with("source,target\n0,a,b\n1,a,c\n"), kEdges, {{"a", "b"}, {"a", "c"}}, shown);
    EXPECT_THAT(notices_, Each(Not(HasSubstr("which is not read"))));
  }
}

TEST_F(IndexColumns, OfOtherNamesCountTheLines) {
  for (char const* name : {"index", "X1", "X", "level_0"}) {
    expect_left_out(fmt::format("{},gene1,gene2\n0,1,9\n1,1,16\n2,3,1\n", name), kEdges,
                    {{"1", "9"}, {"1", "16"}, {"3", "1"}}, fmt::format("'{}'", name).c_str());
    EXPECT_EQ(read(fmt::format("{},gene1,gene2\n7,1,9\n1,1,16\n2,3,1\n", name), kEdges),
              (Rows{{"7", "1", "9"}, {"1", "1", "16"}, {"2", "3", "1"}}));
    EXPECT_THAT(notices_, Each(Not(HasSubstr("index and is left out"))));
  }
  // Without the first column, there would be no pairs.
  EXPECT_EQ(read("index,gene\n0,1\n1,1\n2,3\n", kEdges), (Rows{{"0", "1"}, {"1", "1"}, {"2", "3"}}));
}

TEST_F(IndexColumns, BlanksOfAHeadingDivideNoLines) {
  EXPECT_EQ(read("gene one,gene two,my score,x\n0,1,9,1\n1,1,16,2\n", kEdges, {.columns = {"2", "3"}}),
            (Rows{{"1", "9"}, {"1", "16"}}));
  reject("gene one,gene two,my score,x\n0,1,9,1\n1,1,16,2\n", kEdges, {"has lines of 4 fields", "data.columns"});
}

// pandas writes 0 and 1 above columns without names.
TEST_F(IndexColumns, NumbersOfTwoColumnsMayBeAHeading) {
  std::string pairs;
  for (int i = 0; i < 20; ++i) pairs += fmt::format("{},{}\n", 1 + i / 3, 7 * i % 11);
  for (std::string const& text :
       {"0,1\n" + pairs, std::string("0\t1\n1\t1\n1\t0\n2\t1\n2\t0\n0\t4\n0\t5\n3\t5\n3\t6\n4\t9\n")}) {
    read(text, kLists);
    bool const says = text.find(',') != std::string::npos;
    EXPECT_EQ(testing::Value(notices_, Contains(HasSubstr("it has the numbers of the columns: '0', '1'"))), says);
  }
  // User 0 has several items, as most users have; and edges may be those of a path.
  read("0,1\n0,5\n" + pairs, kLists);
  EXPECT_THAT(notices_, Each(Not(HasSubstr("may be a heading"))));
  read("0,1\n1,2\n2,3\n3,4\n4,5\n5,6\n6,7\n7,8\n8,9\n9,10\n10,11\n", kEdges);
  EXPECT_THAT(notices_, Each(Not(HasSubstr("may be a heading"))));
}

TEST_F(IndexColumns, LineBreaksInFieldsAreNamed) {
  char const* const what = "has a quoted field that goes on in the next line";
  reject("user,item,note\n1,2,\"good\nbook\"\n3,4,\"bad\none\"\n", kLists, {what, "as in '1,2,\"good'"});
  reject("user,item,note\n1,2,\"good\nbook\"\n3,4,bad\n4,4,fine\n", kLists, {what});
  reject("head,relation,tail\na,r,\"b\nc\"\nc,r,d\n", kTriples, {what});
  reject("\"user\nid\",item,rating\n1,2,3\n4,5,3\n", kRatings, {what, "as in '\"user'"});
  reject("1,2,3,\"a\nlong\ntext\"\n4,5,1,\"b\nlong\ntext\"\n", kEdges, {what});
  reject("a,r,\"b \\\"x\\\"\"\nc,r,d\n", kTriples, {"table:1 has \\\" in a field in quotes", "as two: \"\""});
  // Text between tabs may have quotes.
  EXPECT_EQ(read("\"a, b\tr\tc\nd, e\tr\tf\n", kTriples), (Rows{{"\"a, b", "r", "c"}, {"d, e", "r", "f"}}));
}

TEST_F(IndexColumns, OtherNotationsAreErrors) {
  reject("- user: u1\n  item: i1\n- user: u2\n  item: i7\n", kLists, {"lines of YAML, such as '- user: u1'"});
  EXPECT_NO_THROW(read("- a: 1\n- b: 2\nc d\n", kEdges, {.separator = "blanks"}));
  reject("41 15 76:60:10 10 40\n3 2:9:4 5\n", kLists, {"items, a sum and utilities", "SPMF"});
  EXPECT_NO_THROW(read("a:1:2 b\nc:3:4 d\n", kLists, {.separator = "blanks"}));
}

}  // namespace
}  // namespace gpups::trainer::index_columns_test
