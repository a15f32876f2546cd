// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/ptx/statement.hpp"

#include <algorithm>
#include <iterator>

#include "tests/emulator/ptx/text.hpp"

namespace gpups::emulator {
namespace {

// Takes the text up to the next white space from the beginning.
std::string take_word(std::string& text) {
  std::size_t const end = std::min(text.find(' '), text.size());
  std::string const word = text.substr(0, end);
  text = strip(std::string_view(text).substr(end));
  return word;
}

}  // namespace

bool Statement::has(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

Type Statement::type() const { return modifiers.empty() ? Type::kNone : type_of(modifiers.back()); }
Type Statement::type_before() const {
  return modifiers.size() < 2 ? Type::kNone : type_of(modifiers[modifiers.size() - 2]);
}

bool Statement::ends_block() const {
  if (mnemonic == "st") return !has("local") && !has("param") && !has("shared") && !has("shared::cta");
  constexpr std::string_view kMnemonics[] = {"bra", "brx", "call",    "ret",    "exit", "atom",
                                             "red", "bar", "barrier", "membar", "fence"};
  return std::ranges::find(kMnemonics, mnemonic) != std::end(kMnemonics);
}

Statement parse_statement(std::string const& text) {
  Statement statement{.text = text};
  std::string rest = text;
  if (rest.starts_with('@')) {
    statement.predicate = take_word(rest).substr(1);
    statement.negated = statement.predicate.starts_with('!');
    if (statement.negated) statement.predicate.erase(0, 1);
  }
  auto const parts = split(take_word(rest), '.');
  if (parts.empty()) return statement;
  statement.mnemonic = parts.front();
  statement.modifiers.assign(parts.begin() + 1, parts.end());
  statement.operands = split(rest, ',');
  return statement;
}

}  // namespace gpups::emulator
