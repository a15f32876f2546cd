// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/text/text_cells.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "trainer/base/finite_number.hpp"
#include "trainer/tasks/click/text/text_rows.hpp"

// Values are short: a call would cost as much as the hash, and wide vectors are of no use.
#define XXH_INLINE_ALL
#define XXH_VECTOR 0
#include <xxhash.h>

namespace gpups::trainer {
namespace {

// Returns a cell for an error text: at most 24 bytes, without control characters.
std::string shown(std::string_view cell) {
  std::string text(cell.substr(0, 24));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F) c = '?';
  }
  return fmt::format("'{}{}'", text, cell.size() > text.size() ? "..." : "");
}

// Returns the finite decimal number that a text spells, or nothing. Numbers that are too small for a float become 0.
std::optional<float> finite(std::string_view text) {
  auto const number = finite_number(text);
  return number && std::isfinite(static_cast<float>(*number)) ? std::optional(static_cast<float>(*number))
                                                              : std::nullopt;
}

// Returns a word whose top bit of a byte is set if the byte is `byte`. Bits above the first set bit may be wrong.
std::uint64_t bytes_that_are(std::uint64_t word, char byte) {
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  std::uint64_t const zero_there = word ^ static_cast<std::uint64_t>(byte) * kOnes;
  return (zero_there - kOnes) & ~zero_there & 0x80 * kOnes;
}

// Reads one value of a cell.
std::string read_value(std::string_view text, CategoryField const& field, std::vector<std::uint64_t>& values,
                       std::vector<float>* weights) {
  float weight = 1;
  if (field.kind == CategoryField::Kind::kWeighted) {
    if (auto const colon = text.rfind(':'); colon != std::string_view::npos) {
      std::string_view const written = text.substr(colon + 1);
      auto const number = finite(written);
      if (!number) return fmt::format("has {} after a ':' in {} (not a finite number)", shown(written), field.name);
      weight = *number;
      text = text.substr(0, colon);
    }
  }
  values.push_back(value_id(text));
  if (weights != nullptr) weights->push_back(weight);
  return {};
}

}  // namespace

std::uint64_t value_id(std::string_view text) {
  if (text.size() == 8) {
    if (auto const number = hexadecimal_number(text.data())) return *number;
  }
  return XXH3_64bits(text.data(), text.size()) | std::uint64_t{1} << 63;
}

char const* end_of_cell(char const* at) {
  while (true) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    if (std::uint64_t const found = bytes_that_are(word, '\t') | bytes_that_are(word, '\n'); found != 0) {
      return at + std::countr_zero(found) / 8;
    }
    at += sizeof word;
  }
}

std::string read_label(std::string_view cell, float& label) {
  if (cell.empty()) return "has no label";
  auto const number = finite(cell);
  if (!number || *number < 0 || *number > 1) {
    return fmt::format("has the label {} (not a number from 0 to 1)", shown(cell));
  }
  label = std::abs(*number);  // -0 becomes 0
  return {};
}

std::string read_number(std::string_view cell, std::string_view column, float& number) {
  number = kMissing;
  if (cell.empty()) return {};
  auto const value = finite(cell);
  if (!value) return fmt::format("has {} in {} (not a finite number)", shown(cell), column);
  number = *value;
  return {};
}

std::string read_values(std::string_view cell, CategoryField const& field, std::vector<std::uint64_t>& values,
                        std::vector<float>* weights) {
  if (field.kind == CategoryField::Kind::kOne) return read_value(cell, field, values, weights);
  for (std::size_t count = 1;; ++count) {
    if (count > kCellValuesMax) return fmt::format("has more than {} values in {}", kCellValuesMax, field.name);
    std::size_t const bar = cell.find('|');
    std::string wrong = read_value(cell.substr(0, bar), field, values, weights);
    if (!wrong.empty() || bar == std::string_view::npos) return wrong;
    cell.remove_prefix(bar + 1);
  }
}

}  // namespace gpups::trainer
