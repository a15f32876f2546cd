// SPDX-License-Identifier: Apache-2.0
// A step, as the training thread sees it.
#include <algorithm>
#include <chrono>

#include "cache/batch_pattern.hpp"
#include "cache/store_impl.hpp"
#include "kernels/check.hpp"
#include "kernels/check_numbers.hpp"
#include "kernels/find_pooled.hpp"
#include "kernels/gather_pooled.hpp"
#include "kernels/require_memory.hpp"
#include "kernels/scatter_numbers.hpp"
#include "kernels/sum_and_update.hpp"

namespace gpups {
namespace {

using kernels::require_here;

// Rows are those of the batch's step from wait_ready() to push().
void require_readable(PreparedBatch const& batch, Clock now, char const* call) {
  GPUPS_REQUIRE(batch.impl()->ready,
                "{} was called before the rows of step {} had come (there is nothing to read yet): "
                "call wait_ready first",
                call, number(batch.clock()));
  GPUPS_REQUIRE(batch.clock() == now && !batch.impl()->pushed,
                "{} was called after the batch of step {} had been pushed (its rows change then): read rows before",
                call, number(batch.clock()));
}

// Source numbers are looked at before any is used: on the host at once, where Error is thrown. On a GPU what is found
// is left to the round, which rejects the step.
void check_source_numbers(Stream& stream, PreparedBatch::Impl& batch, std::span<TableGradients const> gradients,
                          std::vector<std::unique_ptr<cache::TableShard>> const& tables) {
  std::vector<kernels::NumbersPart> parts;
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
  kernels::check_numbers(stream, {.parts = parts, .bad_rows = bad_rows});
  if (!stream.device().is_host()) {
    batch.wrong_numbers = std::move(bad_rows);
    return;
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    auto const entry = bad_rows[p];
    GPUPS_REQUIRE(entry == kernels::kNoRow,
                  "push was given the source index {} for entry {} of table '{}' and {} sources (it points at none): "
                  "give indices below the number of sources",
                  parts[p].numbers[entry], entry, tables[number(batch.parts[p].table)]->options().name, parts[p].limit);
  }
}

}  // namespace

void Store::Impl::require_own(PreparedBatch const& batch, char const* call) const {
  cache::require_batch(batch, call);
  GPUPS_REQUIRE(batch.impl()->pattern->store == identity_,
                "{} was called with a batch of another store (its rows are there): use the store that prepared it",
                call);
}

void Store::Impl::require_stream(Stream const& stream, char const* call) const {
  GPUPS_REQUIRE(stream.device() == options_.device,
                "{} was given a stream on {} and the store is on {} (its rows are there): use Store::make_stream()",
                call, to_string(stream.device()), to_string(options_.device));
}

void Store::Impl::require_between_steps(char const* call) const {
  GPUPS_REQUIRE(pushed_ == nullptr,
                "{} was called between push and advance_clock of step {} (some rows may have its updates already, and "
                "others not): call it after advance_clock",
                call, number(clock_));
}

PreparedBatch Store::prepare(Stream& stream, Clock clock, std::span<TableBatch const> tables, std::size_t samples) {
  GPUPS_REQUIRE(tables.size() <= cache::kPartsMax, "a batch has {} parts (the most is {}): put tables together",
                tables.size(), cache::kPartsMax);
  GPUPS_REQUIRE(
      samples <= cache::kSamplesMax,
      "a batch of {} samples is prepared (sums over the ranks would not fit; the most is {}): give the number "
      "of this rank's samples in the batch",
      samples, cache::kSamplesMax);
  impl_->require_stream(stream, "prepare");
  std::size_t const table_count = impl_->engine().tables().size();
  auto const pattern = cache::wait_make_pattern(stream, tables, samples, ranks(), table_count);
  pattern->store = impl_->identity_;
  return prepare(BatchPattern(pattern), clock);
}

PreparedBatch Store::prepare(BatchPattern const& pattern, Clock clock) {
  GPUPS_REQUIRE(pattern.impl() != nullptr,
                "a batch is prepared for step {} from no pattern (nothing says what it reads): take that of a batch "
                "which was prepared by this store",
                number(clock));
  GPUPS_REQUIRE(pattern.impl()->store == impl_->identity_,
                "a batch is prepared for step {} from the pattern of another store (its keys have other owners, tables "
                "or devices): take that of a batch which was prepared by this store",
                number(clock));
  auto& engine = impl_->engine();
  auto batch = std::make_shared<PreparedBatch::Impl>(pattern.impl(), clock);
  {
    std::lock_guard lock(impl_->mutex_);
    GPUPS_REQUIRE(clock >= impl_->clock_,
                  "a batch is prepared for step {} (step {} is next: it would never be read): "
                  "prepare batches in advance",
                  number(clock), number(impl_->clock_));
    GPUPS_REQUIRE(!impl_->removing_rows_,
                  "a batch is prepared for step {} while rows are forgotten (they could be its rows): prepare it when "
                  "erase or expire has returned",
                  number(clock));
    GPUPS_REQUIRE(clock - impl_->clock_ <= cache::kStepsAheadMax / 2,
                  "a batch is prepared for step {} at step {} (at most {} steps ahead are announced): prepare it later",
                  number(clock), number(impl_->clock_), cache::kStepsAheadMax / 2);
    GPUPS_REQUIRE(impl_->prepared_.insert(clock).second,
                  "a second batch is prepared for step {} (a step reads one): put "
                  "both in one batch",
                  number(clock));
    for (auto const& part : batch->parts) {
      impl_->entries_ += part.entries;
      impl_->distinct_keys_ += part.rows;
      impl_->remote_keys_ += part.rows - part.owned_by(rank());
    }
    engine.announce(batch);  // under the lock: before the clock can pass it
  }
  return PreparedBatch(std::move(batch));
}

void Store::wait_ready(PreparedBatch const& batch) {
  impl_->require_own(batch, "wait_ready");
  GPUPS_REQUIRE(batch.clock() == clock(),
                "a batch of step {} is waited for at step {} (rows are read at their own "
                "step): call advance_clock between steps",
                number(batch.clock()), number(clock()));
  auto const begin = std::chrono::steady_clock::now();
  auto& engine = impl_->engine();
  engine.wait_ready(*batch.impl());
  std::chrono::duration<double> const waited = std::chrono::steady_clock::now() - begin;
  {
    std::lock_guard lock(impl_->mutex_);
    impl_->wait_seconds_ += waited.count();
  }
  engine.throw_if_rejected();
}

void Store::pull(Stream& stream, PreparedBatch const& batch, std::span<MatrixView<float> const> rows) {
  impl_->require_own(batch, "pull");
  impl_->require_stream(stream, "pull");
  GPUPS_REQUIRE(rows.size() == batch.parts(),
                "pull was given {} matrices for a batch of {} parts (each part has its "
                "own): give one for each",
                rows.size(), batch.parts());
  require_readable(batch, clock(), "pull");
  stream.after(batch.impl()->ready_event);
  for (std::size_t p = 0; p < rows.size(); ++p) {
    auto const& part = batch.impl()->parts[p];
    auto const& shard = impl_->shard(part.table);
    GPUPS_REQUIRE(
        rows[p].rows() >= part.rows && rows[p].columns() == shard.dim() && rows[p].stride() == row_stride(shard.dim()),
        "pull was given a ({}, {}) matrix for {} rows of dim {} (rows are copied whole, padding included): use "
        "gpups::Matrix of at least that size",
        rows[p].rows(), rows[p].columns(), part.rows, shard.dim());
    require_here(stream, rows[p], "pull", "rows");
    std::size_t const first = part.owners[number(rank())], own = part.owned_by(rank());
    shard.gather(stream, part.ids, rows[p].slice(first, own));
    kernels::scatter_numbers(stream, {.from = part.values.view(), .positions = part.remote_positions, .out = rows[p]});
  }
  batch.impl()->read_events.push_back(stream.record());
}

void Store::pull_pooled(Stream& stream, PreparedBatch const& batch, std::size_t part, Pooling pooling,
                        MatrixView<float> out, View<float const> coefficients) {
  impl_->require_own(batch, "pull_pooled");
  impl_->require_stream(stream, "pull_pooled");
  cache::require_part(part, batch.parts(), "pull_pooled");
  GPUPS_REQUIRE(pooling == Pooling::kSum || pooling == Pooling::kMean,
                "pull_pooled was given a pooling of number {} (no such pooling is known): use an enumerator of Pooling",
                static_cast<int>(pooling));
  require_readable(batch, clock(), "pull_pooled");
  require_here(stream, out, "pull_pooled", "rows");
  require_here(stream, coefficients, "pull_pooled", "coefficients");
  auto const& pooled = batch.impl()->parts[part];
  GPUPS_REQUIRE(!pooled.bags.empty(),
                "part {} was prepared without offsets (they say what the bags are): prepare it "
                "with TableBatch::offsets",
                part);
  GPUPS_REQUIRE(out.rows() + 1 >= pooled.bags.size() && out.columns() == impl_->shard(pooled.table).dim() &&
                    out.stride() == row_stride(out.columns()),
                "pull_pooled was given a ({}, {}) matrix for {} bags of dim {} (rows are written with their "
                "padding): use gpups::Matrix of that size",
                out.rows(), out.columns(), pooled.bags.size() - 1, impl_->shard(pooled.table).dim());
  GPUPS_REQUIRE(
      coefficients.empty() || coefficients.size() == pooled.entries,
      "pull_pooled was given {} coefficients for {} entries (each entry has a weight of its own): give one for "
      "each entry, or none",
      coefficients.size(), pooled.entries);
  if (pooled.owned_by(rank()) == pooled.rows) {  // rows are read where they are
    stream.after(batch.impl()->ready_event);
    kernels::PooledTable const table{.rows = impl_->shard(pooled.table).values(),
                                     .ids = pooled.ids,
                                     .positions = pooled.positions,
                                     .offsets = pooled.bags,
                                     .weights = coefficients,
                                     .mean = pooling == Pooling::kMean,
                                     .out = out};
    kernels::find_pooled(stream, {{&table, 1}});
    batch.impl()->read_events.push_back(stream.record());
    return;
  }
  auto& rows = batch.impl()->parts[part].pulled;
  if (rows.rows() == 0 && pooled.rows > 0) {
    rows = Matrix<float>(stream.device(), pooled.rows, out.columns());
    std::vector<MatrixView<float>> all;
    for (auto& each : batch.impl()->parts) {
      if (each.pulled.rows() < each.rows) {
        each.pulled = Matrix<float>(stream.device(), each.rows, impl_->shard(each.table).dim());
      }
      all.push_back(each.pulled);
    }
    pull(stream, batch, all);
    batch.impl()->pulled_event = stream.record();
  }
  stream.after(batch.impl()->pulled_event);
  kernels::gather_pooled(stream, {.rows = rows,
                                  .positions = pooled.positions,
                                  .offsets = pooled.bags,
                                  .mean = pooling == Pooling::kMean,
                                  .out = out,
                                  .coefficients = coefficients});
  batch.impl()->read_events.push_back(stream.record());
}

// Alone, a rank need not wait for others' gradients: rows are updated as they are summed. A step that must be rejected
// must change nothing, so only where no sum can be at fault, which the largest values tell. Nor before the rows have
// their numbers, or while a look-up reads them.
bool Store::Impl::can_fuse_update(Stream& stream, PreparedBatch const& batch, std::size_t part,
                                  std::optional<float> source_max_abs, kernels::SumGradients& sum) {
  auto const& parts = batch.impl()->parts;
  auto const same_table = [&](auto const& other) { return other.table == parts[part].table; };
  if (engine_.ranks() > 1 || !kernels::can_sum_and_update(stream.device(), sum.sums.columns())) return false;
  if (!batch.impl()->ready || reads_rows()) return false;
  if (std::count_if(parts.begin(), parts.end(), same_table) > 1) return false;
  if (part == 0) checked_sources_ = {};
  if (!source_max_abs) {
    auto const& rows = sum.source_rows;
    if (checked_sources_.data() != rows.data() || checked_sources_.rows() != rows.rows() ||
        checked_sources_.columns() != rows.columns() || checked_sources_.stride() != rows.stride()) {
      checked_sources_ = rows;
      source_max_abs_ = kernels::wait_max_abs(stream, rows);
    }
    source_max_abs = source_max_abs_;
  }
  auto const& coefficients = sum.coefficients;
  float const coefficient_max_abs =
      coefficients.empty()
          ? 1.0F
          : kernels::wait_max_abs(stream, {coefficients.data(), 1, coefficients.size(), coefficients.size()});
  sum.contribution_max = kernels::contribution_max(coefficient_max_abs, *source_max_abs, sum.grid_log2);
  return kernels::has_sums_within(parts[part].entries, sum.contribution_max);
}

void Store::push(Stream& stream, PreparedBatch const& batch, std::span<TableGradients const> gradients) {
  impl_->require_own(batch, "push");
  impl_->require_stream(stream, "push");
  auto& impl = *batch.impl();
  GPUPS_REQUIRE(batch.clock() == clock(),
                "a batch of step {} is pushed at step {} (gradients belong to their own "
                "step): call advance_clock between steps",
                number(batch.clock()), number(clock()));
  GPUPS_REQUIRE(!impl.pushed, "the batch of step {} is pushed twice (each update is applied once): sum before pushing",
                number(batch.clock()));
  GPUPS_REQUIRE(gradients.size() == batch.parts(),
                "push was given gradients of {} parts for a batch of {} (each part "
                "has its own): give one for each",
                gradients.size(), batch.parts());
  impl.bad_rows = Array<std::uint32_t>(stream.device(), gradients.size());
  memory::fill_bytes(stream, impl.bad_rows.data(), 0xFF, impl.bad_rows.bytes());  // kNoRow
  std::vector<kernels::SumGradients> sums;
  for (std::size_t p = 0; p < gradients.size(); ++p) {
    auto& part = impl.parts[p];
    auto const& [sources, source_indices, coefficients, source_max_abs] = gradients[p];
    auto const& options = impl_->shard(part.table).options();
    require_here(stream, sources, "push", "sources");
    require_here(stream, source_indices, "push", "source indices");
    require_here(stream, coefficients, "push", "coefficients");
    GPUPS_REQUIRE(part.entries == 0 || sources.rows() > 0,
                  "push was given no sources for {} entries of table '{}' (each is a gradient's share): give some",
                  part.entries, options.name);
    GPUPS_REQUIRE(part.entries == 0 || sources.columns() == options.dim,
                  "the sources of table '{}' have {} columns (its rows have {}): give gradients of the row's width",
                  options.name, sources.columns(), options.dim);
    GPUPS_REQUIRE(
        coefficients.empty() || coefficients.size() >= part.entries,
        "push was given {} coefficients for {} entries of table '{}' (each entry has one): give as many, or none",
        coefficients.size(), part.entries, options.name);
    GPUPS_REQUIRE(
        source_indices.empty() || source_indices.size() >= part.entries,
        "push was given {} source indices for {} entries of table '{}' (each entry has one): give as many, or "
        "none",
        source_indices.size(), part.entries, options.name);
    std::size_t const least = !part.bags.empty() ? part.bags.size() - 1 : part.entries;
    GPUPS_REQUIRE(
        !source_indices.empty() || sources.rows() >= least,
        "push was given {} sources for {} entries or bags of table '{}' (each has its own where numbers are not "
        "given): give as many",
        sources.rows(), least, options.name);
    kernels::SumGradients const sum{
        .offsets = part.offsets,
        .order = part.order,
        .sources = source_indices.empty() ? part.bag_of : source_indices.slice(0, part.entries),
        .source_rows = sources,
        .coefficients = coefficients.slice(0, coefficients.empty() ? 0 : part.entries),
        .grid_log2 = options.grid_log2,
        .sums = {nullptr, part.rows, options.dim, row_stride(options.dim), stream.device()},
        .bad_row = impl.bad_rows.view().slice(p, 1)};
    sums.push_back(sum);
  }

  check_source_numbers(stream, impl, gradients, impl_->engine_.tables());

  // All parts or none: a step that is rejected changes nothing.
  bool at_once = true;
  for (std::size_t p = 0; at_once && p < sums.size(); ++p) {
    at_once = impl_->can_fuse_update(stream, batch, p, gradients[p].source_max_abs, sums[p]);
  }
  for (std::size_t p = 0; p < sums.size(); ++p) {
    auto& part = impl.parts[p];
    part.applied = at_once;
    if (at_once) {
      impl_->shard(part.table)
          .sum_and_apply(stream, part.ids, sums[p], batch.clock(), batch.samples(), sums[p].bad_row);
    } else {
      part.sums = Matrix<std::int64_t>(stream.device(), part.rows, sums[p].sums.columns());
      sums[p].sums = part.sums;
      kernels::sum_gradients(stream, sums[p]);
    }
  }
  impl.push_event = stream.record();
  impl.pushed = true;
  impl_->pushed_ = batch.impl();
}

void Store::advance_clock(std::uint32_t signal) {
  auto& engine = impl_->engine();
  cache::BatchPtr batch;
  {
    std::lock_guard lock(impl_->mutex_);
    GPUPS_REQUIRE(!impl_->awaits_lookup(),
                  "the step {} ends while a look-up is under way (its rows would have the step's updates or not, as it "
                  "happens): call wait_lookup before",
                  number(impl_->clock_));
    GPUPS_REQUIRE(
        impl_->pushed_ != nullptr || !impl_->prepared_.contains(impl_->clock_),
        "the step {} ends without a push of the batch that was prepared for it (its owners wait for it): push "
        "it, with empty gradients if need be",
        number(impl_->clock_));
    batch.swap(impl_->pushed_);
    impl_->prepared_.erase(impl_->clock_);
    impl_->clock_ = impl_->clock_ + 1;
    engine.end_step(std::move(batch), signal);
  }
}

void Store::wait_applied() {
  auto const begin = std::chrono::steady_clock::now();
  auto& engine = impl_->engine();
  engine.wait([&] { return engine.complete() >= clock(); });
  std::chrono::duration<double> const waited = std::chrono::steady_clock::now() - begin;
  {
    std::lock_guard lock(impl_->mutex_);
    impl_->wait_seconds_ += waited.count();
  }
  engine.throw_if_rejected();
}

void Store::flush_residuals() { impl_->engine().flush_residuals(); }

void Store::throw_if_failed() { impl_->engine().throw_if_failed(); }

std::uint32_t Store::signals() const { return impl_->engine_.signals(); }

}  // namespace gpups
