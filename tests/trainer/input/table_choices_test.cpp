// SPDX-License-Identifier: Apache-2.0
// Lines that several separators divide, and fields that may be more than one name: read in the way that all lines
// have, and said, or rejected.
#include <gmock/gmock.h>

#include <string>

#include "tests/trainer/input/table_fixture.hpp"

namespace gpups::trainer::table_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using TableChoicesTest = TableTest;

TEST_F(TableChoicesTest, OneNameWithACommaDoesNotHideTabs) {
  char const* const both = "has lines with tabs and with blanks between them";
  reject("u\tBand 13\nu\tEarth, Wind\nv\tBand 14\n", kLists, {both});
  reject("u\tAbba\nu\tEarth, Wind\nv\tQueen\n", kLists, {both});
  reject("u\tThe Band\nv\tThe Who\nw x\n", kLists, {both});  // blanks divide one line more
  reject("u\tQueen\tThe Band\nv\tAbba\n", kLists, {both});
}

TEST_F(TableChoicesTest, TabsInAllLinesSeparate) {
  EXPECT_EQ(read("u\tAbba\nu\tEarth,Wind\n", kLists), (Rows{{"u", "Abba"}, {"u", "Earth,Wind"}}));
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("separated by tabs")));
  // As many fields in each line.
  EXPECT_EQ(read("u\tm 1\tThe Band\t1:2\nv\tm 2\tAbba, \t3:4\n", kLists),
            (Rows{{"u", "m 1", "The Band", "1:2"}, {"v", "m 2", "Abba,", "3:4"}}));
  EXPECT_EQ(read("u\tThe Band\nv\tAbba\n", kLists, {.columns = {"2", "1"}}), (Rows{{"The Band", "u"}, {"Abba", "v"}}));
  for (char const* quoted : {"\"u\"\t\"Abba\"\n\"v\"\t\"Earth, Wind\"\n", "u\t\"Abba\"\nv\t\"Earth, Wind\"\n"}) {
    EXPECT_EQ(read(quoted, kLists), (Rows{{"u", "Abba"}, {"v", "Earth, Wind"}})) << quoted;
    EXPECT_THAT(notices_, ElementsAre(HasSubstr("separated by tabs, with names in quotes")));
  }
}

TEST_F(TableChoicesTest, CommasBeforeBlanksSeparateLists) {
  EXPECT_EQ(read("0,bottled water,yogurt\n1,yogurt,brown bread\n", kLists),
            (Rows{{"0", "bottled water", "yogurt"}, {"1", "yogurt", "brown bread"}}));
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("separated by commas")));
  EXPECT_EQ(read("u|a b|c\nv|b c|d e\n", kLists), (Rows{{"u", "a b", "c"}, {"v", "b c", "d e"}}));
  // One comma in each line: it, or the blanks, may separate the items.
  reject("0,bottled water\n1,brown bread\n", kLists, {"has ',' within names of lines that are separated by blanks"});
  reject("New York,a b\nv,c d\n", kLists, {"has ',' within names"});
}

TEST_F(TableChoicesTest, CommasWithinNamesDoNotSeparate) {
  EXPECT_EQ(read("Smith, John;Doe, Jane;3\nDoe, Jane;Roe, Ann;1\n", kEdges),
            (Rows{{"Smith, John", "Doe, Jane", "3"}, {"Doe, Jane", "Roe, Ann", "1"}}));
  EXPECT_EQ(read("Smith, John|knows|Doe, Jane\n", kTriples), (Rows{{"Smith, John", "knows", "Doe, Jane"}}));
  EXPECT_EQ(read("Smith,J;Doe,J;3\nDoe,J;Roe,A;1\n", kEdges),
            (Rows{{"Smith,J", "Doe,J", "3"}, {"Doe,J", "Roe,A", "1"}}));
}

// A list of neighbours is not the name of a node.
TEST_F(TableChoicesTest, RejectsAdjacencyListsWithTwoSeparators) {
  for (char const* lists :
       {"0: 1 2 3\n1: 0 2\n2: 0\n", "0\t1 2 3\n1\t0 2\n2\t0\n", "0,1 2 3\n1,0 2\n2,0\n", "0\t4,8\n4\t0,8\n8\t0\n",
        "0|4 8\n4|0 8\n8|0\n", "0;4 8\n4;0 8\n8;0\n", "0 4,8\n4 0,8\n8 0\n", "n0: n4 n8\nn4: n0 n8 n9\nn8: n0\n",
        "node,neighbors\na,b c\nb,a c\nc,a b\n", "node,neighbors\na,\"b,c\"\nb,\"a,c\"\nc,a\n",
        "paris,london rome\nlondon,paris\nrome,paris berlin\nberlin,rome\n"}) {
    reject(lists, kEdges, {"it may be a list, and would be one name", "data.separator to"});
  }
  for (char const* lists : {"0:4 8\n4:0 8\n8:0 4\n", "0: 4, 8\n4: 0, 8\n8: 0, 4\n"}) {
    reject(lists, kEdges, {"has ':' within names"});
  }
  EXPECT_EQ(read("0\t1 2\n1\t0 2\n", kEdges, {.separator = "tab"}), (Rows{{"0", "1 2"}, {"1", "0 2"}}));
}

TEST_F(TableChoicesTest, RejectsListsInAField) {
  for (char const* lists :
       {"user_id,movie_id\n1,10 11 12\n2,10 12\n3,11\n", "user_id,movie_id\n1,\"10,11,12\"\n2,\"10,12\"\n3,11\n",
        "user_id\tmovie_id\n1\t10|11\n2\t12\n", "1, 7 18 17 4\n2, 7 18\n3, 17\n", "1,7 18,17\n2,7 18\n3,17\n"}) {
    reject(lists, kLists, {"it may be a list, and would be one name"});
  }
  reject("a\tr\tb, c\nb\tr\ta, c\nc\tr\ta\n", kTriples, {"has names such as 'b, c'"});
  reject("e1\tr\te2, e2x\ne2\tr\te1, e2x\n", kTriples, {"has names such as 'e2, e2x'"});
}

TEST_F(TableChoicesTest, NamesWithBlanksAreNoLists) {
  for (char const* names : {"user,item\n1,The Matrix\n2,Toy Story 2\n", "user,item\n1,10 cc\n2,Blink 182\n3,U2\n"}) {
    EXPECT_GE(read(names, kLists).size(), 2U) << names;
  }
  EXPECT_EQ(read("new york,los angeles\nsan jose,new york\n", kEdges).size(), 2U);
  EXPECT_EQ(read("q1\tr\tDouglas Adams\nq2\tr\tThe End\nAdams\tr\tq1\n", kTriples).size(), 3U);
}

TEST_F(TableChoicesTest, RejectsSignsAfterNames) {
  char const* const last = "has a sign after the last name of a line";
  for (char const* lines : {"ex:a\tex:p\tex:b .\nex:b\tex:p\tex:c .\n", "ex:a\tex:p\tex:b.\nex:b\tex:p\tex:c.\n",
                            "ex:a ex:p ex:b .\nex:b ex:p ex:c ;\n", "a,p,b .\nb,p,c .\nc,p,a\n"}) {
    reject(lines, kTriples, {last, "it would be a part of the name"});
  }
  reject("u a b.\nv a c.\n", kLists, {last});
  EXPECT_EQ(read("a\tworks at\tAcme Inc.\nb\tworks at\tInitech\n", kTriples).size(), 2U);
  EXPECT_EQ(read("a b 1.\nb c 2.\n", kEdges).size(), 2U);
  for (char const* lines : {"e23 -r3-> e15\ne15 -r3-> e23\n", "e23 --r3--> e15\ne15 --r4--> e23\n"}) {
    reject(lines, kTriples, {"has a sign after the first name of a line"});
  }
}

TEST_F(TableChoicesTest, SaysColumnsThatContradictTheHeading) {
  EXPECT_EQ(read("user,item,rating\n1,2,3\n", kRatings, {.columns = {"2", "1", "3"}}), (Rows{{"2", "1", "3"}}));
  EXPECT_THAT(notices_, testing::Contains(HasSubstr("column 2, which the heading calls 'item', as row")));
  EXPECT_EQ(read("id,user,item,rating\n9,1,2,3\n", kRatings, {.columns = {"2", "3", "4"}}), (Rows{{"1", "2", "3"}}));
  EXPECT_THAT(notices_, testing::Each(testing::Not(HasSubstr("which the heading calls"))));

  SameColumns same;
  TableSettings const numbers{.columns = {"2", "1"}};
  same.check(TableReader(folder_.write("plain", "i,u\nj,v\n"), numbers, kEdges).layout(), "plain");
  std::filesystem::path const named = folder_.write("named", "source,target\na,b\n");
  test::expect_error([&] { same.check(TableReader(named, numbers, kEdges).layout(), "named"); },
                     {"column 2, which the heading calls 'target', as from", "plain has no heading"});
}

TEST_F(TableChoicesTest, AnEmptyWeightLacks) {
  EXPECT_EQ(read("source,target,weight\na,b,1\nb,c,\n", kEdges), (Rows{{"a", "b", "1"}, {"b", "c"}}));
  reject("source,target,weight\na,b,1\nb,,2\n", kEdges, {"table:3 has an empty field for to"});
}

// What no layout fits is shown as it is, and not as the division that fails least.
TEST_F(TableChoicesTest, SaysThatColumnsCannotBeTold) {
  reject("DIRECTED\tcites\nNONE\n1\tp:1\t|\tp:2\n2\tp:2\t|\tp:3\n3\tp:3\t|\tp:1\n", kEdges, {"has lines of 4 fields"});
  reject("/a/[/r/x/,/c/b/]\t/r/x\t/c/a\t/c/b\t{\"d\": \"e\", \"w\": 1}\n", kTriples, {"has lines of 5 fields"});
  reject("user,item,rating\n1,2,3\n2,3,4\n1,\"a\nb\",3\n", kRatings, {"a field does not go on in the next line"});
}

}  // namespace
}  // namespace gpups::trainer::table_test
