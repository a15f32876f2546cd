// SPDX-License-Identifier: Apache-2.0
#include "cache/store/checks.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/rows/check_rows.hpp"
#include "kernels/runtime/require_memory.hpp"

namespace gpups::cache {
namespace {

// Returns whether a bag has more than one entry. On a GPU, only whether one must have, because bags are not read.
bool has_bag_of_several(PreparedPart const& part) {
  if (part.bags.empty()) return false;
  if (!part.bags.device().is_host()) return part.entries > part.bags.size() - 1;
  return std::adjacent_find(part.bags.begin(), part.bags.end(), [](std::uint32_t first, std::uint32_t last) {
           return last - first > 1;
         }) != part.bags.end();
}

}  // namespace

void check_gradients(Stream const& stream, PreparedPart const& part, TableOptions const& options,
                     TableGradients const& gradients) {
  using kernels::require_here;
  auto const& [sources, source_indices, coefficients, source_max_abs] = gradients;
  require_here(stream, sources, "push", "sources");
  require_here(stream, source_indices, "push", "source indices");
  require_here(stream, coefficients, "push", "coefficients");
  GPUPS_REQUIRE(part.entries == 0 || sources.rows() > 0,
                "push() was called without sources for {} entries of table '{}' (each entry needs a source): give "
                "sources",
                part.entries, options.name);
  GPUPS_REQUIRE(part.entries == 0 || sources.columns() == options.dim,
                "push() was called with sources of table '{}' that have {} columns (its rows have {}): give sources of "
                "the table's dim",
                options.name, sources.columns(), options.dim);
  GPUPS_REQUIRE(
      coefficients.empty() || coefficients.size() == part.entries,
      "push() was called with {} coefficients for {} entries of table '{}' (each entry needs one): give one for each "
      "entry, or none",
      coefficients.size(), part.entries, options.name);
  GPUPS_REQUIRE(source_indices.empty() || source_indices.size() == part.entries,
                "push() was called with {} source indices for {} entries of table '{}' (each entry needs one): give "
                "one for each entry, or none",
                source_indices.size(), part.entries, options.name);
  bool const has_bags = !part.bags.empty();
  std::size_t const due = has_bags ? part.bags.size() - 1 : part.entries;
  GPUPS_REQUIRE(
      !source_indices.empty() || part.entries == 0 || sources.rows() == due || (!has_bags && sources.rows() > due),
      "push() was called with {} sources for {} {} of table '{}' (without source indices each has its own): give one "
      "for each, or source indices",
      sources.rows(), due, has_bags ? "bags" : "entries", options.name);
  GPUPS_REQUIRE(
      !part.pooled_by_mean || !coefficients.empty() || !has_bag_of_several(part),
      "push() was called without coefficients for bags of table '{}' that pull_pooled() pooled by their mean (a "
      "bag's gradient is divided among its entries): give coefficients of 1 / bag size",
      options.name);
  GPUPS_REQUIRE(!source_max_abs || *source_max_abs >= 0,
                "push() was called with source_max_abs {} for table '{}' (it is a bound of magnitudes): give a number "
                "of 0 or more, or none",
                *source_max_abs, options.name);
}

void check_source_numbers(Stream& stream, PreparedBatch::Impl& batch, std::span<TableGradients const> gradients,
                          std::vector<std::unique_ptr<TableShard>> const& tables) {
  std::vector<kernels::RowNumbersPart> parts;
  bool any = false;
  for (std::size_t p = 0; p < gradients.size(); ++p) {
    auto const& source_indices = gradients[p].source_indices;
    std::size_t const count = source_indices.empty() ? 0 : batch.parts[p].entries;
    parts.push_back({source_indices.slice(0, count), gradients[p].sources.rows()});
    any |= count > 0;
  }
  batch.wrong_numbers = {};
  if (!any) return;
  Array<std::uint32_t> bad_rows(stream.device(), parts.size());
  kernels::check_row_numbers(stream, {.parts = parts, .bad_rows = bad_rows});
  if (!stream.device().is_host()) {
    batch.wrong_numbers = std::move(bad_rows);
    return;
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    auto const entry = bad_rows[p];
    GPUPS_REQUIRE(
        entry == kernels::kNoRow,
        "push() was called with the source index {} for entry {} of table '{}' and {} sources (there is no such "
        "source): give indices below the number of sources",
        parts[p].numbers[entry], entry, tables[number(batch.parts[p].table)]->options().name, parts[p].limit);
  }
}

}  // namespace gpups::cache
