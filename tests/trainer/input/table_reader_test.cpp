// SPDX-License-Identifier: Apache-2.0
// Text with columns: its layout is found or set, and what is no data is skipped or rejected alike for all readers.
#include "trainer/input/table_reader.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/input/table_fixture.hpp"

namespace gpups::trainer::table_test {
namespace {

using test::expect_error;
using testing::ElementsAre;
using testing::HasSubstr;
using TableReaderTest = TableTest;

TEST_F(TableReaderTest, FindsTheSeparator) {
  Rows const triples{{"a", "r", "b"}, {"c", "r", "a"}};
  EXPECT_EQ(read("a\tr\tb\nc\tr\ta\n", kTriples), triples);
  EXPECT_TRUE(notices_.empty());  // the usual layout
  for (char const* separator : {",", ";", " ", "::", "|", ":", " , ", "   "}) {
    std::string const s = separator;
    EXPECT_EQ(read("a" + s + "r" + s + "b\nc" + s + "r" + s + "a\n", kTriples), triples) << separator;
    EXPECT_THAT(notices_, ElementsAre(HasSubstr("table: separated by "))) << separator;
  }
  // The lines have as many commas, and blanks within names.
  EXPECT_EQ(read("New York,capital of,USA\nParis,capital of,La France\n", kTriples),
            (Rows{{"New York", "capital of", "USA"}, {"Paris", "capital of", "La France"}}));
  EXPECT_EQ(read("a;b;1,5\nb;c;2,5\n", kEdges), (Rows{{"a", "b", "1,5"}, {"b", "c", "2,5"}}));
  EXPECT_EQ(read("a, b\tr\tc, d\n", kTriples), (Rows{{"a, b", "r", "c, d"}}));
}

TEST_F(TableReaderTest, SettingsDecideTheSeparator) {
  EXPECT_EQ(read("a b,c d\n", kEdges, {.separator = "comma"}), (Rows{{"a b", "c d"}}));
  EXPECT_EQ(read("a b,c d\n", kEdges, {.separator = ","}), (Rows{{"a b", "c d"}}));
  EXPECT_EQ(read("a b\tc d\n", kEdges, {.separator = "tab"}), (Rows{{"a b", "c d"}}));
  EXPECT_EQ(read("a => b\n", kEdges, {.separator = "=>"}), (Rows{{"a", "b"}}));
  reject("a,b\n", kEdges, {"1 bad line of 1", "has 1 field, none for to", "separated by tabs"}, {.separator = "tab"});
  reject("a b\n", kEdges, {"data.separator is \"\""}, {.separator = ""});
}

TEST_F(TableReaderTest, ReadsQuotesOfCsv) {
  EXPECT_EQ(read("\"a, b\",\"r \"\"x\"\"\",c\nd,r,\"\"\"e\"\n", kTriples),
            (Rows{{"a, b", "r \"x\"", "c"}, {"d", "r", "\"e"}}));
  // As R writes tables; a text between tabs or blanks with other quotes has them in its names.
  EXPECT_EQ(read("\"user\" \"item\"\n\"u 1\" \"i 1\"\n", kEdges, {.heading = "yes"}), (Rows{{"u 1", "i 1"}}));
  EXPECT_EQ(read("<a>\t<r>\t\"b\"@en\n<c>\t<r>\t\"d\"\n", kTriples),
            (Rows{{"<a>", "<r>", "\"b\"@en"}, {"<c>", "<r>", "\"d\""}}));
  reject("a,r,\"b\nc,r,d\n", kTriples, {"table has a quoted field that goes on in the next line, as in 'a,r,\"b'"});
  reject("a,r,\"b\"x\nc,r,d\n", kTriples, {"table:1 has text after a field in quotes"});
}

TEST_F(TableReaderTest, ReadsQuotedNamesBetweenBlanks) {
  EXPECT_EQ(read("\"new york\" x\npoint \"la paz\"\n", kEdges), (Rows{{"new york", "x"}, {"point", "la paz"}}));
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("separated by blanks, with names in quotes")));
  EXPECT_EQ(read("u \"i 1\" i2\nv i2\n", kLists), (Rows{{"u", "i 1", "i2"}, {"v", "i2"}}));
  EXPECT_EQ(read("say \" x\n5\" y\n", kLists), (Rows{{"say", "\"", "x"}, {"5\"", "y"}}));
  reject("\" y\n\"new york\" x\n", kLists, {"table:2 has a name in quotes with a blank"});
}

TEST_F(TableReaderTest, RejectsTwoSeparators) {
  reject("u:i5,i6\nv:i6,i7\n", kLists, {"has ':' within names", "separated by commas", "'u:i5' and 'i6'"});
  reject("u i5,i6\nv i6,i7\n", kLists, {"has ',' within names", "separated by blanks", "data.separator to \"blanks\""});
  reject("u\ti5;i6\nv\ti6;i7\n", kLists, {"has ';' within names"});
  reject("u:v,w\n", kEdges, {"has ':' within names"});
  EXPECT_EQ(read("u i5,i6\n", kLists, {.separator = "blanks"}), (Rows{{"u", "i5,i6"}}));
  for (char const* good : {"u:1,i:5\nu:2,i:7\n", "http://a b\nhttp://c d\n", "u i,5 j\nv i6\nw i7\n"}) {
    EXPECT_GE(read(good, kLists).size(), 2U) << good;
  }
  reject("a\tb,c\na,b\na,c\n", kEdges, {"table:1 has a tab within a field"});
  reject("\"a\tb\",c\na,b\n", kEdges, {"table:1 has a tab within a field"});
  for (char const* lines : {"<a> <b> <c> .\n", "<a>\t<b>\t<c> .\n", "<a> <b> <c>.\n_:a <b> \"c d\" .\n"}) {
    reject(lines, kTriples, {"has lines of N-Triples, such as '<a>", "between tabs", "sed -E"});
  }
}

TEST_F(TableReaderTest, ReadsALastColumnThatMostLinesLack) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += fmt::format("n{},n{}\n", i, i + 1);
  EXPECT_EQ(read(text + "a,b,9\n", kEdges).back(), (Row{"a", "b", "9"}));
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("separated by commas; columns 1, 2")));
  reject("source,target\na,b\nb,c\nc,a,9\n", kEdges, {"table:4 has 3 fields instead of 2"});
}

TEST_F(TableReaderTest, RejectsNotationsAroundNames) {
  for (char const* text : {"1 2 {'weight': 3}\n2 3 {'weight': 5}\n", "1 2 {}\n2 3 {}\n", "1,2,{\"weight\": 3}\n"}) {
    reject(text, kEdges, {"has attributes in braces after names, as in '1", "data=[\"weight\"]"});
  }
  for (char const* text : {"(1, 2)\n(2, 3)\n", "r(u1, i2).\nr(u2, i2).\n", "u1 [i1, i2]\nu2 [i2, i3]\n"}) {
    reject(text, kLists, {"has brackets around the names of a line", "data.separator"});
  }
  reject("('a', 'r', 'b')\n('b', 'r', 'c')\n", kTriples, {"has brackets around the names", "remove '(' and ')'"});
  reject("user,item\nu1,\"['i1', 'i2']\"\nu2,\"['i1', 'i3']\"\n", kLists, {"has lists in brackets, as in 'u1'"});
  for (char const* text :
       {"\"('n1', 'n2')\",1\n\"('n2', 'n3')\",2\n", "(1, 10)\t2\n(2, 10)\t1\n", "  (21, 3)\t1.0\n  (2, 30)\t4.0\n",
        "frozenset({'a', 'b'})\t2\nfrozenset({'c', 'b'})\t1\n"}) {
    reject(text, kEdges, {"has lists in brackets, as in", "data.separator"});
  }
  reject("('n1', 'n2'),1\n('n2', 'n3'),2\n", kEdges, {"has brackets around the names", "remove '(' and ')'"});
  for (char const* text : {"u1: i2 i3\nu2: i3\n", "u1 -> i1\nu2 -> i2\n", "u1:\ti2\nu2:\ti2\n"}) {
    reject(text, kLists, {"has a sign after the first name of a line, as in 'u1"});
  }
  reject("a: b\nb: c\n", kEdges, {"has a sign after the first name", "as in 'a:' and 'b'"});
  for (char const* text : {"u1 a:5 b:2 c:1\nu2 b:1\n", "u1 1:0.5 2:7\nu2 1:3\n", "u1\ta=5\tb=5\n"}) {
    reject(text, kLists, {"and a number after the items of a line", "data.separator"});
  }
  EXPECT_EQ(read("u1: i2\n", kLists, {.separator = "blanks"}), (Rows{{"u1:", "i2"}}));
}

TEST_F(TableReaderTest, NamesMayHaveSignsAndBrackets) {
  for (char const* text :
       {"u1 book:7 book:9\nu2 book:7\n", "u1 http://a/5 http://b/6\n", "f(x) g(x)\ng(x) h(x)\n", "u1 a[0] b[1]\n"}) {
    EXPECT_GE(read(text, kLists).size(), 1U) << text;
    EXPECT_TRUE(notices_.empty()) << text << notices_.front();
  }
  EXPECT_EQ(read("wd:5\twdt:31\twd:7\n", kTriples), (Rows{{"wd:5", "wdt:31", "wd:7"}}));
  EXPECT_EQ(read("Foo (band)\tr\tBar (city)\n", kTriples), (Rows{{"Foo (band)", "r", "Bar (city)"}}));
  read("u1 book:7 film:9 film:8\nu2 book:5 film:4 book:1\n", kLists);
  EXPECT_THAT(notices_,
              ElementsAre(HasSubstr("has ':' and a number after the items of a line, as in 'u1' and 'book:7'")));
  read("u1 a, b, c\nu2 b, d\n", kLists);
  EXPECT_THAT(notices_, testing::Contains(HasSubstr("has a blank within the first name of most lines")));
  read("Ann Lee,a,b\nBob Ray,b\n", kLists, {.separator = "comma"});
  EXPECT_THAT(notices_, testing::Not(testing::Contains(HasSubstr("blank within"))));
}

TEST_F(TableReaderTest, SaysThatTheFirstLineMayBeSizes) {
  std::string pairs, ratings, lists;
  for (int i = 0; i < 20; ++i) {
    pairs += fmt::format("{} {}\n", i % 7, i % 5);
    ratings += fmt::format("{} {} 3\n", i % 7, i % 5);
    lists += fmt::format("u{} {} {}\n", i, i % 5, 7);
  }
  auto const says = [&](std::string const& text, TableKind const& kind, TableSettings const& settings = {}) {
    read(text, kind, settings);
    return notices_.size() > 0 && notices_.back().find("has the number of the lines below it") != std::string::npos;
  };
  EXPECT_TRUE(says("7 7 20\n" + ratings, kRatings));
  EXPECT_THAT(notices_.back(), HasSubstr("'7 7 20'"));
  EXPECT_TRUE(says("7 7 20\n" + ratings, kEdges));
  EXPECT_TRUE(says("7 20\n" + pairs, kEdges));
  EXPECT_TRUE(says("7 20\n" + pairs, kLists));
  EXPECT_TRUE(says("20 31\n" + lists, kLists, {.separator = "blanks", .columns = {"1", "2-"}}));  // as METIS
  EXPECT_TRUE(says("4 5\n1 2\n2 3\n3 4\n4 1\n1 3\n", kEdges));
  EXPECT_FALSE(says("7 7 21\n" + ratings, kRatings));
  EXPECT_FALSE(says("5 20\n" + pairs, kEdges));  // a node of that number
  EXPECT_FALSE(says("7 7 20\n" + ratings, kRatings, {.heading = "no"}));
  EXPECT_FALSE(says("7 7 20\n" + ratings, kRatings, {.heading = "yes"}));
}

TEST_F(TableReaderTest, RejectsTablesOfNumbersWithoutKnownNames) {
  for (char const* text :
       {"1,2,3,4,5\n6,7,8,9,1\n", "id,age,income,height,label\n1,30,5,180,0\n", "user,i0,i1,i2,i3\n1,4,0,0,2\n"}) {
    reject(text, kRatings, {"has lines of 5 fields", "cannot be told", "for example [\"1\", \"2\", \"3\"]"});
  }
  EXPECT_EQ(read("1,2,3,4,5\n", kRatings, {.columns = {"1", "2", "3"}}), (Rows{{"1", "2", "3"}}));
  EXPECT_EQ(read("a,user,b,item,rating\n0,1,0,2,3\n", kRatings), (Rows{{"1", "2", "3"}}));
}

TEST_F(TableReaderTest, RejectsRatingsThatALaterColumnMayHave) {
  for (char const* heading : {"User Id,Movie Id,Average Rating,My Rating", "User Id,Movie Id,Number of Pages,My Rating",
                              "user_id,movie_id,pages,my_rating", "who,what,pages,userRating"}) {
    reject(heading + std::string("\n1,2,300,4\n"), kRatings,
           {"cannot be told", "row, column, rating", "name them with data.columns"});
  }
  EXPECT_EQ(read("User Id,Movie Id,Average Rating,My Rating\n1,2,3.5,4\n", kRatings, {.columns = {"1", "2", "4"}}),
            (Rows{{"1", "2", "4"}}));
  for (char const* heading : {"User Id,Movie Id,My Rating,Time", "who,what,Rating,My Rating",
                              "User Id,Movie Id,Grade,Rating Time", "who,what,grade,overrating"}) {
    EXPECT_EQ(read(heading + std::string("\n1,2,3,4\n"), kRatings), (Rows{{"1", "2", "3"}})) << heading;
  }
}

TEST_F(TableReaderTest, SkipsHeadings) {
  EXPECT_EQ(read("userId,movieId,rating,timestamp\n1,2,3.5,4\n", kRatings), (Rows{{"1", "2", "3.5"}}));
  EXPECT_THAT(notices_,
              ElementsAre(HasSubstr("table: separated by commas, with a heading; columns userId, movieId, rating")));
  EXPECT_EQ(read("userId,movieId,rating,timestamp\n1,2,3.5,4\n", kLists), (Rows{{"1", "2"}}));
  EXPECT_EQ(read("head\trelation\ttail\na\tr\tb\n", kTriples), (Rows{{"a", "r", "b"}}));
  EXPECT_EQ(read("Node A,Node B\n1,2\n2,3\n", kEdges), (Rows{{"1", "2"}, {"2", "3"}}));
  EXPECT_EQ(read("x\ty\tz\na\tr\tb\n", kTriples, {.heading = "yes"}), (Rows{{"a", "r", "b"}}));
  EXPECT_EQ(read("head\trelation\ttail\n", kTriples, {.heading = "no"}), (Rows{{"head", "relation", "tail"}}));
  EXPECT_EQ(read("a r b\nc r 7\n", kTriples).size(), 2U);  // names that are numbers make no heading
}

TEST_F(TableReaderTest, SaysThatTheFirstLineMayBeAHeading) {
  std::string pairs, numbers, ratings, lists;
  for (int i = 0; i < 12; ++i) {
    std::string const a = std::to_string(i), b = std::to_string(i % 5);
    pairs += "e" + a + ",f" + b + "\n";
    numbers += a + "," + b + "\n";
    ratings += a + "," + b + "," + b + "\n";
    lists += "u" + a + " i" + b + " i7\n";
  }
  auto const says = [&](std::string const& text, TableKind const& kind, TableSettings const& settings = {}) {
    read(text, kind, settings);
    return notices_.size() > 0 && notices_.back().find("the first line of " + (folder_.path() / "table").string() +
                                                       " may be a heading") != std::string::npos;
  };
  EXPECT_TRUE(says("follower,followee\n" + pairs, kEdges));
  EXPECT_THAT(notices_.back(), HasSubstr("'follower', 'followee'. data.heading = \"yes\" skips it"));
  EXPECT_TRUE(says("reader,paper\n" + pairs, kLists));
  EXPECT_TRUE(says("reader papers\n" + lists, kLists));
  EXPECT_TRUE(says("reader,paper\n" + pairs + "reader,paper\n" + pairs, kLists));  // two files that were joined
  EXPECT_TRUE(says("0,1,2\n" + ratings, kRatings));  // as pandas writes a table without names
  EXPECT_TRUE(says("0,1\n" + pairs, kEdges));
  EXPECT_FALSE(says("0,1\n" + numbers, kEdges));  // nodes that are numbered from 0
  EXPECT_FALSE(says("reader,f1\n" + pairs, kEdges));
  EXPECT_FALSE(says("e99,f99\n" + pairs, kEdges));  // a name like the others
  EXPECT_FALSE(says("follower,followee\n" + pairs, kEdges, {.heading = "no"}));
  EXPECT_FALSE(says("follower,followee\n" + pairs, kEdges, {.heading = "yes"}));
}

TEST_F(TableReaderTest, FindsHeadingsInTheMiddle) {
  std::string const ratings = "userId,movieId,rating\n1,2,3\n", names = "x,y\na,b\n";
  EXPECT_EQ(read(ratings + ratings + ratings, kRatings).size(), 3U);
  EXPECT_THAT(notices_.back(), HasSubstr("skipped 2 headings of "));
  EXPECT_EQ(read(names + names, kEdges, {.heading = "yes"}), (Rows{{"a", "b"}, {"a", "b"}}));
  // The first of several files has no heading, or another one.
  reject("a b\nsource target\nb c\n", kEdges, {"table:2 has the names of the columns", "data.heading = \"no\""});
  reject("user,item\nu,i\nItem,User_ID\ni,u\n", kLists, {"table:3 has the names of the columns"});
  reject("a\tr\tb\nhead\trelation\ttail\n", kTriples, {"table:2 has the names of the columns"});
  EXPECT_EQ(read("a b\nsource target\n", kEdges, {.heading = "no"}).size(), 2U);
  EXPECT_EQ(read("a b\nsource c\n", kEdges).size(), 2U);
}

TEST_F(TableReaderTest, SkipsIndexColumns) {
  // pandas writes an empty name, R none.
  EXPECT_EQ(read(",user,item,rating\n0,7,8,1.5\n1,9,8,2\n", kRatings), (Rows{{"7", "8", "1.5"}, {"9", "8", "2"}}));
  EXPECT_EQ(read("\"source\" \"target\"\n\"1\" \"a\" \"b\"\n\"2\" \"b\" \"c\"\n", kEdges),
            (Rows{{"a", "b"}, {"b", "c"}}));
  EXPECT_EQ(read(",first,second\n0,a,b\n1,b,c\n", kEdges, {.heading = "yes"}), (Rows{{"a", "b"}, {"b", "c"}}));
}

TEST_F(TableReaderTest, ColumnsAreNamedOrNumbered) {
  char const* const text = "when,film,who,stars\n4,b,a,5\n";
  EXPECT_EQ(read(text, kLists, {.columns = {"who", "film"}}), (Rows{{"a", "b"}}));
  EXPECT_EQ(read(text, kLists, {.columns = {"3", "film"}}), (Rows{{"a", "b"}}));
  EXPECT_EQ(read("4,b,a,5\n", kLists, {.columns = {"3", "2"}}), (Rows{{"a", "b"}}));
  EXPECT_EQ(read("9 u a b\n9 v\n", kLists, {.columns = {"2", "3-"}}), (Rows{{"u", "a", "b"}, {"v"}}));
  EXPECT_EQ(read("rating,item,user\n5,2,1\n", kRatings), (Rows{{"1", "2", "5"}}));  // by the names that they have
  reject(text, kLists, {"has no column \"user\"", "use one of when, film, who, stars"}, {.columns = {"user", "film"}});
  // Names that are values of a file without a heading.
  reject("u1,i1\nu1,i2\n", kLists, {"has \"u1\", which data.columns names", "use numbers"}, {.columns = {"u1", "i1"}});
  reject("u1,i1\nu1,i2\n", kLists, {"has no column \"user\"", "or numbers"}, {.columns = {"user", "item"}});
  EXPECT_EQ(read("u,i\nu,i2\n", kLists, {.heading = "yes", .columns = {"u", "i"}}), (Rows{{"u", "i2"}}));
  reject("1,2\n", kLists, {"has no heading", "\"who\""}, {.heading = "no", .columns = {"who", "2"}});
  reject(text, kLists, {"data.columns has 1", "name 2"}, {.columns = {"who"}});
  reject(text, kLists, {"data.columns has who twice"}, {.columns = {"who", "who"}});
  reject(text, kLists, {"numbered from 1"}, {.columns = {"0", "1"}});
}

TEST_F(TableReaderTest, RejectsColumnsThatCannotBeTold) {
  reject("a,r,b,2020\nc,r,d,2021\n", kTriples,
         {"lines of 4 fields", "subject, relation, object", "data.columns", "for example [\"1\", \"2\", \"3\"]"});
  std::vector<TableColumn> const many(7, TableColumn{.is = "value", .headings = ""});
  reject("1,2,3,4,5,6,7,8\n", {.columns = many}, {"[\"1\", \"2\", \"3\", \"4\", and so on to \"7\"]"});
  reject("date,user,rating\n1,2,3\n", kRatings, {"has the columns date, user, rating", "data.columns"});
  reject("u1\ti 1 i 2\nu2\ti 1 i 4\n", kLists, {"tabs and with blanks", "data.separator"});
  EXPECT_EQ(read("u1\ti 1\nu2\ti 2\n", kLists, {.separator = "tab"}), (Rows{{"u1", "i 1"}, {"u2", "i 2"}}));
}

TEST_F(TableReaderTest, SkipsCommentsAndEmptyLines) {
  EXPECT_EQ(read("# by hand\n\na b\n \t\n%x\n#y z\nb c\n\n", kEdges), (Rows{{"a", "b"}, {"b", "c"}}));
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("skipped 3 comment lines"),
                                    HasSubstr("between its data, has as many fields as these, such as '#y z'")));
  // A name may begin so, after the first line.
  EXPECT_EQ(read("# by hand\na\tr\tb\n#1\tr\tb\n\n", kTriples), (Rows{{"a", "r", "b"}, {"#1", "r", "b"}}));
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("skipped 1 comment line")));
  EXPECT_EQ(read("#1\tr\tb\n", kTriples, {.comment = ""}), (Rows{{"#1", "r", "b"}}));
  EXPECT_EQ(read("a b\n// c d\n", kEdges, {.comment = "//"}), (Rows{{"a", "b"}}));
}

TEST_F(TableReaderTest, CountsBadLines) {
  std::string const text = "a\tr\tb\na\tr\na\tr\tb\tc\na\t\tb\n";
  reject(text, kTriples,
         {"3 bad lines of 4", "table:2 has 2 fields, none for object", "table:3 has 4 fields instead of 3",
          "table:4 has an empty field for relation", "a line, separated by tabs", "data.bad_share_max"});
  EXPECT_EQ(read(text, kTriples, {}, 0.75), (Rows{{"a", "r", "b"}}));
  EXPECT_EQ(read("1 2 3\n1 2 4 77\n", kRatings).size(), 2U);  // times may lack
}

TEST_F(TableReaderTest, NamesHaveNoBlanksAroundThem) {
  Rows const one{{"a", "r", "b c"}};
  for (char const* text : {"a\tr\tb c \n", " a\t r \tb c\r\n", "a,r, b c\n", "\"a\" , r,\"b c\"\n", "a\tr\tb c"}) {
    EXPECT_EQ(read(text, kTriples), one) << text;
  }
}

TEST_F(TableReaderTest, RejectsHeadingsWithFewerNamesThanFields) {
  reject("userId,movieId,rating\n9,5,3,5\n9,6,4,0\n", kRatings, {"a heading of 3 names above lines of 4 fields"});
  reject("user,item\n9,5,3\n9,6,4\n", kLists, {"a heading of 2 names above lines of 3 fields"});
  // Row names, as R writes them; without quotes, the first column may be the user.
  EXPECT_EQ(read("\"user\",\"item\"\n\"1\",9,5\n\"2\",9,6\n", kLists), (Rows{{"9", "5"}, {"9", "6"}}));
  EXPECT_EQ(read("\"V1\" \"V2\"\n\"1\" \"u1\" \"u5\"\n\"2\" \"u2\" \"u6\"\n", kEdges),
            (Rows{{"u1", "u5"}, {"u2", "u6"}}));
  for (char const* more : {"user,item\n0,9,5\n1,9,6\n", "\"user\" \"item\"\n\"u1\" \"i1\" 5\n\"u2\" \"i1\" 3\n"}) {
    reject(more, kLists, {"has a heading of 2 names above lines of 3 fields"});
  }
}

TEST_F(TableReaderTest, PartsOfATableHaveTheSameColumns) {
  auto const check = [&](char const* first, char const* second) {
    SameColumns same;
    for (char const* text : {first, second}) {
      same.check(TableReader(folder_.write("part", text), {}, kRatings).layout(), text == first ? "one" : "two");
    }
  };
  check("1 2 3\n", "4 5 6\n");
  check("user,item,rating\n1,2,3\n", "4,5,6\n");
  check("user,item,rating\n1,2,3\n", "item,user,rating\n4,5,6\n");
  expect_error([&] { check("item,user,rating\n1,2,3\n", "4,5,6\n"); }, {"two has none, and one has a heading"});
  expect_error([&] { check("a,b,c\n1,2,3\n", "b,a,c,d\n4,5,6,7\n"); },
               {"two has the columns b, a, c, d, and one has them in another order"});
  check("a,b,c\n1,2,3\n", "d,e,f\n4,5,6\n");  // other names
  expect_error([&] { check("a,b,c\n1,2,3\n", "b,a,c\n4,5,6\n"); },
               {"two has the columns b, a, c, and one has them in another order", "data.columns"});
}

TEST_F(TableReaderTest, ReadsMatrices) {
  char const* const head = "%%MatrixMarket matrix coordinate pattern symmetric\n% by hand\n3 3 2\n";
  EXPECT_EQ(read(std::string(head) + "1 2\n3 1\n", kEdges), (Rows{{"1", "2"}, {"3", "1"}}));
  EXPECT_EQ(read("%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2 5\n", kLists), (Rows{{"1", "2"}}));
  EXPECT_EQ(read("%%matrixmarket MATRIX Coordinate Real General\n3 3 1\n1 2 5\n", kLists), (Rows{{"1", "2"}}));
  reject(head, kEdges, {"has 0 entries, but its size line says 2"});
  reject(head, kTriples, {"is a matrix", "names"});
  reject("%%MatrixMarket matrix array real general\n3 3\n", kEdges, {"matrix array real general"});
  // Numbers of columns that change nothing are allowed.
  std::string const weighted = "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2 5\n";
  EXPECT_EQ(read(weighted, kEdges, {.columns = {"1", "2"}}), (Rows{{"1", "2"}}));
  reject(weighted, kEdges, {"is a matrix", "leave data.columns out"}, {.columns = {"2", "1"}});
}

TEST_F(TableReaderTest, AllReadersCheckMatrices) {
  std::string const head = "%%MatrixMarket matrix coordinate ";
  for (TableKind const* kind : {&kRatings, &kEdges, &kLists}) {
    reject(head + "real general\n3 3 2\n1 2 5\n", *kind, {"has 1 entries, but its size line says 2"});
    reject(head + "real general\n3 3 2\n0 1 5\n1 4 5\n", *kind,
           {"2 bad lines of 2", "table:3 has a row that is not between 1 and", "table:4 has a column"});
    reject(head + "real general\n3 3 1\n1 2\n", *kind, {"table:3 has no value"});
  }
  for (TableKind const* kind : {&kRatings, &kLists}) {
    reject(head + "real symmetric\n3 3 1\n1 2 5\n", *kind, {"is a symmetric matrix", "write it as 'general'"});
  }
  reject(head + "pattern general\n3 3 1\n1 2\n", kRatings, {"it has no ratings"});
  reject(head + "real general\n3 5 1\n1 2 5\n", kEdges, {"has 3 rows and 5 columns", "would be one name"});
  reject(head + "real general\n3 3 3\n1 2 5\n1 3 0\n2 1 -1\n", kLists, {"2 bad lines of 3", "not above 0"});
  EXPECT_EQ(read(head + "real general\n3 3 1\n1 3 0\n", kRatings), (Rows{{"1", "3", "0"}}));  // a rating may be 0
}

TEST_F(TableReaderTest, RejectsWhatIsNoText) {
  reject(std::string_view("a b\nc\0d e\n", 10), kEdges, {"table:2 has a byte of 0"});
  reject("a b\ncaf\xE9 d\n", kEdges, {"table:2 has the byte 0xE9", "LATIN1"});
  reject(std::string_view("\xFF\xFE"
                          "a\0 \0b\0",
                          8),
         kEdges, {"UTF-16"});
}

// Blocks of 1 MiB are checked at once, and lines of others one by one.
TEST_F(TableReaderTest, FindsOddCharactersInLaterBlocks) {
  std::string const block = [] {
    std::string text;
    while (text.size() < (std::size_t{3} << 19)) text += "a\tb\r\n";
    return text;
  }();
  std::size_t const lines = block.size() / 5;
  EXPECT_EQ(read(block + block, kEdges).size(), 2 * lines);
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("separated by tabs")));
  for (char const* odd : {"c\xC2\xA0\td\n", "c\rc\td\n"}) {
    EXPECT_EQ(read(block + odd + block, kEdges).size(), 2 * lines + 1);
    EXPECT_THAT(notices_, testing::Contains(HasSubstr(fmt::format("in line {}", lines + 1)))) << odd;
  }
  reject(block + "c\xFF\td\n", kEdges, {"0xFF", "not UTF-8"});
}

}  // namespace
}  // namespace gpups::trainer::table_test
