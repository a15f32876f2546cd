// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/ptx/declaration.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "tests/emulator/ptx/text.hpp"

namespace gpups::emulator {
namespace {

constexpr std::array<std::string_view, 5> kSpaces{"global", "shared", "const", "local", "param"};

// Reads the words of a declaration from its beginning.
class DeclarationParser {
 public:
  explicit DeclarationParser(std::string_view text) : rest_(text) {}

  Declaration parse() {
    while (!rest_.empty()) {
      if (std::isspace(static_cast<unsigned char>(rest_.front())) != 0) {
        rest_.remove_prefix(1);
      } else if (rest_.front() == '.') {
        directive();
      } else {
        name();
      }
    }
    declared_.elements *= vector_;
    if (declared_.alignment == 0) declared_.alignment = declared_.element_bytes;
    return declared_;
  }

 private:
  std::string_view take(std::size_t length) {
    std::string_view const taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }
  void directive() {
    rest_.remove_prefix(1);
    std::size_t length = 0;
    while (length < rest_.size() && rest_[length] != '.' && is_name(rest_[length])) ++length;
    std::string_view const word = take(length);
    if (word == "align") {
      std::string const number = strip(rest_);
      declared_.alignment = std::atoi(number.c_str());
      std::size_t const digit = rest_.find_first_of("0123456789");
      take(digit);
      take(std::min(rest_.find_first_not_of("0123456789"), rest_.size()));
    } else if (word == "v2" || word == "v4") {
      vector_ = word == "v2" ? 2 : 4;
    } else if (Type const type = type_of(word); type != Type::kNone) {
      declared_.element_bytes = bytes_of(type);
    } else if (declared_.space.empty() && std::find(kSpaces.begin(), kSpaces.end(), word) != kSpaces.end()) {
      declared_.space = word;
    }
  }
  void name() {
    std::size_t const length = name_length(rest_);
    if (length == 0) {
      rest_.remove_prefix(1);
      return;
    }
    declared_.name = take(length);
    while (rest_.starts_with('[')) {
      std::size_t const end = rest_.find(']');
      auto const size = parse_number(strip(rest_.substr(1, end - 1)));
      declared_.has_no_size |= !size;
      declared_.elements *= size ? static_cast<int>(*size) : 0;
      take(end + 1);
    }
  }

  std::string_view rest_;
  Declaration declared_;
  int vector_ = 1;
};

}  // namespace

Declaration parse_declaration(std::string_view text) {
  std::size_t const equals = text.find('=');
  Declaration declared = DeclarationParser(text.substr(0, equals)).parse();
  if (equals != std::string_view::npos) declared.values = strip(text.substr(equals + 1));
  return declared;
}

}  // namespace gpups::emulator
