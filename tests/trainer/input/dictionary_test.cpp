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

}  // namespace
}  // namespace gpups::trainer::dictionary_test
