// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/text/convert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <system_error>

#include "kernels/base/check.hpp"
#include "trainer/accounts/stage_times.hpp"
#include "trainer/input/input_file.hpp"
#include "trainer/tasks/click/binary_format.hpp"
#include "trainer/tasks/click/sample_file.hpp"
#include "trainer/tasks/click/text/text_blocks.hpp"

namespace gpups::trainer {

namespace {

// Throws Error if a file of another kind would be replaced: the user may have swapped the two names.
void check_target(std::filesystem::path const& text, std::filesystem::path const& binary) {
  std::error_code none;
  GPUPS_REQUIRE(!std::filesystem::equivalent(text, binary, none),
                "{} is both the text and the binary file (the text would be lost): choose another name", text.string());
  if (!std::filesystem::exists(binary, none)) return;
  GPUPS_REQUIRE(!std::filesystem::is_other(binary, none),
                "{} is no regular file (it would be replaced by one): choose another name", binary.string());
  InputFile file(binary);
  char magic[sizeof kMagic] = {};
  std::size_t const size = file.read(magic, sizeof magic);
  GPUPS_REQUIRE(size == 0 || std::equal(std::begin(kMagic), std::end(kMagic), magic),
                "{} exists and is not a binary file of samples (it would be lost): choose another name, or remove it",
                binary.string());
}

// Returns "columns 2 to 4 are the numbers I1 to I3", or each column by its name. first: of the layout's columns, of
// which the label is 0. names: of the columns of this kind in the layout.
std::string columns_text(TableLayout const& table, std::string_view kind, std::size_t first,
                         std::vector<std::string> const& names) {
  constexpr std::size_t kShown = 40;
  if (names.empty()) return fmt::format("there are no {}", kind);
  std::vector<std::string> each;
  bool is_range = names.size() > 1;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i) {
    std::size_t const place = table.columns[first + i];
    bool const named = place < table.names.size();
    is_range = is_range && !named && place == table.columns[first] + i;
    each.push_back(fmt::format("{} = {}", names[i],
                               named ? fmt::format("'{}'", table.names[place]) : fmt::format("column {}", place + 1)));
  }
  if (is_range) {
    return fmt::format("columns {} to {} are the {} {} to {}", table.columns[first] + 1,
                       table.columns[first] + names.size(), kind, names.front(), names.back());
  }
  return fmt::format("{} {}{}", kind, fmt::join(each, ", "),
                     names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : "");
}

// Returns what the columns of the text became.
std::string result_text(Layout const& layout, TableLayout const& table) {
  std::size_t const label = table.columns.front();
  std::vector<std::string> categories;
  for (CategoryField const& field : layout.categories) categories.push_back(field.name);
  return fmt::format(
      "the label is {}; {}; {}",
      label < table.names.size() ? fmt::format("'{}'", table.names[label]) : fmt::format("column {}", label + 1),
      columns_text(table, "numbers", 1, layout.numbers),
      columns_text(table, "categories", 1 + layout.numbers.size(), categories));
}

// Returns the names of the layout's columns, or none if the heading does not name all of them.
std::vector<std::string> heading_names(TableLayout const& table) {
  std::vector<std::string> names;
  for (std::size_t const place : table.columns) {
    if (!table.heading || place >= table.names.size()) return {};
    names.push_back(table.names[place]);
  }
  return names;
}

}  // namespace

Converted convert_samples(std::filesystem::path const& text, std::filesystem::path const& binary, Layout const& layout,
                          TextOptions const& options) {
  check_target(text, binary);
  Stopwatch watch;
  watch.start();
  Converted done;
  check_layout(layout);
  SampleFileWriter writer(binary, layout);
  SameColumns columns;
  TextOptions with_columns = options;
  with_columns.same = &columns;
  TextCounts const counts =
      make_blocks_of_text(std::span(&text, 1), layout, with_columns, done.notices,
                          [&](std::vector<std::byte> const& block, std::uint64_t xxh3) { writer.add(block, xxh3); });
  done.samples = counts.samples;
  done.bad = counts.bad;
  done.bytes = writer.finish(counts.samples, heading_names(columns.first()));
  done.columns = fmt::format("{}: {}", text.string(), result_text(layout, columns.first()));
  done.seconds = watch.seconds();
  return done;
}

}  // namespace gpups::trainer
