// SPDX-License-Identifier: Apache-2.0
// The columns of click data: a label, numbers, and categories of one, many or weighted values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpups::trainer {

// A category. Its kind sets how the text of a cell is read:
//   kOne       the whole cell is one value, whatever its text;
//   kMany      values with '|' between them;
//   kWeighted  as kMany; the text after the last ':' of a value is its weight, a finite number; a value without ':' has
//              weight 1.
// Empty text is a value too: an empty cell has the value "", and `a||b` has the values "a", "" and "b".
struct CategoryField {
  enum class Kind { kOne, kMany, kWeighted };

  std::string name;
  Kind kind = Kind::kOne;

  bool operator==(CategoryField const&) const = default;
};

// The columns of click data, by name.
struct Layout {
  std::vector<std::string> numbers;  // names
  std::vector<CategoryField> categories;

  // Columns of a line of text: the label, then numbers, then categories.
  std::size_t columns() const { return 1 + numbers.size() + categories.size(); }
  bool operator==(Layout const&) const = default;
};

// Returns the layout with numbers I1, I2, .. and categories C1, C2, ... The categories in `many` and `weighted` are of
// these kinds. Throws Error if one of them does not exist.
Layout make_layout(std::size_t numbers, std::size_t categories, std::vector<std::string> const& many = {},
                   std::vector<std::string> const& weighted = {});
// Returns the layout of Criteo's data: I1 .. I13 and C1 .. C26, one value each.
Layout criteo_layout();

// Returns a line for each column with its kind and name, for instance "number I1"; parse_layout() reads this.
std::string layout_text(Layout const& layout);
// Returns the layout that layout_text() wrote. Throws Error with the number of the line if the text is not a layout.
Layout parse_layout(std::string_view text);

// Throws Error if there are no columns or more than 4096, if two columns have the same name, or if a name is empty,
// longer than 255 bytes, or has characters that are not printable.
void check_layout(Layout const& layout);

}  // namespace gpups::trainer
