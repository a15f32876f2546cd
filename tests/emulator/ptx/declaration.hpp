// SPDX-License-Identifier: Apache-2.0
// Declarations of variables and parameters: ".visible .global .align 4 .b8 name[8] = {1, 2}".
#pragma once

#include <string>
#include <string_view>

namespace gpups::emulator {

struct Declaration {
  std::string name;
  std::string space;  // "global", "shared", "const", "local", "param"; empty if it is not said
  int alignment = 0;
  int element_bytes = 4, elements = 1;
  bool has_no_size = false;  // "name[]"
  std::string values;        // after "="

  int bytes() const { return element_bytes * elements; }
};

Declaration parse_declaration(std::string_view text);

}  // namespace gpups::emulator
