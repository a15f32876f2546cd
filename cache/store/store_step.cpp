// SPDX-License-Identifier: Apache-2.0
// Store: the calls of a training step.
#include <algorithm>
#include <chrono>
#include <utility>

#include "cache/batch/prepared_batch.hpp"
#include "cache/store/checks.hpp"
#include "cache/store/store_impl.hpp"
#include "kernels/base/check.hpp"
#include "kernels/pool/pool.hpp"
#include "kernels/runtime/memory_scope.hpp"
#include "kernels/runtime/require_memory.hpp"
#include "kernels/update/sum_and_update.hpp"

namespace gpups {
namespace {

using kernels::require_here;

// Throws Error if rows of the batch cannot be read: before wait_ready(), after push(), or in another step.
void require_readable(PreparedBatch const& batch, Clock now, char const* call) {
  GPUPS_REQUIRE(batch.impl()->ready,
                "{}() was called before the rows of step {} had arrived (they cannot be read yet): call wait_ready() "
                "first",
                call, number(batch.clock()));
  GPUPS_REQUIRE(
      batch.clock() == now && !batch.impl()->pushed,
      "{}() was called for the batch of step {} after its push, or in another step (its rows may have changed): "
      "call it between wait_ready() and push()",
      call, number(batch.clock()));
}

}  // namespace

void Store::Impl::require_own(PreparedBatch const& batch, char const* call) const {
  cache::require_batch(batch, call);
  GPUPS_REQUIRE(
      batch.impl()->pattern->store == identity_,
      "{}() was called with a batch of another store (its rows are in that store): use the store that prepared it",
      call);
}

void Store::Impl::require_stream(Stream const& stream, char const* call) const {
  GPUPS_REQUIRE(stream.device() == options_.device,
                "{}() was called with a stream on {}, and the store is on {} (its rows are there): use "
                "Store::make_stream()",
                call, to_string(stream.device()), to_string(options_.device));
}

void Store::Impl::require_between_steps(char const* call) const {
  GPUPS_REQUIRE(
      pushed_ == nullptr,
      "{}() was called between push() and advance_clock() of step {} (some rows may have the step's updates, and "
      "others not): call it after advance_clock()",
      call, number(clock_));
}

PreparedBatch Store::prepare(Stream& stream, Clock clock, std::span<TableBatch const> tables, std::size_t samples) {
  GPUPS_REQUIRE(tables.size() <= cache::kPartsMax, "a batch has {} parts (the maximum is {}): use fewer, larger tables",
                tables.size(), cache::kPartsMax);
  GPUPS_REQUIRE(
      samples <= cache::kSamplesMax,
      "prepare() was called with {} samples (the maximum is {}): give the number of this rank's samples in the batch",
      samples, cache::kSamplesMax);
  impl_->require_stream(stream, "prepare");
  kernels::MemoryScope const scope(stream);
  std::size_t const table_count = impl_->engine().tables().size();
  auto const pattern = cache::wait_make_pattern(stream, tables, samples, ranks(), table_count);
  pattern->store = impl_->identity_;
  return prepare(BatchPattern(pattern), clock);
}

PreparedBatch Store::prepare(BatchPattern const& pattern, Clock clock) {
  GPUPS_REQUIRE(pattern.impl() != nullptr,
                "a batch is prepared for step {} from an empty pattern (a pattern has the keys): use the pattern of a "
                "batch that this store prepared",
                number(clock));
  GPUPS_REQUIRE(pattern.impl()->store == impl_->identity_,
                "a batch is prepared for step {} from the pattern of another store (its keys may have other owners, "
                "tables or devices): use the pattern of a batch that this store prepared",
                number(clock));
  auto& engine = impl_->engine();
  auto batch = std::make_shared<PreparedBatch::Impl>(pattern.impl(), clock);
  {
    std::lock_guard lock(impl_->mutex_);
    GPUPS_REQUIRE(clock >= impl_->clock_,
                  "a batch is prepared for step {}, but the next step is {} (the batch would never be read): prepare "
                  "batches in advance",
                  number(clock), number(impl_->clock_));
    GPUPS_REQUIRE(!impl_->changing_rows_,
                  "a batch is prepared for step {} while erase(), expire() or localize() is in progress (its rows "
                  "could be erased "
                  "or move): prepare it when the call has returned",
                  number(clock));
    GPUPS_REQUIRE(clock - impl_->clock_ <= cache::kStepsAheadMax / 2,
                  "a batch is prepared for step {} at step {} (the maximum is {} steps ahead): prepare it later",
                  number(clock), number(impl_->clock_), cache::kStepsAheadMax / 2);
    GPUPS_REQUIRE(impl_->prepared_.insert(clock).second,
                  "a second batch is prepared for step {} (a rank has one batch per step): put both in one batch",
                  number(clock));
    for (auto const& part : batch->parts) {
      impl_->entries_ += part.entries;
      impl_->distinct_keys_ += part.rows;
    }
    engine.announce(batch);  // with the lock, so that the clock does not advance first
  }
  return PreparedBatch(std::move(batch));
}

void Store::wait_ready(PreparedBatch const& batch) {
  impl_->require_own(batch, "wait_ready");
  GPUPS_REQUIRE(
      batch.clock() == clock(),
      "wait_ready() was called with a batch of step {} at step {} (rows are read in the step of their batch): "
      "call advance_clock() between steps",
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
  kernels::MemoryScope const scope(stream);
  GPUPS_REQUIRE(rows.size() == batch.parts(),
                "pull() was called with {} matrices for a batch of {} parts (each part needs one): give one matrix for "
                "each part",
                rows.size(), batch.parts());
  require_readable(batch, clock(), "pull");
  stream.after(batch.impl()->ready_event);
  std::vector<cache::TableShard::ShardRows> parts;
  for (std::size_t p = 0; p < rows.size(); ++p) {
    auto const& part = batch.impl()->parts[p];
    auto const& shard = impl_->shard(part.table);
    GPUPS_REQUIRE(
        rows[p].rows() >= part.rows && rows[p].columns() == shard.dim() && rows[p].stride() == row_stride(shard.dim()),
        "pull() was called with a ({}, {}) matrix of stride {} for {} rows of dim {} (rows are copied with their "
        "padding): use a gpups::Matrix of at least that size",
        rows[p].rows(), rows[p].columns(), rows[p].stride(), part.rows, shard.dim());
    require_here(stream, rows[p], "pull", "rows");
    parts.push_back({&shard, part.ids, rows[p]});
  }
  cache::TableShard::gather(stream, parts);
  batch.impl()->read_events.push_back(stream.record());
}

void Store::pull_pooled(Stream& stream, PreparedBatch const& batch, std::size_t part, Pooling pooling,
                        MatrixView<float> out, View<float const> coefficients) {
  impl_->require_own(batch, "pull_pooled");
  impl_->require_stream(stream, "pull_pooled");
  kernels::MemoryScope const scope(stream);
  cache::require_part(part, batch.parts(), "pull_pooled");
  GPUPS_REQUIRE(pooling == Pooling::kSum || pooling == Pooling::kMean,
                "pull_pooled() was called with the pooling number {} (there is no such pooling): use an enumerator of "
                "Pooling",
                static_cast<int>(pooling));
  require_readable(batch, clock(), "pull_pooled");
  require_here(stream, out, "pull_pooled", "rows");
  require_here(stream, coefficients, "pull_pooled", "coefficients");
  auto const& pooled = batch.impl()->parts[part];
  GPUPS_REQUIRE(!pooled.bags.empty(),
                "pull_pooled() was called for part {}, which has no bag offsets (they divide the entries into bags): "
                "prepare it with TableBatch::offsets",
                part);
  GPUPS_REQUIRE(out.rows() + 1 >= pooled.bags.size() && out.columns() == impl_->shard(pooled.table).dim() &&
                    out.stride() == row_stride(out.columns()),
                "pull_pooled() was called with a ({}, {}) matrix for {} bags of dim {} (rows are written with their "
                "padding): use a gpups::Matrix of that size",
                out.rows(), out.columns(), pooled.bags.size() - 1, impl_->shard(pooled.table).dim());
  GPUPS_REQUIRE(coefficients.empty() || coefficients.size() == pooled.entries,
                "pull_pooled() was called with {} coefficients for {} entries (each entry needs one): give one for "
                "each entry, or none",
                coefficients.size(), pooled.entries);
  stream.after(batch.impl()->ready_event);
  kernels::PooledTable const table{.rows = impl_->shard(pooled.table).values(),
                                   .ids = pooled.ids,
                                   .positions = pooled.positions,
                                   .offsets = pooled.bags,
                                   .weights = coefficients,
                                   .mean = pooling == Pooling::kMean,
                                   .out = out};
  kernels::find_pooled(stream, {{&table, 1}});
  batch.impl()->parts[part].pooled_by_mean = pooling == Pooling::kMean;
  batch.impl()->read_events.push_back(stream.record());
}

// In a group of one rank, rows can be updated while their gradients are summed. A rejected step must not change any
// row, so this is only possible if the largest magnitudes show that no sum can overflow or be infinite. It is not
// possible before the rows have their numbers, while a look-up reads rows, while restored residuals wait, and if two
// parts use the same table.
bool Store::Impl::can_fuse_update(Stream& stream, PreparedBatch const& batch, std::size_t part,
                                  std::optional<float> source_max_abs, kernels::SumGradients& sum) {
  auto const& parts = batch.impl()->parts;
  auto const same_table = [&](auto const& other) { return other.table == parts[part].table; };
  if (engine_.ranks() > 1 || !kernels::can_sum_and_update(stream.device(), sum.sums.columns())) return false;
  if (!batch.impl()->ready || reads_rows() || engine_.executor().has_restored()) return false;
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
  kernels::MemoryScope const scope(stream);
  auto& impl = *batch.impl();
  GPUPS_REQUIRE(batch.clock() == clock(),
                "push() was called with a batch of step {} at step {} (gradients belong to the step of their batch): "
                "call advance_clock() between steps",
                number(batch.clock()), number(clock()));
  GPUPS_REQUIRE(!impl.pushed,
                "push() was called twice for the batch of step {} (a batch is pushed once): add up its gradients first",
                number(batch.clock()));
  GPUPS_REQUIRE(gradients.size() == batch.parts(),
                "push() was called with gradients of {} parts for a batch of {} parts (each part needs its own): give "
                "one element for each part",
                gradients.size(), batch.parts());
  impl.bad_rows = Array<std::uint32_t>(stream.device(), gradients.size());
  memory::fill_bytes(stream, impl.bad_rows.data(), 0xFF, impl.bad_rows.bytes());  // kNoRow
  std::vector<kernels::SumGradients> sums;
  for (std::size_t p = 0; p < gradients.size(); ++p) {
    auto& part = impl.parts[p];
    auto const& [sources, source_indices, coefficients, source_max_abs] = gradients[p];
    auto const& options = impl_->shard(part.table).options();
    cache::check_gradients(stream, part, options, gradients[p]);
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

  cache::check_source_numbers(stream, impl, gradients, impl_->engine_.tables());

  // Either all parts are updated at once or none, because a rejected step must not change any row.
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
    }
  }
  if (!at_once) kernels::sum_gradients(stream, sums);
  impl.push_event = stream.record();
  impl.pushed = true;
  impl_->pushed_ = batch.impl();
}

void Store::advance_clock(std::uint32_t signal) {
  auto& engine = impl_->engine();
  impl_->flush_leases(*this);
  cache::BatchPtr batch;
  {
    std::lock_guard lock(impl_->mutex_);
    GPUPS_REQUIRE(!impl_->awaits_lookup(),
                  "advance_clock() was called at step {} while a look-up is in flight (its rows could have the step's "
                  "updates or not): call wait_lookup() before",
                  number(impl_->clock_));
    GPUPS_REQUIRE(
        impl_->pushed_ != nullptr || !impl_->prepared_.contains(impl_->clock_),
        "advance_clock() was called at step {} before the push of the batch that is prepared for it (the owners of its "
        "rows wait for its gradients): call push(), if necessary with gradients of 0",
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

void Store::synchronize(Clock clock) {
  auto& engine = impl_->engine();
  if (impl_->options_.staleness == 0 || ranks() == 1) return;
  std::lock_guard lock(impl_->mutex_);
  GPUPS_REQUIRE(
      clock >= impl_->clock_ && !impl_->prepared_.contains(clock),
      "synchronize() was called for step {} at step {}, when its batch was prepared or its step had ended (the "
      "batch may read replicas as they are): call it before prepare()",
      number(clock), number(impl_->clock_));
  engine.synchronize(clock);
}

void Store::flush_residuals() {
  impl_->engine().flush_residuals();
  impl_->flushes_leases_ = impl_->options_.staleness > 0 && ranks() > 1;
}

// Lets a step without a batch send the gradients that wait, if flush_residuals() was called.
void Store::Impl::flush_leases(Store& store) {
  if (!std::exchange(flushes_leases_, false)) return;
  {
    std::lock_guard lock(mutex_);
    if (prepared_.contains(clock_)) return;
  }
  store.synchronize(clock_);
  store.push(main_stream_, store.prepare(main_stream_, clock_, {}, 0), {});
}

void Store::throw_if_failed() { impl_->engine().throw_if_failed(); }

std::uint32_t Store::signals() const { return impl_->engine_.signals(); }

}  // namespace gpups
