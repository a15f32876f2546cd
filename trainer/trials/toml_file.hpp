// SPDX-License-Identifier: Apache-2.0
// Reads sections of a configuration file that are not settings of a run. Only for the sources of this folder.
#pragma once

#include <fmt/format.h>

#include <toml++/toml.h>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

#include "kernels/base/check.hpp"
#include "trainer/config/parse_toml.hpp"

namespace gpups::trainer {

// Returns a node as TOML; a number with as few digits as tell it from others.
inline std::string toml_text(toml::node const& node) {
  if (auto const number = node.value_exact<double>(); number && std::isfinite(*number)) {
    std::string const text = fmt::format("{}", *number);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }
  std::ostringstream out;
  node.visit([&out](auto const& value) { out << value; });
  return out.str();
}

// A file, for messages.
struct TomlFile {
  std::string file;

  // Parses the file. Throws Error if it is not TOML.
  toml::table parse() const {
    try {
      std::ifstream in(file, std::ios::binary);
      GPUPS_REQUIRE(in.is_open(), "{} cannot be read ({}): check the path", file, std::strerror(errno));
      return parse_toml({std::istreambuf_iterator<char>(in), {}}, file);
    } catch (toml::parse_error const& error) {
      throw Error(fmt::format("{}:{}: {} (the file is not TOML): correct the line", file, error.source().begin.line,
                              error.description()));
    }
  }
  std::string at(toml::node const& node) const { return fmt::format("{}:{}", file, node.source().begin.line); }
  // Throws Error if the node is not an integer in the range.
  std::int64_t count(std::string_view name, toml::node const& node, std::int64_t least, std::int64_t most) const {
    auto const value = node.value_exact<std::int64_t>();
    GPUPS_REQUIRE(value && *value >= least && *value <= most,
                  "{}: {} is {} (out of range): use a whole number from {} to {}", at(node), name, toml_text(node),
                  least, most);
    return *value;
  }
};

}  // namespace gpups::trainer
