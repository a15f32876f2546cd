// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/comments_in_data.hpp"

#include <fmt/format.h>

#include "trainer/base/progress_reporter.hpp"
#include "trainer/input/table_division.hpp"

namespace gpups::trainer {

void CommentsInData::add(std::string_view comment, TableLayout const& layout, std::size_t fields) {
  constexpr std::string_view kSpaces = " \t";
  auto const first = comment.find_first_not_of(kSpaces, 1);
  if (first == comment.npos) return;
  if (comment.find_first_of(kSpaces, first) == comment.npos) ++names_;
  TableFields divided;
  if (first != 1 || !divide(comment, layout.separator, layout.quotes, divided).empty()) return;
  if (divided.all.size() != fields || fields < 2) return;
  if (like_data_++ == 0) shown_ = comment;
}

void CommentsInData::say(std::string_view path, std::vector<std::string>& notices) const {
  if (like_data_ == 0) return;
  notices.push_back(
      fmt::format("{} of {}, between its data, {} as many fields as these, such as '{}': if names begin like that, "
                  "set data.comment to \"\", and remove other comments",
                  with_count(like_data_, "comment line"), path, like_data_ == 1 ? "has" : "have", shown_));
}

}  // namespace gpups::trainer
