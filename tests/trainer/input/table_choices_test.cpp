// SPDX-License-Identifier: Apache-2.0
// Lines that several separators divide, and fields that may be more than one name: read in the way that all lines
// have, and said, or rejected.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>

#include "tests/trainer/input/table_fixture.hpp"

namespace gpups::trainer::table_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using TableChoicesTest = TableTest;

TEST_F(TableChoicesTest, RejectsTabsThatBlanksContradict) {
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
  EXPECT_EQ(read("\"u\"\t\"Abba\"\n\"v\"\t\"Earth, Wind\"\n", kLists), (Rows{{"u", "Abba"}, {"v", "Earth, Wind"}}));
  EXPECT_EQ(read("u\ti1\ti2\t\nv\ti3\t\n", kLists), (Rows{{"u", "i1", "i2"}, {"v", "i3"}}));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "u\ti1\n";
  reject(many + "w i5 i6\n", kLists, {"table:1001 has blanks and no tab"});
  EXPECT_EQ(read("u\t\"Abba\"\nv\tQueen\n", kEdges), (Rows{{"u", "\"Abba\""}, {"v", "Queen"}}));
  EXPECT_THAT(notices_, testing::Contains(HasSubstr("1 name of the first lines in quotes, such as \"Abba\"")));
}

TEST_F(TableChoicesTest, CommasBeforeBlanksSeparateLists) {
  EXPECT_EQ(read("0,bottled water,yogurt\n1,yogurt,brown bread\n", kLists),
            (Rows{{"0", "bottled water", "yogurt"}, {"1", "yogurt", "brown bread"}}));
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("separated by commas")));
  EXPECT_EQ(read("u|a b|c\nv|b c|d e\n", kLists), (Rows{{"u", "a b", "c"}, {"v", "b c", "d e"}}));
  // One comma in each line: it, or the blanks, may separate the items.
  reject("0,bottled water\n1,brown bread\n", kLists, {"has ',' within names of lines that are separated by blanks"});
  reject("New York,a b\nv,c d\n", kLists, {"has ',' within names"});
  reject("New York,a,b\nLos Angeles,c,d\n", kLists,
         {"set data.separator to \"blanks\" if names have ',', or to \"comma\""});
  (void)read("u0 Toy Story, Heat, Rear Window\nu1 Heat, Jaws\n", kLists);
  EXPECT_THAT(notices_, testing::Contains(HasSubstr("has a blank within the first name of most lines")));
  reject("Product 7,Product 18\nProduct 5\nProduct 1,Product 2,Product 3\n", kLists, {"has ',' within names"});
  reject("u;a,b\nv;c,d;e\n", kLists, {"has ';' within names of lines that are separated by commas"});
}

TEST_F(TableChoicesTest, CommasWithinNamesDoNotSeparate) {
  EXPECT_EQ(read("Smith, John;Doe, Jane;3\nDoe, Jane;Roe, Ann;1\n", kEdges),
            (Rows{{"Smith, John", "Doe, Jane", "3"}, {"Doe, Jane", "Roe, Ann", "1"}}));
  EXPECT_EQ(read("Smith, John|knows|Doe, Jane\n", kTriples), (Rows{{"Smith, John", "knows", "Doe, Jane"}}));
  EXPECT_EQ(read("Smith, John;Acme\nDoe, Jane;Initech\n", kLists),
            (Rows{{"Smith, John", "Acme"}, {"Doe, Jane", "Initech"}}));
  EXPECT_EQ(read("http://a/1,2\thttp://b/2\n", kEdges), (Rows{{"http://a/1,2", "http://b/2"}}));
  reject("Smith,J;knows;Doe,J\nDoe,J;knows;Roe,A\n", kTriples, {"has ';' within names"});
  EXPECT_EQ(read("a;1,5;b\nb;2,5;c\n", kEdges, {.columns = {"1", "3"}}), (Rows{{"a", "b"}, {"b", "c"}}));
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
  for (char const* lists :
       {"0 4,8\n4 0,8\n8 0,4\n", "0 4,8,9\n4 0,8,9\n8 0,4,9\n", "a b,c\nb a,c\nc a,b\n", "a b 1,5\nb c 2,5\n"}) {
    reject(lists, kEdges, {"has ' ' within names of lines that are separated by commas"});
  }
  for (char const* lists : {"1 2 1\t116\n1 3 1\t117\n", "n1 n2\t3\nn1 n3\t2\n", "n1,n2\t3\nn1,n3\t2\n"}) {
    reject(lists, kEdges, {"it may be a list, and would be one name"});
  }
  // A node and a weight.
  for (char const* weighted : {"1397,1470 0.8\n1397,1522 0.25\n1470,1522 1e-3\n", "n1,n2 -0.8\nn1,n3 .5\n",
                               "1\t2 0.8\n1\t3 0.5\n", "rome,paris 0.8\nparis,rome 0.5\n", "1;2 0.5\n2;3 4\n"}) {
    reject(weighted, kEdges, {"it may be a list, and would be one name", "write one separator between all columns"});
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
  reject("user,item\nann,eggs / figs / salt\nbob,figs\ncid,eggs / salt\ndan,salt\neve,eggs\n", kLists,
         {"such as 'eggs / figs / salt'"});
  reject("0 r 4,8\n4 r 0,8\n8 r 0,4\n", kTriples, {"it may be a list"});
  reject("q0\tlinks to\tq4 q8\nq4\tlinks to\tq0 q8\nq8\tlinks to\tq0 q4\n", kTriples, {"such as 'q4 q8'"});
  reject("a\tr\tb, c\nb\tr\ta, c\nc\tr\ta\n", kTriples, {"has names such as 'b, c'"});
  reject("e1\tr\te2, e2x\ne2\tr\te1, e2x\n", kTriples, {"has names such as 'e2, e2x'"});
}

TEST_F(TableChoicesTest, NamesWithBlanksAreNoLists) {
  EXPECT_EQ(read("user,item\n1,The Matrix\n2,Toy Story 2\n", kLists),
            (Rows{{"1", "The Matrix"}, {"2", "Toy Story 2"}}));
  EXPECT_EQ(read("user,item\n1,10 cc\n2,Blink 182\n3,U2\n", kLists),
            (Rows{{"1", "10 cc"}, {"2", "Blink 182"}, {"3", "U2"}}));
  EXPECT_EQ(read("user,item\n1,AC / DC\n2,U2\n", kLists), (Rows{{"1", "AC / DC"}, {"2", "U2"}}));
  EXPECT_EQ(read("user,item\n1,Web 2.0\n2,Windows 3.1\n", kLists), (Rows{{"1", "Web 2.0"}, {"2", "Windows 3.1"}}));
  EXPECT_EQ(read("new york,los angeles\nsan jose,new york\n", kEdges),
            (Rows{{"new york", "los angeles"}, {"san jose", "new york"}}));
  EXPECT_EQ(read("John Smith,Acme\nJane Doe,Initech\n", kEdges),
            (Rows{{"John Smith", "Acme"}, {"Jane Doe", "Initech"}}));
  EXPECT_EQ(read("q1\tr\tDouglas Adams\nAdams\tr\tThe End\n", kTriples),
            (Rows{{"q1", "r", "Douglas Adams"}, {"Adams", "r", "The End"}}));
}

// Columns that are not read may have any signs.
TEST_F(TableChoicesTest, OnlyColumnsThatAreReadAreChecked) {
  EXPECT_EQ(read("time,movieId,userId\n2019-10-01 00:00:00,3,1\n2019-10-01 00:00:01,4,2\n", kLists),
            (Rows{{"1", "3"}, {"2", "4"}}));
  EXPECT_EQ(read("source,target,tags\na,b,\"['x', 'y']\"\nb,c,\"1,2\"\n", kEdges), (Rows{{"a", "b"}, {"b", "c"}}));
  EXPECT_EQ(read("a,b,1 2 3\nb,c,2 3\n", kEdges, {.columns = {"1", "2"}}), (Rows{{"a", "b"}, {"b", "c"}}));
}

TEST_F(TableChoicesTest, RejectsSignsAfterNames) {
  char const* const last = "has a sign after the last name of a line";
  for (char const* lines : {"ex:a\tex:p\tex:b .\nex:b\tex:p\tex:c .\n", "ex:a\tex:p\tex:b.\nex:b\tex:p\tex:c.\n",
                            "ex:a ex:p ex:b .\nex:b ex:p ex:c ;\n", "subject,relation,object\na,p,b.\nb,p,c.\nc,p,a.\n",
                            "a,p,b .\nb,p,c .\nc,p,a\n"}) {
    reject(lines, kTriples, {last, "it would be a part of the name"});
  }
  reject("u a b.\nv a c.\n", kLists, {last});
  reject("u a b .\nv a c .\nw d e\n", kLists, {last});
  EXPECT_EQ(read("a\tworks at\tAcme Inc.\nb\tworks at\tInitech\n", kTriples),
            (Rows{{"a", "works at", "Acme Inc."}, {"b", "works at", "Initech"}}));
  EXPECT_EQ(read("a b 1.\nb c 2.\n", kEdges), (Rows{{"a", "b", "1."}, {"b", "c", "2."}}));
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
}

TEST_F(TableChoicesTest, RejectsLinesAroundATable) {
  reject("user,item,rating\n1,2,3\n2,3,4\n1,\"a\nb\",3\n", kRatings,
         {"table:4 has a quoted field that goes on in the next line"});
  reject("a,b\nb,c\n(2 rows)\n", kEdges, {"table:3 is no row of the table"});
  reject("a|b\n---|---\nb|c\n", kEdges, {"table:2 is no row of the table"});
  reject("3\n0 2 1\n1 2 0\n2 0 1\n", kTriples, {"it may be the number of the lines below"});
  reject("1:\n1001,3,2005\n1002,5,2005\n2:\n1003,4,2006\n", kLists, {"has ':' after a name and nothing else"});
}

TEST_F(TableChoicesTest, FewRowsMayHaveAHeading) {
  auto const says = testing::Contains(HasSubstr("may be a heading"));
  for (char const* heading : {"Follower\tFollowee\na\tb\nb\tc\nc\ta\n", "Person A,Person B\na,b\na,c\n",
                              "\"Kunde\"\t\"Artikel\"\nu\ti\nu\tj\nv\ti\n"}) {
    (void)read(heading, kEdges);
    EXPECT_THAT(notices_, says) << heading;
  }
  for (char const* none : {"a\tb\nc\td\ne\tf\n", "a\tb\nb\tc\nc\ta\n", "x\ty\na\tb\n"}) {
    (void)read(none, kEdges);
    EXPECT_THAT(notices_, testing::Not(says)) << none;
  }
}

// Names that are numbered, as R and others write them, above numbered names.
TEST_F(TableChoicesTest, NumberedNamesMayBeAHeading) {
  auto const says = testing::Contains(HasSubstr("may be a heading"));
  for (char const* heading : {"V1,V2", "X1,X2", "gene1,gene2", "\"col1\",\"col2\""}) {
    std::string text = std::string(heading) + "\n";
    for (int i = 0; i < 20; ++i) text += fmt::format("u{},i{}\n", i % 7, i % 5);
    (void)read(text, kEdges);
    EXPECT_THAT(notices_, says) << heading;
  }
  for (char const* first : {"u100,i100", "A21SU22AM23J24,B025A26"}) {  // alike, though alone
    std::string text = std::string(first) + "\n";
    for (int i = 0; i < 20; ++i) {
      text += first[0] == 'u' ? fmt::format("u{},i{}\n", i % 7, i % 5)
                              : fmt::format("A{}SU{}AM{}J{},B0{}A{}\n", i, i, i, i, i, i);
    }
    (void)read(text, kEdges);
    EXPECT_THAT(notices_, testing::Not(says)) << first;
  }
}

TEST_F(TableChoicesTest, SaysThatNumbersAreNotRead) {
  EXPECT_EQ(read("source,target,note,score\na,b,x,1\nb,c,y,2\n", kEdges), (Rows{{"a", "b"}, {"b", "c"}}));
  EXPECT_THAT(notices_, testing::Contains(HasSubstr("data.columns = [\"1\", \"2\", \"4\"] reads them as weight")));
  (void)read("source,target,note\na,b,x\nb,c,1\n", kEdges);
  EXPECT_THAT(notices_, testing::Each(testing::Not(HasSubstr("reads them as"))));
}

TEST_F(TableChoicesTest, RejectsMatricesWithoutTheirFirstLine) {
  reject("\n%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n", kEdges, {"does not begin with"});
  reject("%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n", kRatings, {"does not begin with"});
}

// Both sides of a bipartite network of KONECT are numbered from 1.
TEST_F(TableChoicesTest, RejectsNetworksWithTwoSides) {
  for (char const* first : {"% bip weighted\n", "% bip\n", "%bip unweighted\r\n% 3 3 3\n"}) {
    reject(first + std::string("196 242 3\n242 302 3\n"), kEdges, {"bipartite network of KONECT", "awk '!/^%/ {print"});
    reject(first + std::string("196 242 3 881250949\n242 302 3 891717742\n"), kEdges, {"one node"});
    EXPECT_EQ(read(first + std::string("196 242 3\n"), kRatings), (Rows{{"196", "242", "3"}}));
  }
  EXPECT_EQ(read("% sym bip\n1 2\n", kEdges), (Rows{{"1", "2"}}));
}

TEST_F(TableChoicesTest, SaysThatAllNamesAreInSingleQuotes) {
  read("'New York','located in','USA'\n'Rome','located in','Italy'\n", kTriples);
  EXPECT_THAT(notices_, testing::Contains(HasSubstr("6 names of the first lines in quotes, such as 'New York'")));
  read("'a' 'b' 1.5\n'b' 'c' 2\n", kEdges);
  EXPECT_THAT(notices_, testing::Contains(HasSubstr("4 names of the first lines in quotes")));
  read("'a','r','b'\n'b','r',c\n", kTriples);
  EXPECT_THAT(notices_, testing::Each(testing::Not(HasSubstr("in quotes, such as"))));
}

TEST_F(TableChoicesTest, SaysThatTheFirstEdgeMayBeSizes) {
  std::string edges, named;
  for (int i = 0; i < 12; ++i) {
    edges += fmt::format("{} {}\n", i % 7, i % 5);
    named += fmt::format("n{} n{}\n", i % 7, i % 5);
  }
  for (std::string const& text : {"7 99\n" + edges, "6 99\n" + edges, "7 99\n" + named}) {
    read(text, kEdges);
    EXPECT_THAT(notices_, ElementsAre(HasSubstr("99', has numbers that none below exceeds"))) << text;
  }
  for (char const* first : {"5 99\n", "6 7\n", "99 7\n", "7 n99\n"}) {
    read(first + edges, kEdges);
    EXPECT_THAT(notices_, testing::IsEmpty()) << first;
  }
}

TEST_F(TableChoicesTest, FindsUsualNamesOfColumns) {
  Rows const edges{{"p1", "p2"}, {"p2", "p3"}};
  for (char const* heading : {":Source,:Target(Person)", "~source,~target", "source:token,target:token"}) {
    EXPECT_EQ(read(std::string(heading) + "\np1,p2\np2,p3\n", kEdges), edges) << heading;
  }
  EXPECT_EQ(read("\"\",\"V1\",\"V2\"\n\"1\",\"p1\",\"p2\"\n\"2\",\"p2\",\"p3\"\n", kEdges), edges);
  // Names that come first in the list count more; the same name twice decides nothing.
  EXPECT_EQ(read("userid,user,item\n7,1,2\n", kLists), (Rows{{"1", "2"}}));
  reject("user,user,item,rating,x\n1,2,3,4,5\n", kRatings, {"cannot be told"});
  // Two columns may be the rating, as where pandas merged tables.
  for (auto const& [names, shown] : {std::pair("rating_x,rating_y,x", "rating_x, rating_y"),
                                     {"rating,rating,x", "rating, rating"},
                                     {"time,rating,rating", "time, rating, rating"}}) {
    reject(std::string("user,item,") + names + "\n1,2,3,4,5\n3,2,4,4,5\n", kRatings, {shown, "cannot be told"});
  }
}

}  // namespace
}  // namespace gpups::trainer::table_test
