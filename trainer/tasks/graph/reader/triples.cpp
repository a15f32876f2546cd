// SPDX-License-Identifier: Apache-2.0
// Reads lines of subject, relation and object, separated by tabs. A name is any string that is not empty.
#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "kernels/base/check.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/input/line_reader.hpp"
#include "trainer/tasks/graph/reader.hpp"

namespace gpups::trainer {
namespace {

using Names = std::array<std::string_view, 3>;

// Splits a line into three names. Returns why the line is invalid, or nothing if it is valid.
std::string_view split_line(std::string_view line, Names& names) {
  std::size_t const a = line.find('\t');
  if (a == std::string_view::npos) return "has 1 field";
  std::size_t const b = line.find('\t', a + 1);
  if (b == std::string_view::npos) return "has 2 fields";
  if (line.find('\t', b + 1) != std::string_view::npos) return "has more than 3 fields";
  names = {line.substr(0, a), line.substr(a + 1, b - a - 1), line.substr(b + 1)};
  for (std::string_view name : names) {
    if (name.empty()) return "has an empty field";
  }
  return {};
}

template <class Add>
void read_file(std::filesystem::path const& path, double bad_share_max, std::vector<std::string>& notices, Add add) {
  LineReader reader(path);
  BadLines lines;
  std::string_view line;
  Names names;
  while (reader.next(line)) {
    ++lines.lines;
    std::string_view const wrong = split_line(line, names);
    if (wrong.empty()) {
      add(names);
    } else {
      lines.add(reader.position(), wrong);
    }
  }
  lines.report(path, bad_share_max, "subject, relation and object", "data.bad_share_max", notices);
}

}  // namespace

Dataset read_triples(DataConfig const& config) {
  Dataset data;
  std::filesystem::path const folder = config.folder;
  GPUPS_REQUIRE(!config.train.empty(), "data.train is empty (there are no triples to train on): set it to a file");
  read_file(folder / config.train, config.bad_share_max, data.notices,
            [&](Names const& n) { data.add_train(n[0], n[1], n[2]); });
  GPUPS_REQUIRE(!data.train.empty(), "{} has no triples (training needs some): check the file",
                (folder / config.train).string());

  auto const read_held_out = [&](std::string const& file, std::vector<Triple>& split) {
    if (file.empty()) return;
    read_file(folder / file, config.bad_share_max, data.notices,
              [&](Names const& n) { data.add_held_out(split, n[0], n[1], n[2]); });
    std::size_t const unseen = data.count_unseen(split);
    if (unseen > 0) {
      data.notices.push_back(
          fmt::format("{} of {} with names that are not in the training data; such entities are trained as negatives "
                      "only, and such relations have their initial rows",
                      with_count(unseen, "triple"), (folder / file).string()));
    }
    GPUPS_REQUIRE(!split.empty(),
                  "{} has no triples to rank (metrics need some): correct the file, or set its key to \"\"",
                  (folder / file).string());
  };
  read_held_out(config.valid, data.valid);
  read_held_out(config.test, data.test);
  return data;
}

}  // namespace gpups::trainer
