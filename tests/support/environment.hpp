// SPDX-License-Identifier: Apache-2.0
// Sets environment variables of the process for a test. The destructor restores the old values.
#pragma once

#include <stdlib.h>

#include <map>
#include <optional>
#include <string>

namespace gpups::test {

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
