// SPDX-License-Identifier: Apache-2.0
// TableShard: applies the gradients of a step.
#include <algorithm>
#include <cmath>
#include <deque>
#include <numbers>

#include "cache/rows/table_shard.hpp"
#include "gpups/error.hpp"
#include "gpups/table.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/sum/merge_gradients.hpp"
#include "kernels/update/sum_and_update.hpp"

namespace gpups::cache {
namespace {

// Makes the random numbers of stochastic rounding differ from those of initial values.
constexpr std::uint64_t kRounding = 0x726F756E64;

kernels::GradientList as_list(RowSums const& sums) {
  if (sums.received == nullptr) {
    return {.ids = sums.ids, .sums = sums.sums, .positions = sums.positions, .marked = sums.marked};
  }
  return {.ids = sums.ids, .packed = sums.received->rows(), .starts = sums.received->starts};
}

}  // namespace

void TableShard::throw_bad_row(Stream& stream, std::uint32_t id) const {
  auto const ids = to_device(stream, std::vector{id});
  auto const key = to_host(stream, wait_keys_of(stream, ids).view())[0];
  bool const half = options_.value_type == DataType::kHalf;
  throw Error(fmt::format(
      "the updated value of key {} in table '{}' is not finite{}, or the sum of its gradients over the ranks overflows "
      "(other rows of the step have been updated, so training cannot continue): restore a checkpoint into tables with "
      "a lower learning rate, or start again with {}a larger grid_log2",
      number(key), options_.name, half ? " or above 65,504, the largest float16" : "",
      half ? "the value_type bfloat16 or " : ""));
}

Array<std::uint32_t> TableShard::apply(Stream& stream, std::span<TableStep> tables, Clock clock) {
  // Merged sums, of all rows or of those that the first list does not have, and the lists of which they are made.
  struct Merged {
    std::vector<kernels::GradientList> lists;
    Array<std::uint32_t> ids;
    Matrix<std::int64_t> sums;
  };
  Device const device = stream.device();
  Array<std::uint32_t> bad_rows(device, tables.size());
  Array<std::uint32_t> const counts(device, tables.size());
  memory::fill_bytes(stream, bad_rows.data(), 0xFF, bad_rows.bytes());  // kNoRow
  std::deque<Merged> merged;
  std::vector<kernels::CountOccurrences> occurrences;
  std::vector<kernels::MergeGradients> merges;
  std::vector<kernels::UpdateRows> updates;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    auto& [shard, lists, samples] = tables[t];
    std::erase_if(lists, [](RowSums const& list) { return list.ids.empty(); });
    if (lists.empty()) continue;
    for (auto const& list : lists) {
      if (shard->counts_occurrences()) occurrences.push_back(shard->occurrences_of(list, clock));
    }
    auto const bad_row = bad_rows.view().slice(t, 1);
    // Mostly the gradients of this rank's own batch. Those of other ranks are added where they are.
    bool const in_place = lists[0].received == nullptr && lists[0].marked.empty();
    if (in_place) {
      auto& update = updates.emplace_back(shard->update(lists[0].ids, clock, samples, bad_row));
      update.sums = lists[0].sums;
      update.positions = lists[0].positions;
      if (lists.size() == 1) continue;
    }
    auto& all = merged.emplace_back();
    std::size_t rows = 0;
    for (auto const& list : lists) {
      all.lists.push_back(as_list(list));
      rows += list.ids.size();
    }
    if (in_place) rows -= lists[0].ids.size();
    all.ids = Array<std::uint32_t>(device, rows);
    all.sums = Matrix<std::int64_t>(device, rows, shard->dim());
    auto const epoch = shard->next_epoch(stream);
    merges.push_back({.lists = all.lists,
                      .dim = shard->dim(),
                      .mark = shard->mark_.ref(),
                      .epoch = epoch,
                      .ids = all.ids,
                      .sums = all.sums,
                      .count = counts.view().slice(t, 1),
                      .bad_row = bad_row,
                      .in_place = in_place ? lists[0].sums : MatrixView<std::int64_t>()});
    auto& update = updates.emplace_back(shard->update(all.ids, clock, samples, bad_row));
    update.sums = all.sums;
    update.count = counts.view().slice(t, 1);
  }
  if (updates.empty()) return {};
  kernels::count_occurrences(stream, occurrences);
  kernels::merge_gradients(stream, merges);
  kernels::update_rows(stream, updates);
  return bad_rows;
}

void TableShard::check_applied(Stream& stream, std::span<TableStep const> tables,
                               std::vector<std::uint32_t> const& bad_rows) {
  for (std::size_t t = 0; t < bad_rows.size(); ++t) {
    if (bad_rows[t] != kernels::kNoRow) tables[t].shard->throw_bad_row(stream, bad_rows[t]);
  }
}

void TableShard::sum_and_apply(Stream& stream, View<std::uint32_t const> ids, kernels::SumGradients const& gradients,
                               Clock clock, std::size_t samples, View<std::uint32_t> bad_row) {
  if (counts_occurrences()) {
    kernels::count_occurrences(stream, occurrences_of({.ids = ids, .sums = {}, .offsets = gradients.offsets}, clock));
  }
  kernels::sum_and_update(stream, {.gradients = gradients, .update = update(ids, clock, samples, bad_row)});
}

kernels::CountOccurrences TableShard::occurrences_of(RowSums const& rows, Clock clock) const {
  return {.lifecycle = lifecycle_.ref(),
          .ids = rows.ids,
          .offsets = rows.offsets,
          .step = kernels::lifecycle_step(clock),
          .counts = rows.counts};
}

kernels::UpdateRows TableShard::update(View<std::uint32_t const> ids, Clock clock, std::size_t samples,
                                       View<std::uint32_t> bad_row) const {
  auto const& optimizer = options_.optimizer;
  return {.ids = ids,
          .sums = {},
          .values = values_.ref(),
          .state = state_.ref(),
          .lifecycle = lifecycle_.ref(),
          .dim = dim(),
          .grid_log2 = options_.grid_log2,
          .scale = 1.0 / static_cast<double>(std::max<std::size_t>(samples, 1)),
          .optimizer = optimizer,
          .rate = optimizer.learning_rate * learning_rate_factor(options_.schedule, clock),
          .step = kernels::lifecycle_step(clock),
          .admission_count = options_.admission_count,
          .bad_row = bad_row,
          .keys = index_.keys(),
          .rounding_seed = kernels::mix(seed_ ^ kRounding)};
}

}  // namespace gpups::cache

namespace gpups {

float learning_rate_factor(Schedule const& schedule, Clock clock) {
  auto const step = static_cast<double>(number(clock));
  auto const warmup = static_cast<double>(schedule.warmup_steps);
  double const rising = step + 1 < warmup ? (step + 1) / warmup : 1.0;
  if (schedule.kind == Schedule::Kind::kConstant || rising < 1.0) return static_cast<float>(rising);

  double const length = std::max(1.0, static_cast<double>(schedule.total_steps) - warmup);
  double const part = std::clamp((step - warmup) / length, 0.0, 1.0);
  double const left =
      schedule.kind == Schedule::Kind::kLinear ? 1.0 - part : 0.5 * (1.0 + std::cos(std::numbers::pi * part));
  return static_cast<float>(schedule.min_factor + (1.0 - schedule.min_factor) * left);
}

}  // namespace gpups
