// SPDX-License-Identifier: Apache-2.0
// A statement of a function's body: "@!%p1 add.sat.s32 %r1, %r2, 5".
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/emulator/ptx/program.hpp"

namespace gpups::emulator {

struct Statement {
  std::string text;
  std::string predicate;  // "%p1"; empty if there is none
  bool negated = false;
  std::string mnemonic;                // "add"
  std::vector<std::string> modifiers;  // "sat", "s32"
  std::vector<std::string> operands;   // "%r1", "%r2", "5"

  bool has(std::string_view modifier) const;
  // Return the types that the last modifier and the one before it name.
  Type type() const;
  Type type_before() const;
  // Returns whether an assembler moves no loads across the statement.
  bool ends_block() const;
};

Statement parse_statement(std::string const& text);

}  // namespace gpups::emulator
