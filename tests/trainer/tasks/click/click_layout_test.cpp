// SPDX-License-Identifier: Apache-2.0
// A layout is written as text and read again. Text that is not a layout is rejected.
#include "tests/support/expect_error.hpp"
#include "trainer/tasks/click/layout.hpp"

namespace gpups::trainer::click_layout_test {
namespace {

using test::expect_error;

TEST(ClickLayout, CriteoHas40Columns) {
  Layout const layout = criteo_layout();
  EXPECT_EQ(layout.columns(), 40U);
  EXPECT_EQ(layout.numbers.front(), "I1");
  EXPECT_EQ(layout.numbers.back(), "I13");
  EXPECT_EQ(layout.categories.back(), (CategoryField{"C26", CategoryField::Kind::kOne}));
}

TEST(ClickLayout, RoundTripKeepsTheLayout) {
  Layout layout = make_layout(1, 3, {"C3"}, {"C2"});
  layout.categories[0].name = "name with spaces";
  EXPECT_EQ(layout_text(layout), "number I1\none name with spaces\nweighted C2\nmany C3\n");
  EXPECT_EQ(parse_layout(layout_text(layout)), layout);
  EXPECT_EQ(parse_layout(layout_text(criteo_layout())), criteo_layout());
}

TEST(ClickLayout, RejectsInvalidNamesAndKinds) {
  expect_error([] { make_layout(1, 2, {"C3"}); }, {"'C3' is not a category", "C1 to C2"});
  expect_error([] { make_layout(1, 2, {"C1"}, {"C1"}); }, {"C1 is set as multi-hot and as weighted"});
  expect_error([] { make_layout(0, 0); }, {"has 0 columns"});
  expect_error([] { make_layout(3000, 3000); }, {"6000 columns"});
  expect_error([] { make_layout(SIZE_MAX, 1); }, {"too wide"});
  expect_error([] { parse_layout(""); }, {"has 0 columns"});
  expect_error([] { parse_layout("one C1\nnumber I1\n"); }, {"line 2", "is a number"});
  expect_error([] { parse_layout("one C1\nfew C2\n"); }, {"line 2", "'few'"});
  expect_error([] { parse_layout("one C1\none C1\n"); }, {"two columns have the name C1"});
  expect_error([] { parse_layout("one\n"); }, {"name is empty"});
  expect_error([] { parse_layout("one a\rb\n"); }, {"not printable"});
  expect_error([] { parse_layout("one " + std::string(256, 'a')); }, {"longer than 255"});
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "one C" + std::to_string(i) + "\n";
  expect_error([&] { parse_layout(many); }, {"more than 4096 columns"});
}

}  // namespace
}  // namespace gpups::trainer::click_layout_test
