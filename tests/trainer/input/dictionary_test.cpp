// SPDX-License-Identifier: Apache-2.0
// Names get numbers in insertion order, and keys that depend only on kind and name.
#include "trainer/input/dictionary.hpp"

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"

namespace gpups::trainer::dictionary_test {
namespace {

TEST(Dictionary, NumbersNamesInInsertionOrder) {
  Dictionary d("entity");
  for (int i = 0; i < 5000; ++i) EXPECT_EQ(d.add("name" + std::to_string(i)), static_cast<std::uint32_t>(i));
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(d.add("name" + std::to_string(i)), static_cast<std::uint32_t>(i));
    EXPECT_EQ(d.find("name" + std::to_string(i)), static_cast<std::uint32_t>(i));
    EXPECT_EQ(d.name(static_cast<std::uint32_t>(i)), "name" + std::to_string(i));
  }
  EXPECT_EQ(d.size(), 5000U);
  EXPECT_FALSE(d.find("name5000").has_value());
}

TEST(Dictionary, KeysDependOnKindAndName) {
  Dictionary entities("entity"), again("entity"), relations("relation");
  entities.add("x"), again.add("y"), again.add("x"), relations.add("x");
  EXPECT_EQ(entities.keys()[0], again.keys()[1]);
  EXPECT_NE(entities.keys()[0], relations.keys()[0]);
}

TEST(Dictionary, RejectsTwoNamesWithOneKey) {
  Dictionary d("entity", [](std::string_view, std::string_view name) { return Key{name.size()}; });
  d.add("abc");
  EXPECT_EQ(d.add("abc"), 0U);
  EXPECT_FALSE(d.find("xyz").has_value());
  test::expect_error([&] { d.add("xyz"); }, {"entity", "'abc' and 'xyz'", "0000000000000003"});
}

TEST(Dictionary, NamesMayContainAnyBytes) {
  Dictionary d("entity");
  std::string const odd("a\0b\xFF", 4);
  d.add("a");
  EXPECT_EQ(d.add(odd), 1U);
  EXPECT_EQ(d.name(1), odd);
}

TEST(Dictionary, ATableOfNamesHasALineForEach) {
  Dictionary d("node");
  for (char const* name : {"New York", "x", "\u00e9\u00a0"}) d.add(name);
  EXPECT_EQ(names_and_keys(d, {Key{1}, Key{2}, Key{3}}), "1\tNew York\n2\tx\n3\t\u00e9\u00a0\n");
  std::string const words = " of 4 cannot be in a table, since a name has a tab or an end of a line, such as '";
  for (std::string const odd : {"a\tb", "a\rb", "a\nb"}) {
    Dictionary with = d;
    with.add(odd);
    test::expect_error([&] { names_and_keys(with, with.keys()); }, {("1 node" + words + odd + "' (").c_str()});
  }
}

TEST(FindTrained, LeavesOutNamesThatWereNotTrained) {
  Dictionary d("entity");
  for (char const* name : {"cat.n.01", "dog.n.01", "dog.n.02", "held.out"}) d.add(name);
  std::vector<std::string> notices;
  EXPECT_EQ(find_trained(d, 3, {{"dog.n.02"}, {"cat.n.01"}}, notices), (std::vector<std::uint32_t>{2, 0}));
  EXPECT_TRUE(notices.empty());
  EXPECT_EQ(find_trained(d, 3, {{"no", "f:1"}, {"dog.n.02", "f:2"}, {"held.out", "f:3"}}, notices),
            (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(notices.at(0), "left out 2 of 3 entities, not in the training data: f:1 'no', f:3 'held.out'");
  auto const fails = [&](std::vector<QueriedName> const& queries, std::initializer_list<char const*> words) {
    test::expect_error([&] { find_trained(d, 3, queries, notices); }, words);
  };
  fails({{"doog.n.01"}}, {"there is no entity 'doog.n.01' (", "did you mean 'dog.n.01'?"});
  fails({{"unlike any"}, {"held.out"}}, {"'unlike any', nor any of the other 1 (", "give a name that the data has"});
  fails({{"held.out", "f:3"}}, {"f:3: the entity 'held.out' is not in the training data (", "not been trained"});
}

}  // namespace
}  // namespace gpups::trainer::dictionary_test
