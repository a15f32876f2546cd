// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/table_headings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <sstream>

#include "trainer/input/column_names.hpp"
#include "trainer/input/table_division.hpp"

namespace gpups::trainer {
namespace {

constexpr std::uint64_t kOthersMin = 9;  // of fewer rows, several may have names of their own only

// Also a byte of a character that is not ASCII.
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || static_cast<signed char>(c) < 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Returns the shape of a name: "user0" of "user17", and "a0-a" of "user17-abc".
std::string shape_of(std::string_view name) {
  std::size_t const digits = name.find_first_of("0123456789");
  if (digits > 0 && digits != name.npos &&
      std::all_of(name.begin() + static_cast<std::ptrdiff_t>(digits), name.end(), is_digit)) {
    return std::string(name.substr(0, digits)) + '0';
  }
  std::string shape;
  for (char const c : name) {
    char const kind = is_digit(c) ? '0' : is_letter(c) ? 'a' : c;
    if (shape.empty() || shape.back() != kind) shape += kind;
  }
  return shape;
}

}  // namespace

bool counts_columns(std::span<std::string_view const> fields) {
  std::size_t number = 0;
  return fields.size() > 1 &&
         std::all_of(fields.begin(), fields.end(), [&](auto field) { return field == std::to_string(number++); });
}

std::string heading_notice(std::string_view path, std::string_view why, std::span<std::string const> fields) {
  constexpr std::size_t kShown = 4;
  return fmt::format(
      "the first line of {} may be a heading, since {}: '{}'{}. data.heading = \"yes\" skips it, and \"no\" reads it "
      "without this notice",
      path, why, fmt::join(fields.first(std::min(fields.size(), kShown)), "', '"),
      fields.size() > kShown ? ", ..." : "");
}

void FirstRow::begin(std::span<std::string_view const> fields) {
  first_.assign(fields.begin(), fields.end());
  for (std::string_view const field : fields) shapes_.push_back(shape_of(field));
  counts_ = counts_columns(fields);
  digits_ = std::any_of(shapes_.begin(), shapes_.end(), [](auto const& s) { return s.find('0') != s.npos; });
  bool const names = !kind_.columns.front().is_number && std::all_of(first_.begin(), first_.end(), [](auto const& f) {
    return is_letter(f.front()) || f.front() == '_' || (f.size() > 1 && f.front() == '"' && is_letter(f[1]));
  });
  alone_ = names || counts_;
}

void FirstRow::add(std::span<std::string_view const> fields) {
  if (!alone_) return;
  if (first_.empty()) {
    begin(fields);
    return;
  }
  if (std::equal(fields.begin(), fields.end(), first_.begin(), first_.end())) return;  // files were joined
  if (++others_ < kOthersMin) few_.emplace_back(fields.begin(), fields.end());
  if (counts_ && first_.size() == 2 && !kind_.is_square) return add_to_pairs(fields);
  bool alike = true;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    bool const is_value = i < kind_.columns.size() && kind_.columns[i].is_number && kind_.columns[i].may_lack;
    if (!is_value && std::find(first_.begin(), first_.end(), fields[i]) != first_.end()) alone_ = false;
    alike = alike && (i >= shapes_.size() || shape_of(fields[i]) == shapes_[i]);
  }
  alike_ += alike ? 1 : 0;
  // Of three columns that are counted, the last is a value, and ids from 0 on are common.
  if (counts_ && first_.size() > 2 && kind_.columns.front().is_number) alone_ = true;
}

// Ids from 0 on are common. But rows of user 0 follow each other in most files, and most users and items have several.
void FirstRow::add_to_pairs(std::span<std::string_view const> fields) {
  first_again_ = first_again_ || fields.front() == first_.front();
  second_again_ = second_again_ || (fields.size() > 1 && fields[1] == first_[1]);
  if ((others_ == 1 && first_again_) || fields.size() > 2) alone_ = false;  // lists have any number of fields
  if (first_again_ && second_again_) alone_ = false;
}

// Whether there are few other rows, and each has a name that another one of them has.
bool FirstRow::others_repeat() const {
  std::map<std::string_view, int> rows_with;
  for (auto const& row : few_) {
    for (std::string_view const name : std::set<std::string_view>(row.begin(), row.end())) ++rows_with[name];
  }
  return few_.size() > 1 && std::all_of(few_.begin(), few_.end(), [&](auto const& row) {
           return std::any_of(row.begin(), row.end(), [&](auto const& name) { return rows_with[name] > 1; });
         });
}

void FirstRow::say(std::string_view path, std::vector<std::string>& notices) const {
  bool const is_like_others = digits_ && !counts_ && 2 * alike_ > others_;
  if (!alone_ || is_like_others || (others_ < kOthersMin && !others_repeat())) return;
  notices.push_back(
      heading_notice(path, counts_ ? "it has the numbers of the columns" : "no other has a name of it", first_));
}

namespace {

bool read_whole(std::string_view text, std::uint64_t& number) {
  auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && stop == text.data() + text.size();
}

}  // namespace

void SizeRow::begin(std::span<std::string_view const> fields) {
  sizes_.resize(fields.size());
  may_be_ = fields.size() == 2 || fields.size() == 3;
  for (std::size_t i = 0; i < fields.size() && may_be_; ++i) may_be_ = read_whole(fields[i], sizes_[i]);
}

void SizeRow::add(std::span<std::string_view const> fields) {
  if (!may_be_) return;
  if (sizes_.empty()) {
    begin(fields);
    return;
  }
  longer_ = longer_ || fields.size() > sizes_.size();
  if (!within_) return;
  auto const is_above = [](std::string_view id, std::uint64_t size) {
    std::uint64_t number = 0;
    return read_whole(id, number) && number > size;  // other ids are names
  };
  bool const one_size = sizes_.size() == 2;
  within_ = !is_above(fields[0], sizes_[0]);
  if (!one_size || kind_.is_square) within_ = within_ && !is_above(fields[1], sizes_[one_size ? 0 : 1]);
  may_be_ = within_ || !kind_.is_square || !one_size;  // an edge to the node of that number is as likely
}

void SizeRow::say(std::string_view path, std::uint64_t lines, std::vector<std::string>& notices) const {
  constexpr std::uint64_t kBelowMin = 3;  // of fewer lines, an id or a rating often has the number
  if (!may_be_ || sizes_.empty() || lines <= kBelowMin) return;
  std::uint64_t const below = lines - 1;
  bool const counts_lists = kind_.takes_rest && longer_ && sizes_.front() == below;
  bool const counts_lines = (sizes_.back() == below || counts_lists) && (within_ || below > kOthersMin);
  // No other edge has a number above the first one, and the second one is larger than the next that a node would have.
  bool const is_apart = kind_.is_square && sizes_.size() == 2 && within_ && sizes_[1] > sizes_[0] + 1;
  if (!counts_lines && (!is_apart || below <= kOthersMin)) return;
  notices.push_back(
      fmt::format("the first line of {}, '{}', has {} (it may be the sizes of the data, and is read as data). "
                  "data.heading = \"yes\" skips it, and \"no\" reads it without this notice",
                  path, fmt::join(sizes_, " "),
                  counts_lines ? "the number of the lines below it" : "numbers that none below exceeds"));
}

UsualHeading::UsualHeading(TableKind const& kind) {
  constexpr std::size_t kSkipped = 4;  // '_', '-' and blanks in a name
  for (std::size_t i = 0; i < least_of(kind); ++i) {
    std::istringstream all{std::string(kind.columns[i].headings)};
    std::vector<std::string>& names = names_.emplace_back();
    for (std::string name; all >> name;) {
      firsts_.set(static_cast<unsigned char>(name.front()));
      firsts_.set(static_cast<unsigned char>(std::toupper(static_cast<unsigned char>(name.front()))));
      longest_ = std::max(longest_, name.size() + kSkipped);
      names.push_back(name);
    }
  }
}

bool UsualHeading::is(std::span<std::string_view const> fields) const {
  if (fields.size() < names_.size()) return false;
  auto const may_be = [this](std::string_view field) {
    return field.size() <= longest_ && firsts_.test(static_cast<unsigned char>(field.front()));
  };
  auto const needed = fields.first(names_.size());
  if (!std::all_of(needed.begin(), needed.end(), may_be)) return false;
  // The columns may be in another order than before.
  return std::all_of(names_.begin(), names_.end(), [&](std::vector<std::string> const& names) {
    return std::any_of(needed.begin(), needed.end(), [&](std::string_view field) {
      return std::find(names.begin(), names.end(), plain_name(field)) != names.end();
    });
  });
}

}  // namespace gpups::trainer
