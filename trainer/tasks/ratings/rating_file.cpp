// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/ratings/rating_file.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <span>
#include <string_view>

#include "kernels/base/check.hpp"
#include "trainer/base/finite_number.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/input/named_files.hpp"
#include "trainer/input/table_reader.hpp"
#include "trainer/tasks/common/first_column.hpp"
#include "trainer/tasks/common/thousands.hpp"
#include "trainer/tasks/common/times.hpp"

namespace gpups::trainer {
namespace {

constexpr TableColumn kRatingColumns[] = {
    {.is = "row", .headings = "row rowid user userid uid customer customerid reader readerid", .is_number = true},
    {.is = "column",
     .headings = "column columnid col item itemid iid movie movieid product productid book bookid anime animeid joke "
                 "jokeid song songid business businessid",
     .is_number = true},
    {.is = "rating", .headings = "rating score stars value overall", .is_number = true},
};
constexpr TableKind kRatings{.columns = kRatingColumns, .separator = "blanks", .comments = "#%", .skips_rest = true};
constexpr TableKind kPairs{
    .columns = std::span(kRatingColumns).first<2>(), .separator = "blanks", .comments = "#%", .skips_rest = true};

// Ids with zeros in front, which are numbers without them.
struct LeadingZeros {
  std::uint64_t count = 0;
  std::string shown{};

  void add(std::string_view id) {
    if (id.size() < 2 || id.front() != '0') return;
    if (count++ == 0) shown = id;
  }
  void say(std::string_view path, std::vector<std::string>& notices) const {
    if (count == 0) return;
    notices.push_back(
        fmt::format("{} has {} with a zero in front, such as {}: ids are numbers, so zeros in front do not "
                    "distinguish them",
                    path, with_count(count, "id"), shown));
  }
};

bool read_id(std::string_view field, std::uint64_t& id) {
  auto const [stop, error] = std::from_chars(field.data(), field.data() + field.size(), id);
  return error == std::errc{} && stop == field.data() + field.size();
}

// Reads the two ids. Returns why they are invalid, or nothing if they are valid.
std::string_view read_ids(std::vector<std::string_view> const& fields, RatingLine& rating) {
  if (!read_id(fields[0], rating.row))
    return "has no row id (ids are numbers from 0 to 2^64 - 1): number names first, for example with "
           "pandas.factorize()";
  if (!read_id(fields[1], rating.column))
    return "has no column id (ids are numbers from 0 to 2^64 - 1): number names first, for example with "
           "pandas.factorize()";
  return {};
}

// Reads a row of a file. Returns why it is invalid, or nothing if it is valid.
std::string_view read_rating(std::vector<std::string_view> const& fields, RatingLine& rating, LikeTimes& times) {
  if (std::string_view const wrong = read_ids(fields, rating); !wrong.empty()) return wrong;
  if (auto const value = finite_number(fields[2])) {
    rating.value = static_cast<float>(*value);
    if (std::isfinite(rating.value)) {
      times.add(*value);  // as it is in the file: large floats are whole
      return {};
    }
  }
  return fields[2].find(',') == fields[2].npos ? "has no rating (a number)"
                                               : "has a rating with a comma (a number has a decimal point)";
}

// Whether a field is a time, in seconds or with signs between its numbers.
bool is_like_time(std::string_view field) {
  if (field.find_first_of(":-/") != field.npos) return true;
  auto const number = finite_number(field);
  return number && is_time(*number);
}

// Adds a notice if the fourth column, which is skipped, has no times: "5,7,3,5" may be a rating of 3.5.
void say_fourth_column(std::vector<std::vector<std::string>> const& rows, std::string_view path,
                       std::vector<std::string>& notices) {
  std::size_t times = 0, others = 0;
  std::vector<std::string> const* shown = nullptr;
  for (auto const& row : rows) {
    if (row.size() < 4 || row[3].empty() || row[3] == "0") continue;  // of a time, 0 stands for none
    if (is_like_time(row[3])) {
      ++times;
      continue;
    }
    ++others;
    if (shown == nullptr) shown = &row;
  }
  if (others <= times) return;
  notices.push_back(fmt::format(
      "the fourth column of {} is not read, as '{}' after the rating '{}' (numbers have a decimal point, not a "
      "comma): if it is no part of a rating, data.columns = [\"1\", \"2\", \"3\"] reads it without this "
      "notice",
      path, (*shown)[3], (*shown)[2]));
}

void append_file(std::filesystem::path const& path, DataConfig const& config, SameColumns& same,
                 std::vector<std::string>& notices, std::vector<RatingLine>& ratings, LikeTimes& times,
                 LikeThousands& thousands) {
  TableReader reader(path, config.table, kRatings);
  same.check(reader.layout(), path.string());
  LeadingZeros zeros;
  for (std::vector<std::string_view> fields; reader.next(fields);) {
    RatingLine rating;
    std::string_view const wrong = read_rating(fields, rating, times);
    for (std::string_view const id : std::span(fields).first(2)) zeros.add(id);
    wrong.empty() ? ratings.push_back(rating) : reader.reject(wrong);
    if (wrong.empty()) thousands.add(fields[2]);
  }
  reader.finish(config.bad_share_max, "a row id, a column id and a rating", notices);
  zeros.say(path.string(), notices);
  if (config.table.columns.empty() && !reader.matrix()) {
    say_odd_first_column(reader.first_rows(), reader.layout(), kRatings, path.string(), notices);
  }
  if (config.table.columns.empty() && !reader.layout().heading && !reader.matrix()) {
    say_fourth_column(reader.first_rows(), path.string(), notices);
  }
}

}  // namespace

std::vector<RatingLine> read_rating_file(DataConfig const& config, std::string const& file,
                                         std::vector<std::string>& notices, SameColumns* same) {
  std::vector<RatingLine> ratings;
  SameColumns of_setting;
  LikeTimes times;
  LikeThousands thousands;
  for (auto const& path : files_named(config.folder, file, notices)) {
    append_file(path, config, same != nullptr ? *same : of_setting, notices, ratings, times, thousands);
  }
  GPUPS_REQUIRE(!ratings.empty(), "{} has no ratings (training and evaluation need some): check the file",
                (std::filesystem::path(config.folder) / file).string());
  times.say("ratings", "[\"1\", \"2\", \"4\"]", notices);
  thousands.say("ratings", notices);
  return ratings;
}

void read_rating_pairs(std::filesystem::path const& path, TableSettings const& settings, SameColumns trained,
                       std::vector<std::string>& notices, std::function<void(RatingLine const&)> const& take) {
  TableReader reader(path, settings, kPairs);
  trained.check(reader.layout(), path.string());
  for (std::vector<std::string_view> fields; reader.next(fields);) {
    RatingLine pair;
    std::string_view const wrong = read_ids(fields, pair);
    GPUPS_REQUIRE(wrong.empty(), "{} {} (each line needs a prediction): correct the line", reader.position(), wrong);
    take(pair);
  }
  reader.finish(0, "a row id and a column id", notices, "");
}

}  // namespace gpups::trainer
