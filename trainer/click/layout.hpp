// SPDX-License-Identifier: Apache-2.0
// Which columns a sample of click data has: a label, numbers, and categories of one, many or weighted values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpups::trainer {

// A category. A sample's cell is text, and its kind says how that is read:
//   kOne       the whole cell is one value, whatever is in it;
//   kMany      values with '|' between them;
//   kWeighted  the same, and what follows the last ':' of a value is its weight, a finite number; a value without ':'
//              has weight 1.
// Empty text is a value like any other, "missing": an empty cell has it, and so has each empty place of `a||b`.
struct CategoryField {
  enum class Kind { kOne, kMany, kWeighted };

  std::string name;
  Kind kind = Kind::kOne;

  bool operator==(CategoryField const&) const = default;
};

struct Layout {
  std::vector<std::string> numbers;  // names
  std::vector<CategoryField> categories;

  // Columns of a line of text: the label comes first, then numbers, then categories.
  std::size_t columns() const { return 1 + numbers.size() + categories.size(); }
  bool operator==(Layout const&) const = default;
};

// I1 .. I`numbers` and C1 .. C`categories`, where `many` and `weighted` name categories of these kinds. Throws Error
// where they name none.
Layout make_layout(std::size_t numbers, std::size_t categories, std::vector<std::string> const& many = {},
                   std::vector<std::string> const& weighted = {});
// The one of Criteo's data: I1 .. I13 and C1 .. C26, one value each.
Layout criteo_layout();

// A line for each column, of its kind and name: "number I1". What parse_layout() reads.
std::string layout_text(Layout const& layout);
// Throws Error, naming the line, where the text is no layout.
Layout parse_layout(std::string_view text);

// Throws Error where there is no column, are more than 4096, or where a name is empty, too long (255 bytes), not in one
// line of printable characters, or that of two columns.
void check_layout(Layout const& layout);

}  // namespace gpups::trainer
