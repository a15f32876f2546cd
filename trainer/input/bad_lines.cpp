// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/bad_lines.hpp"

#include <fmt/format.h>

#include "kernels/base/check.hpp"
#include "trainer/base/progress_reporter.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kFirstLines = 3;

}  // namespace

void BadLines::add(std::string_view position, std::string_view why) {
  ++bad;
  if (first.size() < kFirstLines) first.push_back(fmt::format("{} {}", position, why));
}

void BadLines::append(BadLines const& later) {
  bad += later.bad;
  lines += later.lines;
  for (std::string const& line : later.first) {
    if (first.size() < kFirstLines) first.push_back(line);
  }
}

void BadLines::report(std::filesystem::path const& path, double share_max, std::string_view line_is,
                      std::string_view setting, std::vector<std::string>& notices) const {
  if (bad == 0) return;
  std::string const what = fmt::format("{} of {} in {}: {}{}", with_count(bad, "bad line"), lines, path.string(),
                                       fmt::join(first, ", "), bad > first.size() ? ", ..." : "");
  GPUPS_REQUIRE(static_cast<double>(bad) <= share_max * static_cast<double>(lines),
                "{} (a line is {}, separated by tabs): correct the lines, or allow a share of bad lines with {}", what,
                line_is, setting);
  notices.push_back("skipped " + what);
}

}  // namespace gpups::trainer
