// SPDX-License-Identifier: Apache-2.0
// Names that programs write in place of missing values, and numbers in two spellings, are said.
#include "trainer/tasks/common/odd_names.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpups::trainer::odd_names_test {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty;

std::vector<std::string> notices_of(std::initializer_list<char const*> names) {
  Dictionary all("node");
  for (char const* name : names) all.add(name);
  std::vector<std::string> notices;
  say_odd_names(all, notices);
  return notices;
}

// The values that pandas.read_csv() takes for missing ones, and those of SQL, R, Excel and C.
TEST(OddNames, OfMissingValues) {
  for (char const* name :
       {"#N/A",    "#N/A N/A", "#NA",     "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",   "N/A",
        "NA",      "NULL",     "NaN",     "None",    "n/a",      "nan",  "null", "NaT",    "(null)",  "[NULL]", "#REF!",
        "#VALUE!", "#NAME?",   "#DIV/0!", "#NUM!",   "Null",     "none", "nil",  "NIL",    "\\N"}) {
    EXPECT_THAT(
        notices_of({"a", name, "b"}),
        ElementsAre(HasSubstr(fmt::format("the node '{}' is read as a name: if it stands for a missing", name))));
  }
  EXPECT_THAT(notices_of({"Nullarbor", "nano", "N", "A", "/", "NANCY", "nonesuch"}), IsEmpty());
}

TEST(OddNames, OfNumbersInTwoSpellings) {
  EXPECT_THAT(notices_of({"16", "1", "00001"}), ElementsAre(HasSubstr("the node '00001' is not '1', with zeros")));
  EXPECT_THAT(notices_of({"000", "0"}), ElementsAre(HasSubstr("the node '000' is not '0'")));
  EXPECT_THAT(notices_of({"1.0", "1"}), ElementsAre(HasSubstr("the node '1.0' is not '1'")));
  EXPECT_THAT(notices_of({"00001", "00016", "2", "0x1", "0", "007a", "7a", "01.5", "1.5"}), IsEmpty());
}

}  // namespace
}  // namespace gpups::trainer::odd_names_test
