// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/common/odd_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "trainer/input/table_division.hpp"

namespace gpups::trainer {
namespace {

// What pandas, R, SQL, Excel and C write in place of a missing value: the names that pandas.read_csv() takes for one,
// in all usual cases, and those of other programs.
constexpr std::string_view kMissingNames[] = {
    "NULL",  "null",  "Null",   "NaN",     "nan",      "NAN",     "-NaN",   "-nan",    "NA",
    "<NA>",  "N/A",   "n/a",    "#N/A",    "#NA",      "None",    "none",   "NONE",    "nil",
    "NIL",   "Nil",   "NaT",    "\\N",     "#N/A N/A", "(null)",  "(NULL)", "[NULL]",  "#NULL!",
    "#REF!", "#NUM!", "#NAME?", "#VALUE!", "#DIV/0!",  "1.#QNAN", "1.#IND", "-1.#IND", "-1.#QNAN",
};

bool are_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Returns a number without the zeros in front of it, or nothing if it is no whole number or has none.
std::string_view without_zeros(std::string_view name) {
  if (name.size() < 2 || name.front() != '0' || !are_digits(name)) return {};
  return name.substr(std::min(name.find_first_not_of('0'), name.size() - 1));
}

// Whether a name is a number with a positive exponent: "7.65614E+16".
bool is_shortened(std::string_view name) {
  std::size_t const at = name.find('+');
  return at != name.npos && at > 1 && (name[at - 1] == 'E' || name[at - 1] == 'e') && is_number(name);
}

}  // namespace

void say_odd_names(Dictionary const& names, std::vector<std::string>& notices) {
  for (std::string_view const name : kMissingNames) {
    if (!names.find(name)) continue;
    notices.push_back(fmt::format("the {} '{}' is read as a name: if it stands for a missing value, remove its lines",
                                  names.kind(), name));
  }
  constexpr std::string_view kFraction = ".0";
  for (std::uint32_t number = 0; number < names.size(); ++number) {
    std::string_view const name = names.name(number);
    if (!name.ends_with(kFraction)) continue;
    std::string_view const whole = name.substr(0, name.size() - kFraction.size());
    if (!are_digits(whole) || !names.find(whole)) continue;
    notices.push_back(
        fmt::format("the {} '{}' is not '{}': pandas writes whole numbers so if some of their column are "
                    "missing",
                    names.kind(), name, whole));
    break;
  }
  for (std::uint32_t number = 0; number < names.size(); ++number) {
    std::string_view const name = names.name(number), plain = without_zeros(name);
    if (plain.empty() || !names.find(plain)) continue;
    notices.push_back(
        fmt::format("the {0} '{1}' is not '{2}', with zeros in front: if it is the same {0}, write them alike in all "
                    "columns and files",
                    names.kind(), name, plain));
    break;
  }
  for (std::uint32_t number = 0; number < names.size(); ++number) {
    if (!is_shortened(names.name(number))) continue;
    notices.push_back(
        fmt::format("the {} '{}' has an exponent: Excel and pandas write long numbers so, and different ones may then "
                    "have one name; write the column as text",
                    names.kind(), names.name(number)));
    break;
  }
}

}  // namespace gpups::trainer
