// SPDX-License-Identifier: Apache-2.0
// Comment lines between lines of data: some may be data whose first name begins like a comment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/input/table_layout.hpp"

namespace gpups::trainer {

// The comments of one file that come after its first line of data.
class CommentsInData {
 public:
  // fields: of the line of data before it.
  void add(std::string_view comment, TableLayout const& layout, std::size_t fields);
  // Adds a notice if some could be data: a name follows the sign at once, and they have as many fields.
  void say(std::string_view path, std::vector<std::string>& notices) const;
  // Returns the number of those that have one name behind the sign.
  std::uint64_t names() const { return names_; }

 private:
  std::uint64_t names_ = 0, like_data_ = 0;
  std::string shown_{};  // the first that could be data
};

}  // namespace gpups::trainer
