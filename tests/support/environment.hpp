// SPDX-License-Identifier: Apache-2.0
// Environment variables of tests: reads numbers from them, and sets them for a test.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace gpups::test {

// Returns the number in an environment variable, or another one if it is not set.
inline std::uint64_t environment_number(char const* name, std::uint64_t otherwise) {
  char const* const text = getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

// Sets environment variables of the process. The destructor restores the old values.
class Environment {
 public:
  using Variables = std::map<std::string, std::optional<std::string>>;  // no value: the variable is not set

  explicit Environment(Variables const& variables) {
    for (auto const& [name, value] : variables) {
      char const* const before = getenv(name.c_str());
      before_[name] = before == nullptr ? std::nullopt : std::optional<std::string>(before);
    }
    set(variables);
  }
  ~Environment() { set(before_); }
  Environment(Environment const&) = delete;
  Environment& operator=(Environment const&) = delete;

 private:
  static void set(Variables const& variables) {
    for (auto const& [name, value] : variables) {
      value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
    }
  }
  Variables before_;
};

}  // namespace gpups::test
