// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/graph/key_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

namespace gpups::trainer {

std::string with_names(std::string message, Dataset const& data) {
  static std::regex const pattern("key ([0-9]{1,20}) in table '(entities|relations)'");
  std::smatch found;
  if (!std::regex_search(message, found, pattern)) return message;
  Dictionary const& names = found[2] == "entities" ? data.entities : data.relations;
  auto const& keys = names.keys();
  std::string const digits = found[1];
  auto const key = std::find_if(keys.begin(), keys.end(), [&](Key k) { return fmt::to_string(number(k)) == digits; });
  if (key == keys.end()) return message;
  auto const name = names.name(static_cast<std::uint32_t>(key - keys.begin()));
  return message.insert(static_cast<std::size_t>(found[1].second - message.cbegin()), fmt::format(" ('{}')", name));
}

}  // namespace gpups::trainer
