// SPDX-License-Identifier: Apache-2.0
#include "trainer/explain_sums.hpp"

#include <fmt/format.h>

#include "trainer/progress.hpp"

namespace gpups::trainer {
namespace {

std::string counted_sums(SumsOfStep::Part const& part) {
  return fmt::format("dense layers: {} in {} a step", counted(part.numbers, "number"), counted(part.sums, "sum"));
}

// Each number goes to the rank that adds it up, and its sum to all.
double bytes_each_way(std::size_t numbers, int ranks, std::uint64_t sent, std::uint64_t steps) {
  double const ways = 2.0 * (ranks - 1) * static_cast<double>(numbers) * static_cast<double>(steps);
  return static_cast<double>(sent) / ways;
}

std::string explain_exact(SumsOfStep const& sums) {
  return fmt::format(
      "{}, exactly, as whole units of 2^{}: each rank adds up one slice and sends its sums to all (integers have no "
      "other algorithm)",
      counted_sums(sums.exact), sums.grid_log2);
}

std::string explain_largest(SumsOfStep const& sums, int ranks) {
  TopKOptions const& options = *sums.top_k;
  bool const is_lossless = options.format == NumberFormat::kFloat;
  return fmt::format("{}, of the largest {:g} % of each rank, in {}, by {}{}: {}", counted_sums(sums.largest),
                     100 * options.density, is_lossless ? "whole units" : name_of(options.format), sums.by->name,
                     options.algorithm == "auto" ? fmt::format(" (\"auto\" of {} ranks)", ranks) : "", sums.by->what);
}

}  // namespace

std::vector<std::string> explain(SumsOfStep const& sums, int ranks, std::uint64_t sent, std::uint64_t steps) {
  std::vector<std::string> lines;
  if (ranks < 2) return lines;
  if (sums.largest.sums > 0) lines.push_back(explain_largest(sums, ranks));
  lines.push_back(explain_exact(sums));
  if (sums.largest.sums == 0 && steps > 0) {
    lines.back() +=
        fmt::format("; {:.2f} bytes for a number each way", bytes_each_way(sums.exact.numbers, ranks, sent, steps));
  }
  return lines;
}

}  // namespace gpups::trainer
