// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/named_files.hpp"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/base/progress_reporter.hpp"

namespace gpups::trainer {
namespace {

bool is_digit_at(std::string_view text, std::size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

// Whether a name is before another one, with the numbers in them in the order of their values: part-2, then part-10.
bool is_named_before(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit_at(a, i) || !is_digit_at(b, j)) {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i, ++j;
      continue;
    }
    auto const next_number = [](std::string_view text, std::size_t& at) {
      while (is_digit_at(text, at) && text[at] == '0') ++at;
      std::size_t const begin = at;
      while (is_digit_at(text, at)) ++at;
      return text.substr(begin, at - begin);
    };
    std::string_view const of_a = next_number(a, i), of_b = next_number(b, j);
    if (of_a.size() != of_b.size()) return of_a.size() < of_b.size();
    if (of_a != of_b) return of_a < of_b;
  }
  return a.size() - i < b.size() - j;
}

constexpr std::string_view kEndsOfCopies[] = {".gz",  ".zst",  ".bz2",  ".xz",   ".zip", "~",   ".bak",
                                              ".old", ".orig", ".copy", ".save", ".swp", ".tmp"};

// Returns a name without the ends of compressed files and copies.
std::string_view without_ends(std::string_view name) {
  for (bool shorter = true; shorter;) {
    shorter = false;
    for (std::string_view const end : kEndsOfCopies) {
      if (name.size() <= end.size() || !name.ends_with(end)) continue;
      name.remove_suffix(end.size());
      shorter = true;
    }
  }
  return name;
}

// Returns "a, b, c, d, e and 4 more".
std::string list_of_names(std::vector<std::string> const& names) {
  constexpr std::size_t kMost = 5;
  std::size_t const some = std::min(names.size(), kMost);
  return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(some), ", "),
                     names.size() > some ? fmt::format(" and {} more", names.size() - some) : "");
}

void say_copies(std::vector<std::string> const& names, std::vector<std::string>& notices) {
  std::map<std::string_view, std::string_view> name_of;
  std::size_t copies = 0;
  std::pair<std::string_view, std::string_view> shown;
  for (std::string const& name : names) {
    auto const [found, added] = name_of.try_emplace(without_ends(name), name);
    if (added) continue;
    if (copies++ == 0) shown = {found->second, name};
  }
  if (copies == 0) return;
  notices.push_back(fmt::format(
      "{} and {}{} have the names of one file and its copy: if they have the same data, these are read twice, and "
      "held-out samples may be training samples too; choose a pattern that matches one of them",
      shown.first, shown.second, copies > 1 ? fmt::format(", and {}", with_count(copies - 1, "other pair")) : ""));
}

}  // namespace

std::vector<std::filesystem::path> files_named(std::filesystem::path const& folder, std::string const& file,
                                               std::vector<std::string>& notices) {
  std::filesystem::path const path = folder / file;
  std::error_code unknown;
  if (file.find_first_of("*?") == file.npos || std::filesystem::exists(path, unknown)) return {path};
  glob_t found{};
  int const result = ::glob(path.c_str(), 0, nullptr, &found);
  std::vector<std::filesystem::path> files;
  for (char* const name : std::span(found.gl_pathv, found.gl_pathc)) files.emplace_back(name);
  ::globfree(&found);
  std::stable_sort(files.begin(), files.end(),
                   [](auto const& a, auto const& b) { return is_named_before(a.native(), b.native()); });
  GPUPS_REQUIRE(result == 0 && !files.empty(), "no file matches {} (data is read from files): check the path",
                path.string());
  if (files.size() < 2) return files;
  std::vector<std::string> names;
  for (auto const& one : files) {
    std::filesystem::path const within = one.lexically_relative(folder);
    names.push_back((within.empty() ? one : within).string());
  }
  notices.push_back(fmt::format("{} matches {}: {}", file, with_count(files.size(), "file"), list_of_names(names)));
  say_copies(names, notices);
  return files;
}

void say_same_files(std::vector<std::filesystem::path> const& train, std::vector<std::filesystem::path> const& held_out,
                    std::string const& split, std::vector<std::string>& notices) {
  std::vector<std::string> same;
  for (auto const& file : held_out) {
    std::error_code unknown;  // a file that does not exist is reported when it is opened
    auto const is_file = [&](auto const& other) { return std::filesystem::equivalent(file, other, unknown); };
    if (std::any_of(train.begin(), train.end(), is_file)) same.push_back(file.filename().string());
  }
  if (same.empty()) return;
  notices.push_back(
      fmt::format("data.{} and data.train both name {}: the model is trained with samples of the {} split, whose "
                  "metrics are too good; name other files",
                  split, list_of_names(same), split));
}

}  // namespace gpups::trainer
