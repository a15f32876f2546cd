// SPDX-License-Identifier: Apache-2.0
// Networks are read from lines of edges, and neighbours are drawn in proportion to weights.
#include "trainer/tasks/nodes/network_files.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trainer/base/random.hpp"

namespace gpups::trainer::network_test {
namespace {

using test::expect_error;
using testing::ElementsAre;

class NetworkTest : public testing::Test {
 protected:
  Network read(std::string const& text, bool directed = false, double bad_share_max = 0) {
    folder_.write("edges.txt", text);
    notices_.clear();
    return read_network({.folder = folder_.path().string(),
                         .train = "edges.txt",
                         .valid = "",
                         .test = "",
                         .valid_share = 0,
                         .test_share = 0,
                         .bad_share_max = bad_share_max},
                        directed, notices_)
        .network;
  }
  // Reads a chain of 500 nodes, and some of its edges again in the other direction.
  SplitNetwork read_chain(DataConfig config) {
    std::string text;
    for (int i = 0; i < 500; ++i) text += fmt::format("n{} n{}\n", i, i + 1);
    for (int i = 0; i < 500; i += 7) text += fmt::format("n{} n{}\n", i + 1, i);
    folder_.write("edges.txt", text);
    notices_.clear();
    config.folder = folder_.path().string();
    config.train = "edges.txt";
    return read_network(config, false, notices_);
  }
  // The names of a node's neighbours.
  static std::vector<std::string> around(Network const& network, std::string_view name) {
    std::vector<std::string> names;
    for (std::uint32_t const n : network.neighbours(*network.nodes().find(name))) {
      names.emplace_back(network.nodes().name(n));
    }
    return names;
  }

  test::TemporaryFolder folder_;
  std::vector<std::string> notices_;
};

TEST_F(NetworkTest, ReadsEdgesInBothDirections) {
  Network const network = read("# a comment\n%another\n\na b\r\n  b\tc \nc a\na a\n");
  EXPECT_EQ(network.nodes().size(), 3U);
  EXPECT_EQ(network.edges(), 7U);
  EXPECT_THAT(around(network, "a"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(around(network, "c"), ElementsAre("a", "b"));
  EXPECT_TRUE(network.has_edge(0, 0));
  EXPECT_FALSE(network.has_edge(1, 1));
  EXPECT_THAT(network.weights_of_nodes(), ElementsAre(3, 2, 2));
}

TEST_F(NetworkTest, ReadsDirectedEdges) {
  Network const network = read("a b\nb c\na c\na b\n", true);
  EXPECT_THAT(around(network, "a"), ElementsAre("b", "c"));
  EXPECT_TRUE(around(network, "c").empty());
  EXPECT_THAT(network.weights_of_nodes(), ElementsAre(0, 1, 2));
}

TEST_F(NetworkTest, DrawsNeighboursByWeight) {
  constexpr std::uint64_t kDraws = 100'000;
  Network const network = read("x y 1\nx z 2.5\nx y 0.5\nx w\n", true);  // w has weight 1
  EXPECT_THAT(network.weights_of_nodes(), ElementsAre(0, 1.5, 2.5, 1));
  std::vector<double> shares(network.nodes().size());
  for (std::uint64_t i = 0; i < kDraws; ++i) shares[network.draw_neighbour(0, random_bits(9, i))] += 1.0 / kDraws;
  EXPECT_THAT(shares, ElementsAre(0, testing::DoubleNear(0.3, 0.01), testing::DoubleNear(0.5, 0.01),
                                  testing::DoubleNear(0.2, 0.01)));
  EXPECT_EQ(network.draw_neighbour(0, 0), 1U);
  EXPECT_EQ(network.draw_neighbour(0, ~std::uint64_t{0}), 3U);
}

TEST_F(NetworkTest, RejectsBadLines) {
  expect_error([&] { read("a b\na\n"); },
               {"edges.txt:2", "has 1 field", "two nodes and perhaps a weight, separated by blanks"});
  expect_error([&] { read("a b c d\n"); }, {"lines of 4 fields", "from, to, weight (or none)", "data.columns"});
  expect_error([&] { read("a b\na b c d\n"); }, {"edges.txt:2 has 4 fields instead of 3"});
  for (char const* weight : {"x", "0", "-1", "inf", "1x", "1e-400", "1e400"}) {
    expect_error([&] { read(std::string("a b ") + weight + "\n"); }, {"a weight that is not a number above 0"});
  }
  expect_error([&] { read("# nothing\n"); }, {"has no edges"});
  EXPECT_EQ(read("a b\na\n", false, 0.5).edges(), 2U);
  EXPECT_THAT(notices_, ElementsAre(testing::HasSubstr("skipped 1 bad line of 2")));
}

// The third column of lines below pairs may be anything.
TEST_F(NetworkTest, RejectsWeightsBelowPairs) {
  std::string pairs;
  for (int i = 0; i < 1000; ++i) pairs += fmt::format("a{} b{}\n", i % 30, i % 77);
  expect_error([&] { read(pairs + "a b\na1 b1 4\n"); },
               {"edges.txt:1002 has 3 fields, and each of the first 1000 lines has 2",
                "[\"1\", \"2\", \"3\"] reads the third as weight"});
  DataConfig data{.folder = folder_.path().string(), .train = "edges.txt", .valid = "", .test = ""};
  data.valid_share = data.test_share = 0;
  data.table.columns = {"1", "2", "3"};
  EXPECT_EQ(read_network(data, false, notices_).network.edges(), 2002U);
  EXPECT_THAT(notices_, testing::Contains(testing::HasSubstr("1001 lines without one")));
  EXPECT_EQ(read("a b 2\n" + pairs + "a b\na1 b1 4\n").edges(), 2002U);
}

TEST_F(NetworkTest, SaysThatWeightsLookLikeTimes) {
  read("a b 1082040961\nb c 1082155839\n");
  EXPECT_THAT(notices_, ElementsAre("edges have weights",
                                    testing::AllOf(testing::HasSubstr("look like times"),
                                                   testing::HasSubstr("data.columns, for example [\"1\", \"2\"]"))));
  for (char const* lines : {"a b 1082040961\nb c 99999999\n", "a b 1082040961.5\nb c 1082155839\n", "a b\nb c\n"}) {
    notices_.clear();
    read(lines);
    EXPECT_THAT(notices_, testing::Not(testing::Contains(testing::HasSubstr("times")))) << lines;
  }
}

TEST_F(NetworkTest, AWeightOfOneLineCounts) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += fmt::format("{} {}\n", i, i + 1);
  Network const network = read(text + "0 1 1000000\n", true);
  EXPECT_EQ(network.weights_of_nodes()[1], 1'000'001);
  EXPECT_THAT(notices_, ElementsAre("edges have weights; 100 lines without one, of 101, have weight 1"));
}

TEST_F(NetworkTest, SaysThatTheFirstColumnHasNoNodes) {
  using testing::Contains, testing::HasSubstr, testing::Not, testing::Each;
  for (char const* counts : {"0,5,7\n1,5,8\n2,7,8\n", "1 5 7\n2 5 8\n3 7 8\n", "nr,a,b\n0,5,7\n1,5,8\n2,7,8\n"}) {
    EXPECT_EQ(read(counts).edges(), 6U);
    EXPECT_THAT(notices_, Contains(HasSubstr("counts the lines, and is read as a node"))) << counts;
  }
  (void)read("e 1 2\ne 2 3\ne 3 4\n");
  EXPECT_THAT(notices_, Contains(HasSubstr("is the same in each line, and is read as a node")));
  for (char const* nodes : {"0 5 7\n1 5 8\n3 7 8\n", "source,target,weight\n0,5,7\n1,5,8\n2,7,8\n",
                            "Unnamed: 0,a,b\n0,5,7\n1,5,8\n2,7,8\n", "0 5\n1 5\n2 7\n"}) {
    (void)read(nodes);
    EXPECT_THAT(notices_, Each(Not(HasSubstr("is read as a node")))) << nodes;
  }
}

TEST_F(NetworkTest, SaysThatWeightsAreNodes) {
  (void)read("1 2 3\n2 3 4\n3 4 5\n4 5 1\n5 1 2\n");
  EXPECT_THAT(notices_, testing::Contains(testing::HasSubstr("are names of nodes, such as 1")));
  (void)read("1 2 1\n2 3 2\n3 4 1\n4 5 2\n5 1 1\n");
  EXPECT_THAT(notices_, testing::Each(testing::Not(testing::HasSubstr("are names of nodes"))));
}

TEST_F(NetworkTest, SaysThatWeightsCountLines) {
  using testing::Contains, testing::HasSubstr, testing::Not, testing::Each;
  (void)read("a b 7\nb c 8\nc d 9\nd e 10\ne a 11\n");
  EXPECT_THAT(notices_, Contains(HasSubstr("count its lines")));
  for (char const* const other : {"a b 7\nb c 8\nc d 9\nd e 11\ne a 12\n", "a b 1\nb c 2\n",
                                  "from,to,weight\na,b,1\nb,c,2\nc,d,3\nd,e,4\ne,a,5\n"}) {
    (void)read(other);
    EXPECT_THAT(notices_, Each(Not(HasSubstr("count its lines")))) << other;
  }
}

TEST_F(NetworkTest, SaysThatNodesAreFractions) {
  using testing::Contains, testing::HasSubstr, testing::Not, testing::Each;
  (void)read("# v0\nv37 0.5\nv12 1.5\n# v1\nv37 1\n");  // of LGL
  EXPECT_THAT(notices_, Contains(HasSubstr("has decimal fractions, such as 0.5, which are read as nodes")));
  for (char const* const other : {"a 1\nb 2\nc 2.5\n", "a b 0.5\nb c 1.5\nc a 2.5\n", "0.5 1.5\n1.5 2.5\n2.5 0.5\n"}) {
    (void)read(other);
    EXPECT_THAT(notices_, Each(Not(HasSubstr("decimal fractions")))) << other;
  }
}

TEST_F(NetworkTest, SaysThatNodesAreNumbersBetweenNames) {
  using testing::Contains, testing::HasSubstr, testing::Not, testing::Each;
  (void)read("# v0\nv37 5\n# v1\nv12 1\n# v2\nv7 3\n# v3\nv7 2\n");  // of LGL
  EXPECT_THAT(notices_, Contains(HasSubstr("has 3 comments of one name between lines with numbers")));
  for (char const* const other :
       {"# v0\nv37 5\n# of 1\nv12 1\n# v2\nv7 3\n", "# v0\n# v1\n# v2\nv37 5\nv12 1\nv7 3\n"}) {
    (void)read(other);
    EXPECT_THAT(notices_, Each(Not(HasSubstr("of one name")))) << other;
  }
}

TEST_F(NetworkTest, SaysThatCommentsHaveTheFieldsOfEdges) {
  using testing::Contains, testing::HasSubstr, testing::Not, testing::Each;
  (void)read("# from and to\nA B\n%C3%81ed A\nB C\n%C3%89 B\n");
  EXPECT_THAT(notices_, Contains(HasSubstr(", between its data, have as many fields as these")));
  EXPECT_THAT(notices_, Contains(HasSubstr("such as '%C3%81ed A'")));
  (void)read("#A B\nA B\n# B\n#B\n#B C D\nB C\n");
  EXPECT_THAT(notices_, Each(Not(HasSubstr("between its data"))));
}

// Rows of a database table with a key, some of them deleted.
TEST_F(NetworkTest, SaysThatTheFirstColumnNumbersLines) {
  using testing::Contains, testing::HasSubstr, testing::Not, testing::Each;
  auto const text_of = [](std::string text, std::uint64_t keys) {
    for (std::uint64_t i = 0; i < 40; ++i) {
      text += fmt::format("{},{},{}\n", 40000 + (i * 7 + i / 3) % keys, 1 + random_bits(1, i) % 9,
                          1 + random_bits(2, i) % 9);
    }
    return text;
  };
  for (char const* const heading : {"id,user_id,friend_id\n", "rowid,from_user,to_user\n", "X,u,v\n", ""}) {
    (void)read(text_of(heading, 100000));
    EXPECT_THAT(notices_, Contains(HasSubstr("has another number in each line"))) << heading;
  }
  (void)read(text_of("", 30));
  EXPECT_THAT(notices_, Each(Not(HasSubstr("has another number in each line"))));
  (void)read(text_of("source,target,weight\n", 30));
  EXPECT_THAT(notices_, Each(Not(HasSubstr("has another number in each line"))));
}

TEST_F(NetworkTest, SaysThatUsersAndItemsAreTheSameNodes) {
  using testing::Contains, testing::HasSubstr, testing::Not, testing::Each;
  for (char const* const heading : {"userId,movieId", "product,customer"}) {
    (void)read(std::string(heading) + "\n1,3\n2,3\n3,2\n");
    EXPECT_THAT(notices_, Contains(HasSubstr("share 2 names, such as '3', and each is one node"))) << heading;
  }
  for (char const* const other :
       {"userId,movieId\n1,4\n2,4\n", "source,target\n1,3\n3,2\n", "user1,user2\n1,3\n3,2\n"}) {
    (void)read(other);
    EXPECT_THAT(notices_, Each(Not(HasSubstr("share")))) << other;
  }
}

TEST_F(NetworkTest, SaysThatNamesAreShortenedNumbers) {
  for (char const* const text : {"7.65614E+16 b\nb c\n", "a 7e+16\nb c\n"}) {
    (void)read(text);
    EXPECT_THAT(notices_, ElementsAre(testing::HasSubstr("+16' has an exponent"))) << text;
  }
  (void)read("1e5 7E-3\nE+16 xE+16\n1+1 a+b\n");
  EXPECT_TRUE(notices_.empty());
}

// Numbers of some lines are no names: those of nodes that are the third in each of their lines.
TEST_F(NetworkTest, SaysThatManyWeightsAreNodes) {
  using testing::Contains, testing::HasSubstr, testing::Not, testing::Each;
  auto const text_of = [](auto line) {
    std::string text;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      std::uint64_t const a = 1 + random_bits(1, i) % 100, b = a + 1 + random_bits(2, i) % 20;
      text += line(i, a, b, random_bits(3, i));
    }
    return text;
  };
  for (std::string const &text :
       {text_of([](auto i, auto a, auto b, auto) { return fmt::format("{} {} {}\n", 20 * (i / 4) + 20, a, b); }),
        text_of([](auto, auto a, auto b, auto other) { return fmt::format("{} {} {}\n", 1 + other % 8, a, b); }),
        text_of([](auto, auto a, auto b, auto other) { return fmt::format("{} {} {}\n", a, 1 + other % 8, b); }),
        // Some edges lead from a node to itself: as few as by chance, or many.
        text_of([](auto i, auto a, auto b, auto other) {
          return fmt::format("{} {} {}\n", 1'000'000'000 + i, a, other % 100 == 0 ? a : 1 + b % 100);
        }),
        text_of([](auto, auto a, auto b, auto other) {
          return fmt::format("{} {} {}\n", 1 + other % 9, a, other % 20 == 0 ? a : 1 + b % 100);
        }),
        text_of([](auto, auto a, auto b, auto other) {
          return other % 2 == 0 ? fmt::format("{} {}\n", a, b) : fmt::format("{} {} {}\n", a, b, b + 1);
        })}) {
    (void)read(text);
    EXPECT_THAT(notices_, Contains(HasSubstr("are names of nodes, such as"))) << text.substr(0, 30);
  }
  for (std::string const &text :
       {text_of([](auto, auto a, auto b, auto other) { return fmt::format("{} {} {}\n", a, b, 1 + other % 8); }),
        text_of([](auto, auto a, auto b, auto other) { return fmt::format("{} {} {}\n", a, b, 1 + other % 100); }),
        text_of(
            [](auto, auto a, auto b, auto other) { return fmt::format("{} {} {}\n", a % 8, b % 8, 1 + other % 7); }),
        text_of([](auto, auto a, auto b, auto other) { return fmt::format("{} {} {}\n", a % 8, b, 1 + other % 8); }),
        text_of([](auto, auto a, auto b, auto other) { return fmt::format("{} {} {}\n", a, b, 500 + other % 90); }),
        text_of([](auto, auto a, auto b, auto) { return fmt::format("{} {}\n", a, b); })}) {
    (void)read(text);
    EXPECT_THAT(notices_, Each(Not(HasSubstr("are names of nodes")))) << text.substr(0, 30);
  }
}

TEST_F(NetworkTest, RejectsWeightsWithinNames) {
  expect_error([&] { read("29 56:5\n36 55:3\n50 60:3\n"); },
               {"has ':' and a number after the nodes of a line, as in '29' and '56:5'", "data.separator"});
  EXPECT_EQ(read("a:1 b:5\nb:5 c:3\nc:3 a:1\n").nodes().size(), 3U);
  (void)read("a book:5\nb book:3\nbook:5 book:3\nc shop:7\nd shop:8\n");
  EXPECT_THAT(notices_, testing::Contains(testing::HasSubstr("it is read as part of a name")));
}

TEST_F(NetworkTest, RejectsEdgesFromNodesToThemselves) {
  expect_error([&] { read("a a\nb b\n"); }, {"edges.txt has edges from a node to itself only"});
  folder_.write("test.txt", "n0 n0\nn1 n1\nnew new\n");
  expect_error([&] { read_chain({.valid = "", .test = "test.txt", .valid_share = 0, .test_share = 0}); },
               {"the test split has edges from a node to itself only"});
}

TEST_F(NetworkTest, DirectedEdgesAreNotKnownInTheOtherDirection) {
  folder_.write("edges.txt", "a b\nb c\nc d\n");
  folder_.write("test.txt", "b a\nb c\nd b\n");
  auto const all = [&](bool directed) {
    notices_.clear();
    (void)read_network({.folder = folder_.path().string(),
                        .train = "edges.txt",
                        .valid = "",
                        .test = "test.txt",
                        .valid_share = 0,
                        .test_share = 0},
                       directed, notices_);
    return fmt::format("{}", fmt::join(notices_, "\n"));
  };
  EXPECT_THAT(all(true), testing::HasSubstr("1 edge of the test split, of 3, are training samples"));
  EXPECT_THAT(all(false), testing::HasSubstr("2 edges of the test split, of 3, are training samples"));
}

TEST_F(NetworkTest, SaysThatWeightsLookLikeDates) {
  read("a b 20200131\nb c 19991201\n");
  EXPECT_THAT(notices_, testing::Contains(testing::HasSubstr("look like times (all are dates, as YYYYMMDD)")));
  read("a b 20200131\nb c 19991301\n");
  EXPECT_THAT(notices_, ElementsAre("edges have weights"));
}

TEST_F(NetworkTest, DigestDependsOnNamesEdgesAndWeights) {
  std::uint64_t const usual = read("a b\nb c\n").digest();
  EXPECT_EQ(read("a b\nb c\n").digest(), usual);
  for (char const* other : {"a b\nb d\n", "a b\na c\n", "a b 2\nb c\n"})
    EXPECT_NE(read(other).digest(), usual) << other;
  EXPECT_NE(read("a b\nb c\n", true).digest(), usual);
}

TEST_F(NetworkTest, SaysThatPointsOfWeightsMaySeparateThousands) {
  read("a b 1.250\nb c 38\nc d 12.417\nd e 2.100\n");
  EXPECT_THAT(notices_, testing::Contains(testing::HasSubstr("3 weights of edges, such as 1.250, have three digits")));
  read("a b 0.250\nb c 38\nc d 12.417\nd e 2.100\n");
  EXPECT_THAT(notices_, ElementsAre("edges have weights"));
}

// A pair of nodes is in one split, with all of its edges.
TEST_F(NetworkTest, HoldsOutShareOfThePairs) {
  SplitNetwork const split = read_chain({.valid = "", .test = "", .valid_share = 0.1, .test_share = 0.2});
  // Of 50 and 100 edges, some have a node whose other edge is held out too.
  EXPECT_NEAR(static_cast<double>(split.valid.size()), 30, 15);
  EXPECT_NEAR(static_cast<double>(split.test.size()), 60, 25);
  EXPECT_EQ(split.network.nodes().size(), 501U);
  std::set<std::pair<std::uint32_t, std::uint32_t>> known;
  for (auto const* pairs : {&split.valid, &split.test}) {
    for (auto const [first, second] : *pairs) {
      EXPECT_FALSE(split.network.has_edge(first, second) || split.network.has_edge(second, first));
      EXPECT_FALSE(split.network.neighbours(first).empty() || split.network.neighbours(second).empty());
      EXPECT_TRUE(known.insert(std::minmax(first, second)).second);
    }
  }
  EXPECT_THAT(fmt::format("{}", fmt::join(notices_, "\n")), testing::HasSubstr("a node has no edges for training"));
  EXPECT_NE(read_chain({.valid = "", .test = "", .valid_share = 0.1, .test_share = 0.2, .split_seed = 7}).valid,
            split.valid);
  expect_error([&] { read_chain({.valid = "", .test = "", .valid_share = 1, .test_share = 0}); },
               {"no edges for training", "lower"});
  expect_error([&] { read_chain({.valid = "", .test = "", .valid_share = 1e-9, .test_share = 0}); },
               {"data.valid_share is 1e-09", "nothing is held out"});
}

TEST_F(NetworkTest, ReadsHeldOutFiles) {
  folder_.write("valid.txt", "n0 n2\nn2 n0\nn3 unknown\nn5 n6\n");
  SplitNetwork const split = read_chain({.valid = "valid.txt", .test = "", .valid_share = 0, .test_share = 0});
  EXPECT_THAT(split.valid, ElementsAre(HeldOutPair{0, 2}, HeldOutPair{5, 6}));
  EXPECT_TRUE(split.test.empty());
  EXPECT_EQ(split.network.nodes().size(), 501U);
  std::string const all = fmt::format("{}", fmt::join(notices_, "\n"));
  EXPECT_THAT(all, testing::HasSubstr("1 edge of the validation split, of 3, are training samples"));
  EXPECT_THAT(all, testing::HasSubstr("left out 1 edge of the valid split, of 3: a node has no edges"));
}

}  // namespace
}  // namespace gpups::trainer::network_test
