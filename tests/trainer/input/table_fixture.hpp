// SPDX-License-Identifier: Apache-2.0
// Reads text with columns, of the kinds that the tasks have.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trainer/input/table_reader.hpp"

namespace gpups::trainer::table_test {

using Row = std::vector<std::string>;
using Rows = std::vector<Row>;

inline constexpr TableColumn kNames[] = {{.is = "subject", .headings = "subject head"},
                                         {.is = "relation", .headings = "relation"},
                                         {.is = "object", .headings = "object tail"}};
inline constexpr TableKind kTriples{.columns = kNames, .separator = "tab"};
inline constexpr TableColumn kPair[] = {{.is = "user", .headings = "user userid"},
                                        {.is = "item", .headings = "item movieid"}};
inline constexpr TableKind kLists{.columns = kPair, .takes_rest = true};
inline constexpr TableColumn kNumbers[] = {{.is = "row", .headings = "user userid", .is_number = true},
                                           {.is = "column", .headings = "item movieid", .is_number = true},
                                           {.is = "rating", .headings = "rating", .is_number = true}};
inline constexpr TableKind kRatings{.columns = kNumbers, .comments = "#%", .skips_rest = true};
inline constexpr TableColumn kEnds[] = {{.is = "from", .headings = "source"},
                                        {.is = "to", .headings = "target"},
                                        {.is = "weight", .headings = "weight", .is_number = true, .may_lack = true}};
inline constexpr TableKind kEdges{.columns = kEnds, .comments = "#%", .is_square = true};

class TableTest : public testing::Test {
 protected:
  Rows read(std::string_view text, TableKind const& kind, TableSettings const& settings = {},
            double bad_share_max = 0) {
    notices_.clear();
    TableReader reader(folder_.write("table", text), settings, kind);
    Rows rows;
    for (std::vector<std::string_view> fields; reader.next(fields);) rows.emplace_back(fields.begin(), fields.end());
    reader.finish(bad_share_max, "a line", notices_);
    return rows;
  }
  void reject(std::string_view text, TableKind const& kind, std::initializer_list<char const*> words,
              TableSettings const& settings = {}) {
    test::expect_error([&] { read(text, kind, settings); }, words);
  }

  test::TemporaryFolder folder_;
  std::vector<std::string> notices_;
};

}  // namespace gpups::trainer::table_test
