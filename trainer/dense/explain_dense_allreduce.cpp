// SPDX-License-Identifier: Apache-2.0
#include "trainer/dense/explain_dense_allreduce.hpp"

#include <fmt/format.h>

#include "trainer/base/progress_reporter.hpp"

namespace gpups::trainer {
namespace {

std::string counted_sums(DenseAllreduceSummary::LayerSums const& part) {
  return fmt::format("dense layers: {} in {} per step", with_count(part.numbers, "number"),
                     with_count(part.sums, "allreduce"));
}

std::string explain_exact(DenseAllreduceSummary const& sums) {
  return fmt::format(
      "{}, exact, in units of 2^{}: each rank sums one slice and sends it to all ranks; short arrays are sent to all "
      "ranks at once",
      counted_sums(sums.exact), sums.grid_log2);
}

std::string explain_largest(DenseAllreduceSummary const& sums, int ranks) {
  TopKOptions const& options = *sums.top_k;
  bool const is_lossless = options.format == WireFormat::kFloat;
  return fmt::format(
      "{}, largest {:g} % of each rank's elements, sent as {}, algorithm {}{}: {}", counted_sums(sums.largest),
      100 * options.density, is_lossless ? "integers" : name_of(options.format), sums.by->name,
      options.algorithm == "auto" ? fmt::format(" (\"auto\" for {} ranks)", ranks) : "", sums.by->description);
}

}  // namespace

std::vector<std::string> explain(DenseAllreduceSummary const& sums, int ranks, DenseAllreduceTraffic const& sent) {
  std::vector<std::string> lines;
  if (ranks < 2) return lines;
  if (sums.largest.sums > 0) lines.push_back(explain_largest(sums, ranks));
  lines.push_back(explain_exact(sums));
  if (sums.largest.sums == 0 && sent.steps > 0) {
    double const numbers = static_cast<double>(sums.exact.numbers) * static_cast<double>(sent.steps) * ranks;
    lines.back() += fmt::format("; a rank sends {:.2f} bytes per number", static_cast<double>(sent.bytes) / numbers);
  }
  return lines;
}

}  // namespace gpups::trainer
