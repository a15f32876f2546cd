// SPDX-License-Identifier: Apache-2.0
#include "tools/convert_options.hpp"

#include <algorithm>
#include <charconv>

#include "kernels/base/check.hpp"
#include "tools/command_line.hpp"

namespace gpups::tools {
namespace {

// Returns the number that an option's text spells. Throws Error unless it is from 0 to `most`. what: its meaning.
template <class T>
T checked_number(char const* option, std::string const& text, T most, char const* what) {
  T number{};
  char const* const end = text.data() + text.size();
  auto const [stop, error] = std::from_chars(text.data(), end, number);
  GPUPS_REQUIRE(error == std::errc() && stop == end && number >= 0 && number <= most,
                "{} is '{}' (it is {}): use a number from 0 to {}", option, text, what, most);
  return number;
}

}  // namespace

void ConvertOptions::add_to(CLI::App& command) {
  positional(command, "TEXT", text_, "Lines with a label, numbers and categories, or CSV; plain, gzip or zstd")
      ->required();
  positional(command, "BINARY", binary_, "File to write; a binary file of samples with this name is replaced")
      ->required();
  command
      .add_option("--numeric-columns", numbers_,
                  "Number of numeric columns, named I1 and so on; default: 13, as in Criteo's data")
      ->type_name("N");
  command.add_option("--categorical-columns", categories_, "Number of categories, named C1 and so on; default: 26")
      ->type_name("N");
  command
      .add_option(
          "--columns", columns_,
          "The label, the numbers and the categories, each by its name or number, as in --columns click,5,site; "
          "default: in this order")
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--separator", separator_, "As data.separator, such as comma; default: auto")->type_name("NAME");
  command.add_option("--heading", heading_, "Whether the first line has the names of the columns; default: auto")
      ->type_name("auto|yes|no");
  command.add_option("--comment", comment_, "As data.comment: what a comment line begins with; default: auto")
      ->type_name("PREFIX");
  command.add_option("--multi-hot", many_, "Categories with values a|b|c, as in --multi-hot C3,C7")
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--weighted", weighted_, "Categories with values a:0.5|b:2, as in --weighted C9")
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--bad-share-max", bad_share_max_, "Share of lines that may be bad; they are left out; default: 0")
      ->type_name("SHARE");
  command.add_option("--threads", threads_, "Threads that parse; default: one for each core")->type_name("N");
}

Conversion ConvertOptions::checked() const {
  constexpr std::size_t kColumnsMost = 4095;
  auto const numbers = checked_number("--numeric-columns", numbers_, kColumnsMost, "a number of columns");
  auto const categories = checked_number("--categorical-columns", categories_, kColumnsMost, "a number of columns");
  GPUPS_REQUIRE(
      columns_.empty() || columns_.size() == 1 + numbers + categories,
      "--columns has {} names, and --numeric-columns is {} and --categorical-columns {} (a label, the numbers "
      "and then the categories are {} columns): correct one of them",
      columns_.size(), numbers, categories, 1 + numbers + categories);
  GPUPS_REQUIRE(heading_ == "auto" || heading_ == "yes" || heading_ == "no",
                "--heading is '{}' (it says whether the first line has names): use one of auto, yes, no", heading_);
  Conversion what;
  what.text = text_;
  what.binary = binary_;
  what.layout = trainer::make_layout(numbers, categories, many_, weighted_);
  what.options.bad_share_max = checked_number("--bad-share-max", bad_share_max_, 1.0, "a share of all lines");
  what.options.threads = checked_number("--threads", threads_, 1024, "a number of threads; 0: as many as cores");
  what.options.table = {.separator = separator_, .heading = heading_, .comment = comment_, .columns = columns_};
  what.options.bad_share_setting = "--bad-share-max";
  return what;
}

std::string with_options(std::string message) {
  for (std::string const name : {"columns", "separator", "heading", "comment", "numeric_columns", "categorical_columns",
                                 "multi_hot", "weighted"}) {
    std::string const key = "data." + name;
    std::string option = "--" + name;
    std::replace(option.begin(), option.end(), '_', '-');
    for (std::size_t at = message.find(key); at != message.npos; at = message.find(key, at + option.size())) {
      message.replace(at, key.size(), option);
    }
  }
  return message;
}

}  // namespace gpups::tools
