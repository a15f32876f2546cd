// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kernels/base/check.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kColumnsMax = 4096, kNameBytesMax = 255;
constexpr std::string_view kNumber = "number", kOne = "one", kMany = "many", kWeighted = "weighted";

std::string_view kind_name(CategoryField::Kind kind) {
  return kind == CategoryField::Kind::kOne ? kOne : kind == CategoryField::Kind::kMany ? kMany : kWeighted;
}

void check_name(std::string const& name) {
  bool const printable = std::all_of(name.begin(), name.end(), [](unsigned char c) { return c >= 0x20 && c != 0x7F; });
  GPUPS_REQUIRE(!name.empty() && name.size() <= kNameBytesMax && printable,
                "a column's name is empty, longer than {} bytes, or has a character that is not printable (errors "
                "and files contain the name): choose another",
                kNameBytesMax);
}

void set_kind(Layout& layout, std::vector<std::string> const& names, CategoryField::Kind kind) {
  for (std::string const& name : names) {
    auto const at = std::find_if(layout.categories.begin(), layout.categories.end(),
                                 [&](CategoryField const& field) { return field.name == name; });
    GPUPS_REQUIRE(at != layout.categories.end(), "'{}' is not a category (the data has C1 to C{}): use one of them",
                  name, layout.categories.size());
    GPUPS_REQUIRE(at->kind == CategoryField::Kind::kOne || at->kind == kind,
                  "{} is set as multi-hot and as weighted (a category has one kind): choose one", name);
    at->kind = kind;
  }
}

}  // namespace

Layout make_layout(std::size_t numbers, std::size_t categories, std::vector<std::string> const& many,
                   std::vector<std::string> const& weighted) {
  GPUPS_REQUIRE(numbers < kColumnsMax && categories < kColumnsMax,
                "a layout of {} numbers and {} categories is too wide (a sample has at most {} columns): use fewer",
                numbers, categories, kColumnsMax);
  Layout layout;
  for (std::size_t i = 1; i <= numbers; ++i) layout.numbers.push_back(fmt::format("I{}", i));
  for (std::size_t i = 1; i <= categories; ++i) layout.categories.push_back({.name = fmt::format("C{}", i)});
  set_kind(layout, many, CategoryField::Kind::kMany);
  set_kind(layout, weighted, CategoryField::Kind::kWeighted);
  check_layout(layout);
  return layout;
}

Layout criteo_layout() { return make_layout(13, 26); }

std::string layout_text(Layout const& layout) {
  std::string text;
  for (std::string const& name : layout.numbers) text += fmt::format("{} {}\n", kNumber, name);
  for (CategoryField const& field : layout.categories)
    text += fmt::format("{} {}\n", kind_name(field.kind), field.name);
  return text;
}

Layout parse_layout(std::string_view text) {
  Layout layout;
  for (std::size_t line = 1; !text.empty(); ++line) {
    std::size_t const end = std::min(text.find('\n'), text.size());
    std::string_view const words = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::size_t const space = std::min(words.find(' '), words.size());
    std::string_view const kind = words.substr(0, space);
    std::string name(words.substr(std::min(space + 1, words.size())));
    if (kind == kNumber) {
      GPUPS_REQUIRE(layout.categories.empty(),
                    "line {} of the layout is a number (all numbers come before the categories): change the order",
                    line);
      layout.numbers.push_back(std::move(name));
    } else {
      GPUPS_REQUIRE(
          kind == kOne || kind == kMany || kind == kWeighted,
          "line {} of the layout begins with '{}' (a line begins with number, one, many or weighted): correct it", line,
          kind.substr(0, 40));
      layout.categories.push_back({.name = std::move(name),
                                   .kind = kind == kOne    ? CategoryField::Kind::kOne
                                           : kind == kMany ? CategoryField::Kind::kMany
                                                           : CategoryField::Kind::kWeighted});
    }
    GPUPS_REQUIRE(layout.columns() <= kColumnsMax, "the layout has more than {} columns (that is the most): use fewer",
                  kColumnsMax);
  }
  check_layout(layout);
  return layout;
}

void check_layout(Layout const& layout) {
  GPUPS_REQUIRE(layout.columns() > 1 && layout.columns() <= kColumnsMax,
                "the layout has {} columns besides the label (a sample has 1 to {}): change its numbers and categories",
                layout.columns() - 1, kColumnsMax - 1);
  std::set<std::string_view> names;
  auto const add = [&names](std::string const& name) {
    check_name(name);
    GPUPS_REQUIRE(names.insert(name).second, "two columns have the name {} (names must be unique): rename one", name);
  };
  for (std::string const& name : layout.numbers) add(name);
  for (CategoryField const& field : layout.categories) add(field.name);
}

}  // namespace gpups::trainer
