// SPDX-License-Identifier: Apache-2.0
#include "gpups/store.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>

#include "cache/engine.hpp"
#include "cache/manifest.hpp"
#include "cache/prepare.hpp"
#include "cache/saving.hpp"
#include "kernels/arena.hpp"
#include "kernels/check.hpp"
#include "kernels/gather_pooled.hpp"
#include "kernels/hash.hpp"
#include "kernels/permute_rows.hpp"
#include "kernels/sum_gradients.hpp"
#include "kernels/unique_keys.hpp"

namespace gpups {
namespace {

constexpr std::size_t kDimMax = 65536;
constexpr std::size_t kPartsMax = 4096;     // of a batch: parts are numbered with 12 bits on the wire
constexpr std::uint32_t kScanRows = 16384;  // in one call of scan's visitor

int own_threads(Group const& group, int asked) {
  if (asked > 0) return asked;
  int const all = kernels::Arena(0).threads();
  return std::max(1, all / group.impl().local_ranks);
}

}  // namespace

class Store::Impl {
 public:
  Impl(Group const& group, StoreOptions const& options)
      : options_(options),
        main_stream_(options.device, own_threads(group, options.threads)),
        engine_(group, main_stream_.sibling(), options.peer_timeout_s) {}

  // The engine starts to turn with the first call that needs it; by then the tables are known.
  cache::Engine& engine() {
    std::lock_guard lock(mutex_);
    if (!engine_.started()) engine_.start(clock_);
    return engine_;
  }

  cache::TableShard& shard(TableId table) {
    GPUPS_REQUIRE(number(table) < engine_.tables().size(), "table {} is not there (the store has {}): add it first",
                  number(table), engine_.tables().size());
    return *engine_.tables()[number(table)];
  }

  StoreOptions options_;
  Stream main_stream_;
  std::mutex mutex_;  // guards what follows up to the clock, and the start of the engine
  std::uint64_t entries_ = 0, distinct_keys_ = 0, remote_keys_ = 0;
  Clock clock_{};
  std::set<Clock> prepared_;  // steps from clock_ on that have a batch
  cache::BatchPtr pushed_;    // the batch of this step, once pushed
  double wait_seconds_ = 0;
  cache::Engine engine_;
};

Store::Store(Group group, StoreOptions const& options) : impl_(new Impl(group, options)) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;

Rank Store::rank() const { return impl_->engine_.rank(); }
int Store::ranks() const { return impl_->engine_.ranks(); }
StoreOptions const& Store::options() const { return impl_->options_; }
Stream Store::make_stream() const { return impl_->main_stream_.sibling(); }
Clock Store::clock() const { return impl_->clock_; }

TableId Store::add_table(TableOptions const& options) {
  auto& tables = impl_->engine_.tables();
  GPUPS_REQUIRE(!impl_->engine_.started(),
                "table '{}' is added to a store in use (all ranks must know all tables from "
                "the start): add tables first",
                options.name);
  GPUPS_REQUIRE(!options.name.empty(), "a table has no name (its rows' initial values depend on it): set name");
  GPUPS_REQUIRE(options.dim >= 1 && options.dim <= kDimMax, "table '{}' has dim {} (rows have 1 to {} values): set dim",
                options.name, options.dim, kDimMax);
  GPUPS_REQUIRE(options.grid_log2 >= -60 && options.grid_log2 <= 30,
                "table '{}' has grid_log2 {} (sums of 63 bits need it in -60 .. 30): use -30", options.name,
                options.grid_log2);
  for (auto const& table : tables) {
    GPUPS_REQUIRE(table->options().name != options.name,
                  "two tables are named '{}' (checkpoints tell them apart by "
                  "name): rename one",
                  options.name);
  }
  auto const share = options.expected_rows / static_cast<std::size_t>(ranks()) + 1;
  tables.push_back(std::make_unique<cache::TableShard>(impl_->options_.device, options, impl_->options_.seed, share));
  return TableId{static_cast<std::uint32_t>(tables.size() - 1)};
}

TableOptions const& Store::table(TableId table) const { return impl_->shard(table).options(); }

std::vector<MemoryLine> Store::memory_plan() const {
  std::vector<MemoryLine> plan;
  for (auto const& table : impl_->engine_.tables()) {
    auto const rows = table->options().expected_rows / static_cast<std::size_t>(ranks()) + 1;
    for (auto& line : cache::TableShard::memory_plan(table->options(), rows)) plan.push_back(std::move(line));
  }
  return plan;
}

// -- a step --

Prepared Store::prepare(Stream& stream, Clock clock, std::span<TableBatch const> tables, std::size_t samples) {
  auto& engine = impl_->engine();
  GPUPS_REQUIRE(tables.size() <= kPartsMax, "a batch has {} parts (the most is {}): put tables together", tables.size(),
                kPartsMax);
  auto batch = cache::wait_prepare(stream, clock, tables, samples, ranks(), engine.tables().size());
  {
    std::lock_guard lock(impl_->mutex_);
    GPUPS_REQUIRE(clock >= impl_->clock_,
                  "a batch is prepared for step {} (step {} is next: it would never be read): "
                  "prepare batches in advance",
                  number(clock), number(impl_->clock_));
    GPUPS_REQUIRE(impl_->prepared_.insert(clock).second,
                  "a second batch is prepared for step {} (a step reads one): put "
                  "both in one batch",
                  number(clock));
    for (auto const& part : batch->parts) {
      impl_->entries_ += part.entries;
      impl_->distinct_keys_ += part.rows;
      impl_->remote_keys_ += part.rows - part.owned_by(rank());
    }
  }
  engine.announce(batch);
  return Prepared(std::move(batch));
}

void Store::wait_ready(Prepared const& batch) {
  GPUPS_REQUIRE(batch.clock() == clock(),
                "a batch of step {} is waited for at step {} (rows are read at their own "
                "step): call advance_clock between steps",
                number(batch.clock()), number(clock()));
  auto const begin = std::chrono::steady_clock::now();
  auto& engine = impl_->engine();
  engine.wait([&] { return batch.impl()->ready.load(); });
  std::chrono::duration<double> const waited = std::chrono::steady_clock::now() - begin;
  {
    std::lock_guard lock(impl_->mutex_);
    impl_->wait_seconds_ += waited.count();
  }
  engine.throw_if_refused();
}

void Store::pull(Stream& stream, Prepared const& batch, std::span<MatrixView<float> const> rows) {
  GPUPS_REQUIRE(rows.size() == batch.parts(),
                "pull was given {} matrices for a batch of {} parts (each part has its "
                "own): give one for each",
                rows.size(), batch.parts());
  GPUPS_ASSERT(batch.impl()->ready);
  stream.after(batch.impl()->ready_event);
  for (std::size_t p = 0; p < rows.size(); ++p) {
    auto const& part = batch.impl()->parts[p];
    auto const& shard = impl_->shard(part.table);
    GPUPS_REQUIRE(
        rows[p].rows() >= part.rows && rows[p].columns() == shard.dim() && rows[p].stride() == row_stride(shard.dim()),
        "pull was given a ({}, {}) matrix for {} rows of dim {} (rows are copied whole, padding included): use "
        "gpups::Matrix of at least that size",
        rows[p].rows(), rows[p].columns(), part.rows, shard.dim());
    std::size_t const first = part.owners[number(rank())], own = part.owned_by(rank());
    shard.gather(stream, part.ids, rows[p].slice(first, own));
    copy<float>(stream, rows[p].slice(0, first).flat(), part.values.view().slice(0, first).flat());
    std::size_t const rest = part.rows - first - own;
    copy<float>(stream, rows[p].slice(first + own, rest).flat(), part.values.view().slice(first, rest).flat());
  }
}

void Store::pull_pooled(Stream& stream, Prepared const& batch, std::size_t part, Pooling pooling,
                        MatrixView<float> out) {
  auto const& pooled = batch.impl()->parts.at(part);
  GPUPS_REQUIRE(!pooled.bags.empty(),
                "part {} was prepared without offsets (they say what the bags are): prepare it "
                "with TableBatch::offsets",
                part);
  GPUPS_REQUIRE(out.rows() + 1 >= pooled.bags.size() && out.columns() == impl_->shard(pooled.table).dim(),
                "pull_pooled was given a ({}, {}) matrix for {} bags of dim {}: use one of that size", out.rows(),
                out.columns(), pooled.bags.size() - 1, impl_->shard(pooled.table).dim());
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
  }
  kernels::gather_pooled(stream, {.rows = rows,
                                  .positions = pooled.positions,
                                  .offsets = pooled.bags,
                                  .mean = pooling == Pooling::kMean,
                                  .out = out});
}

void Store::push(Stream& stream, Prepared const& batch, std::span<TableGradients const> gradients) {
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
  for (std::size_t p = 0; p < gradients.size(); ++p) {
    auto& part = impl.parts[p];
    auto const& [sources, coefficients] = gradients[p];
    auto const& options = impl_->shard(part.table).options();
    GPUPS_REQUIRE(part.entries == 0 || sources.columns() == options.dim,
                  "the sources of table '{}' have {} columns (its rows have {}): give gradients of the row's width",
                  options.name, sources.columns(), options.dim);
    GPUPS_REQUIRE(
        coefficients.empty() || coefficients.size() >= part.entries,
        "push was given {} coefficients for {} entries of table '{}' (each entry has one): give as many, or none",
        coefficients.size(), part.entries, options.name);
    part.sums = Matrix<std::int64_t>(stream.device(), part.rows, options.dim);
    part.fault = Array<std::uint32_t>(stream.device(), 1);
    memory::fill_bytes(stream, part.fault.data(), 0xFF, part.fault.bytes());
    kernels::sum_gradients(stream, {.offsets = part.offsets,
                                    .order = part.order,
                                    .sources = part.sources,
                                    .source_rows = sources,
                                    .coefficients = coefficients,
                                    .grid_log2 = options.grid_log2,
                                    .sums = part.sums,
                                    .fault = part.fault});
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
    batch.swap(impl_->pushed_);
    impl_->prepared_.erase(impl_->clock_);
    impl_->clock_ = impl_->clock_ + 1;
  }
  engine.end_step(std::move(batch), signal);
}

void Store::wait_flush() {
  auto const begin = std::chrono::steady_clock::now();
  auto& engine = impl_->engine();
  engine.wait([&] { return engine.complete() >= clock(); });
  std::chrono::duration<double> const waited = std::chrono::steady_clock::now() - begin;
  {
    std::lock_guard lock(impl_->mutex_);
    impl_->wait_seconds_ += waited.count();
  }
  engine.throw_if_refused();
}

std::uint32_t Store::signals() const { return impl_->engine_.signals(); }

// -- between steps --

std::vector<std::string> Store::wait_gather(std::string const& mine) { return impl_->engine().wait_gather(mine); }
void Store::wait_barrier() { wait_gather({}); }

void Store::wait_sum(std::span<std::int64_t> values) {
  std::string const mine(reinterpret_cast<char const*>(values.data()), values.size_bytes());
  auto const all = wait_gather(mine);
  std::vector<std::uint64_t> sums(values.size(), 0);
  for (auto const& piece : all) {
    GPUPS_REQUIRE(piece.size() == mine.size(),
                  "ranks sum {} and {} values (each must bring as many): call wait_sum with "
                  "the same number everywhere",
                  piece.size() / 8, mine.size() / 8);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      std::uint64_t value = 0;
      std::copy_n(piece.data() + i * sizeof value, sizeof value, reinterpret_cast<char*>(&value));
      sums[i] += value;  // unsigned: wraps where the sum does
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) values[i] = static_cast<std::int64_t>(sums[i]);
}

namespace {

// Distinct keys by owner, and the place of each given key among them.
std::shared_ptr<cache::RowRequest> make_request(Stream& stream, TableId table, View<Key const> keys, int ranks,
                                                std::size_t dim, Array<std::uint32_t>& positions) {
  auto request = std::make_shared<cache::RowRequest>();
  request->table = table;
  request->owners.resize(static_cast<std::size_t>(ranks) + 1);
  request->keys = Array<Key>(stream.device(), keys.size());
  positions = Array<std::uint32_t>(stream.device(), keys.size());
  kernels::wait_unique_keys(stream, {.keys = keys,
                                     .homes = static_cast<std::uint32_t>(ranks),
                                     .unique = request->keys,
                                     .positions = positions,
                                     .home_offsets = request->owners});
  request->values = Matrix<float>(stream.device(), request->owners.back(), dim);
  return request;
}

}  // namespace

void Store::lookup(Stream& stream, TableId table, View<Key const> keys, MatrixView<float> out,
                   View<std::uint8_t> found) {
  auto& engine = impl_->engine();
  wait_flush();
  auto const dim = impl_->shard(table).dim();
  GPUPS_REQUIRE(
      out.rows() >= keys.size() && out.columns() == dim && (found.empty() || found.size() >= keys.size()),
      "lookup was given room for ({}, {}) values and {} marks for {} keys of dim {}: give as much as there are "
      "keys",
      out.rows(), out.columns(), found.size(), keys.size(), dim);
  Array<std::uint32_t> positions;
  auto const request = make_request(stream, table, keys, ranks(), dim, positions);
  request->kind = cache::RowRequest::Kind::kLookup;
  request->found = Array<std::uint8_t>(stream.device(), request->values.rows());
  engine.wait_rows(request);
  kernels::take_rows(
      stream,
      {.from = request->values, .positions = positions, .to = out, .flags_from = request->found, .flags_to = found});
  stream.wait();
}

void Store::assign(Stream& stream, TableId table, View<Key const> keys, MatrixView<float const> values) {
  auto& engine = impl_->engine();
  wait_flush();
  auto const& options = impl_->shard(table).options();
  GPUPS_REQUIRE(values.rows() >= keys.size() && (keys.empty() || values.columns() == options.dim),
                "assign was given ({}, {}) values for {} keys of dim {} (each key gets a row): give as many",
                values.rows(), values.columns(), keys.size(), options.dim);
  Array<std::uint32_t> positions;
  auto const request = make_request(stream, table, keys, ranks(), options.dim, positions);
  GPUPS_REQUIRE(request->values.rows() == keys.size(),
                "assign was given {} keys of which {} are distinct (a row has one "
                "value): give each key once",
                keys.size(), request->values.rows());
  request->kind = cache::RowRequest::Kind::kAssign;
  kernels::put_rows(stream, {.from = values, .positions = positions, .to = request->values});
  stream.wait();
  engine.wait_rows(request);
  wait_barrier();
}

void Store::scan(Stream& stream, TableId table,
                 std::function<void(View<Key const>, MatrixView<float const>)> const& visit) {
  auto& engine = impl_->engine();
  wait_flush();
  auto& shard = impl_->shard(table);
  std::size_t rows = 0;
  engine.wait_run([&](Stream&) { rows = shard.rows_reserved(); });
  for (std::size_t first = 0; first < rows; first += kScanRows) {
    cache::TableShard::Piece piece;
    engine.wait_run([&](Stream& own) {
      piece = shard.wait_read(own, static_cast<std::uint32_t>(first),
                              static_cast<std::uint32_t>(std::min<std::size_t>(first + kScanRows, rows)), false);
    });
    if (piece.rows() > 0) visit(piece.keys, piece.values);
    stream.wait();
  }
}

std::size_t Store::size(TableId table) {
  auto& engine = impl_->engine();
  wait_flush();
  auto const& shard = impl_->shard(table);
  std::int64_t rows = 0;
  engine.wait_run([&](Stream& own) { rows = static_cast<std::int64_t>(shard.wait_digest(own).rows); });
  wait_sum({&rows, 1});
  return static_cast<std::size_t>(rows);
}

std::uint64_t Store::table_hash() {
  auto& engine = impl_->engine();
  wait_flush();
  std::int64_t sums[2] = {0, 0};
  engine.wait_run([&](Stream& own) {
    for (auto const& table : engine.tables()) {
      auto const digest = table->wait_digest(own);
      sums[0] = static_cast<std::int64_t>(static_cast<std::uint64_t>(sums[0]) + digest.hash);
      sums[1] += static_cast<std::int64_t>(digest.rows);
    }
  });
  wait_sum(sums);
  return kernels::mix(static_cast<std::uint64_t>(sums[0]) ^ kernels::mix(static_cast<std::uint64_t>(sums[1])));
}

void Store::save(std::filesystem::path const& folder, std::span<Blob const> blobs) {
  auto& engine = impl_->engine();
  wait_flush();
  cache::wait_save(engine, folder, blobs, clock(), impl_->options_.seed);
}

std::vector<Blob> Store::restore(std::filesystem::path const& folder) {
  {
    std::lock_guard lock(impl_->mutex_);
    GPUPS_REQUIRE(!impl_->engine_.started(),
                  "restore was called on a store in use (rows would be mixed): restore first");
    // Where a checkpoint continues is known before the protocol starts; what is wrong with it is agreed upon after.
    std::error_code error;
    if (std::filesystem::is_regular_file(folder / "manifest.json", error)) {
      try {
        impl_->clock_ = cache::read_manifest(folder).clock;
      } catch (Error const&) {  // wait_restore says it again, on all ranks
      }
    }
  }
  return cache::wait_restore(impl_->engine(), folder, impl_->options_.seed);
}

Stats Store::stats() const {
  Stats stats;
  auto const& engine = impl_->engine_;
  {
    std::lock_guard lock(impl_->mutex_);
    stats.entries = impl_->entries_;
    stats.distinct_keys = impl_->distinct_keys_;
    stats.remote_keys = impl_->remote_keys_;
    stats.wait_seconds = impl_->wait_seconds_;
  }
  stats.steps = engine.steps();
  stats.urgent_keys = engine.urgent_keys();
  stats.rows_reserved = engine.rows_reserved();
  stats.index_growths = engine.index_growths();
  stats.sent = engine.sent();
  return stats;
}

}  // namespace gpups
