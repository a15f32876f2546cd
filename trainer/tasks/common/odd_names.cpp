// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/common/odd_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "trainer/input/table_division.hpp"

namespace gpups::trainer {
namespace {

// Whether a name is a number with a positive exponent: "7.65614E+16".
bool is_shortened(std::string_view name) {
  std::size_t const at = name.find('+');
  return at != name.npos && at > 1 && (name[at - 1] == 'E' || name[at - 1] == 'e') && is_number(name);
}

}  // namespace

void say_odd_names(Dictionary const& names, std::vector<std::string>& notices) {
  for (std::string_view const name : {"NULL", "null", "NaN", "nan", "NA", "<NA>", "N/A", "None", "\\N"}) {
    if (!names.find(name)) continue;
    notices.push_back(fmt::format("the {} '{}' is read as a name: if it stands for a missing value, remove its lines",
                                  names.kind(), name));
  }
  constexpr std::string_view kFraction = ".0";
  for (std::uint32_t number = 0; number < names.size(); ++number) {
    std::string_view const name = names.name(number);
    if (!name.ends_with(kFraction)) continue;
    std::string_view const whole = name.substr(0, name.size() - kFraction.size());
    bool const digits =
        !whole.empty() && std::all_of(whole.begin(), whole.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!digits || !names.find(whole)) continue;
    notices.push_back(
        fmt::format("the {} '{}' is not '{}': pandas writes whole numbers so if some of their column are "
                    "missing",
                    names.kind(), name, whole));
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
