// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/words/like_csv.hpp"

#include <fmt/format.h>

#include <cctype>

namespace gpups::trainer {
namespace {

// Whether a sign is between other characters of a word; at its end it is common in prose.
bool is_within(std::string_view sign, std::string_view word) {
  std::size_t const at = word.find(sign);
  return at != word.npos && at > 0 && at + sign.size() < word.size();
}

// Whether a word is a heading of CSV: names with commas between them. The first may be empty, as that of an index.
bool is_csv_heading(std::string_view word) {
  if (word.starts_with("\"\"")) word.remove_prefix(2);
  bool const has_index = word.starts_with(',');
  if (has_index) word.remove_prefix(1);
  bool begins = true;  // a name
  for (char const c : word) {
    if (c == '"') continue;
    bool const letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
    bool const within = letter || c == ',' || c == '_' || std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (begins ? !letter : !within) return false;
    begins = c == ',';
  }
  return !begins && (has_index || is_within(",", word));
}

// Whether words are the first and the last of a list as programs print it: ['a', 'b'].
bool is_list(std::string_view first, std::string_view last) {
  return (first.starts_with("['") || first.starts_with("[\"")) && (last.ends_with("']") || last.ends_with("\"]"));
}

}  // namespace

void LikeCsv::end_line() {
  constexpr std::size_t kShownBytes = 80;
  if (words_ == kWordsMost || words_of_line_ == 0) return;
  bool const quoted = is_within(",\"", first_) || (first_.front() == '"' && is_within("\",", last_));
  if (lines_++ == 0 && words_of_line_ == 1 && is_csv_heading(first_)) {
    heading_ = true;
  } else {
    quoted_ += quoted ? 1 : 0;
    divided_ += quoted || is_within(",", first_) || is_within(",", last_) ? 1 : 0;
  }
  bool const list = is_list(first_, last_);
  lists_ += list ? 1 : 0;
  if (shown_.empty() && (heading_ || quoted || list)) shown_ = first_.substr(0, kShownBytes);
  words_of_line_ = 0;
}

void LikeCsv::say(std::string_view path, std::vector<std::string>& notices) const {
  constexpr std::uint64_t kLinesMin = 3;
  if (lines_ >= kLinesMin && 2 * lists_ > lines_) {
    notices.push_back(fmt::format(
        "{} has lists of words, such as '{} ...', and is read as words between blanks: brackets, quotes and "
        "commas are parts of words; write the words alone, with blanks between them",
        path, shown_));
    return;
  }
  bool const below_heading = heading_ && (quoted_ > 0 || 2 * divided_ > lines_ - 1);
  if (!below_heading && (lines_ < kLinesMin || 2 * quoted_ <= lines_)) return;
  notices.push_back(
      fmt::format("{} looks like CSV, as '{}' shows, and is read as words between blanks: numbers, commas and quotes "
                  "are words or parts of them; write the column of the text alone, without quotes",
                  path, shown_));
}

}  // namespace gpups::trainer
