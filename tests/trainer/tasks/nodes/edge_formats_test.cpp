// SPDX-License-Identifier: Apache-2.0
// Formats of networks that are no lines of two nodes and a weight, such as SIF and TGF, are errors.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trainer/base/random.hpp"
#include "trainer/tasks/nodes/network_files.hpp"

namespace gpups::trainer::edge_formats_test {
namespace {

using test::expect_error;
using testing::Contains, testing::Each, testing::HasSubstr, testing::Not;

class EdgeFormats : public testing::Test {
 protected:
  Network read(std::string const& text, std::vector<std::string> const& columns = {},
               std::string const& name = "edges.txt") {
    folder_.write(name, text);
    notices_.clear();
    DataConfig config{.folder = folder_.path().string(), .train = name, .valid = "", .test = ""};
    config.valid_share = config.test_share = 0;
    config.table.columns = columns;
    return read_network(config, false, notices_).network;
  }

  test::TemporaryFolder folder_;
  std::vector<std::string> notices_;
};

constexpr char const* kTenLines =
    "7157 pp 4193\n1956 pd 2885\n672 pp 675\n5290 pp 1956\n207 pd 7157\n"
    "4609 pp 4149\n1956 pp 3845\n3845 pd 5894\n5894 pp 5604\n5604 pp 5594\n";

std::string lines_of(std::uint64_t count, std::string_view separator, auto relation) {
  std::string text;
  for (std::uint64_t i = 0; i < count; ++i) {
    text += fmt::format("{1}{0}{2}{0}{3}\n", separator, 1 + random_bits(1, i) % 300, relation(i),
                        1 + random_bits(2, i) % 300);
  }
  return text;
}

TEST_F(EdgeFormats, RelationsBetweenNumbersAreErrors) {
  auto const of_many = [](std::uint64_t i) { return fmt::format("r{}", i % 50); };
  for (std::string const& text :
       {std::string(kTenLines), lines_of(2000, " ", [](auto i) { return i % 3 == 0 ? "pp" : "pd"; }),
        lines_of(2000, "\t", of_many), lines_of(2000, ",", of_many),
        "a,b,c\n" + lines_of(500, ",", [](auto) { return "pp"; })}) {
    SCOPED_TRACE(text.substr(0, 30));
    expect_error([&] { (void)read(text); }, {"edges.txt has ", "in column 2 of ", "between whole numbers",
                                             "data.columns = [\"1\", \"3\"]", "data.reader = \"triples\""});
  }
  Network const pairs = read(kTenLines, {"1", "3"});
  EXPECT_EQ(pairs.edges(), 20U);
  EXPECT_FALSE(pairs.nodes().find("pp"));
  EXPECT_TRUE(read(kTenLines, {"1", "2", "3"}).nodes().find("pp"));
}

// Names of nodes, and weights.
TEST_F(EdgeFormats, NamesBetweenNumbersAreNodes) {
  auto const of_names = [](std::uint64_t i) { return fmt::format("n{}", i % 400); };
  for (std::string const& text :
       {lines_of(2000, " ", of_names), std::string("1 a 5\n2 b 7\n3 c 8\n4 a 9\n5 d 2\n6 b 3\n"),
        std::string("1 hub 5\n2 hub 7.5\n3 hub 8\n4 hub 9\n"), std::string("1 a 2\n1 a 2\n1 a 2\n2 b 2\n"),
        "node1,node2,weight\n" + lines_of(500, ",", [](auto) { return "hub"; })}) {
    EXPECT_GT(read(text).edges(), 0U) << text.substr(0, 30);
  }
}

TEST_F(EdgeFormats, SifIsAnErrorByItsName) {
  for (char const* const name : {"net.sif", "net.SIF", "net.sif.gz"}) {
    expect_error([&] { (void)read("a pp b\nb pd c d e\n", {}, name); },
                 {"is SIF by its name", "data.columns", "[\"1\", \"3\"]"});
    EXPECT_EQ(read("a pp b\nb pd c\n", {"1", "3"}, name).edges(), 4U);
    expect_error(
        [&] {
          (void)read("a pp b\nb pd c d e\n", {"1", "3"}, name);
        },
        {"is SIF by its name, and has lines of 5 fields", "a line for each edge"});
  }
}

TEST_F(EdgeFormats, TgfIsAnError) {
  for (char const* const text :
       {"1 Alice\n2 Bob\n3 Carol\n#\n1 2\n2 3\n", "1 Alice Smith\r\n2 Bob Jones\r\n#\r\n1 2 knows well\r\n",
        "1\n2\n#\n1 2", "1 1\n2 2\n3 3\n#\n1 2 friend\n2 3\n"}) {
    SCOPED_TRACE(text);
    expect_error([&] { (void)read(text); }, {"edges.txt is a TGF network", "labels would be read as nodes", "sed"});
  }
  for (char const* const text : {"#\n# edges\n#\n1 2\n2 3\n", "1 2\n2 3\n#\n1 3\n", "1 a\n2 b\n#\n3 c\n1 2\n",
                                 "1 2\n1 3\n#\n1 1\n", "1 2\n# more\n3 4\n", "1 2\n3 4\n#\n"}) {
    EXPECT_GT(read(text).edges(), 0U) << text;
  }
}

// Half of the weights are nodes, some only after the first 1,000 lines.
TEST_F(EdgeFormats, HalfOfTheWeightsAreNodes) {
  std::string half, none;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    std::uint64_t const a = 1 + random_bits(1, i) % 200, b = 1 + random_bits(2, i) % 200;
    half += fmt::format("{} n{} {}\n", a, i, b <= 120 ? (a + 40 + b % 40) % 200 + 1 : b + 100);
    none += fmt::format("{} n{} {}\n", a, i, b <= 60 ? (a + 40 + b % 40) % 200 + 1 : b + 200);
  }
  (void)read(half);
  EXPECT_THAT(notices_, Contains(HasSubstr("of the first 3000 weights of ")));
  (void)read(none);
  EXPECT_THAT(notices_, Each(Not(HasSubstr("are names of nodes"))));
}

}  // namespace
}  // namespace gpups::trainer::edge_formats_test
