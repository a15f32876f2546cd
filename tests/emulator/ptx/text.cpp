// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/ptx/text.hpp"

#include <cctype>
#include <cstdlib>
#include <map>

namespace gpups::emulator {
namespace {

bool is_space(char character) { return std::isspace(static_cast<unsigned char>(character)) != 0; }

}  // namespace

std::string strip(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  if (strip(text).empty()) return pieces;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    char const c = text[at];
    if (c == '{' || c == '[' || c == '(') ++depth;
    if (c == '}' || c == ']' || c == ')') --depth;
    if (c != separator || depth != 0) continue;
    pieces.push_back(strip(text.substr(begin, at - begin)));
    begin = at + 1;
  }
  pieces.push_back(strip(text.substr(begin)));
  return pieces;
}

bool is_name(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_' || character == '$' ||
         character == '%' || character == '.';
}

std::size_t name_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && is_name(text[length])) ++length;
  return length;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::string const number(text);
  bool const is_bits =
      number.size() > 2 && number[0] == '0' && std::string_view("fFdD").find(number[1]) != std::string_view::npos;
  if (is_bits) return std::strtoull(number.c_str() + 2, nullptr, 16);
  bool const is_negative = number.starts_with('-');
  char const* const digits = number.c_str() + (is_negative ? 1 : 0);
  if (std::isdigit(static_cast<unsigned char>(*digits)) == 0) return std::nullopt;
  std::uint64_t const value = std::strtoull(digits, nullptr, 0);
  return is_negative ? -value : value;
}

Type type_of(std::string_view name) {
  static std::map<std::string_view, Type> const types{
      {"u8", Type::kU8},       {"s8", Type::kS8},         {"b8", Type::kB8},         {"u16", Type::kU16},
      {"s16", Type::kS16},     {"b16", Type::kB16},       {"u32", Type::kU32},       {"s32", Type::kS32},
      {"b32", Type::kB32},     {"u64", Type::kU64},       {"s64", Type::kS64},       {"b64", Type::kB64},
      {"f16", Type::kF16},     {"bf16", Type::kBF16},     {"f32", Type::kF32},       {"f64", Type::kF64},
      {"f16x2", Type::kF16x2}, {"bf16x2", Type::kBF16x2}, {"pred", Type::kPredicate}};
  auto const found = types.find(name);
  return found == types.end() ? Type::kNone : found->second;
}

int bytes_of(Type type) {
  switch (type) {
    case Type::kU8:
    case Type::kS8:
    case Type::kB8:
      return 1;
    case Type::kU16:
    case Type::kS16:
    case Type::kB16:
    case Type::kF16:
    case Type::kBF16:
      return 2;
    case Type::kU64:
    case Type::kS64:
    case Type::kB64:
    case Type::kF64:
      return 8;
    default:
      return 4;
  }
}

}  // namespace gpups::emulator
