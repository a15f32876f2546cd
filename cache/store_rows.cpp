// SPDX-License-Identifier: Apache-2.0
// What ranks do between steps: collectives, reading and setting rows, hashes, checkpoints.
#include <algorithm>

#include "cache/manifest.hpp"
#include "cache/saving.hpp"
#include "cache/store_impl.hpp"
#include "kernels/check.hpp"
#include "kernels/hash.hpp"
#include "kernels/permute_rows.hpp"
#include "kernels/unique_keys.hpp"

namespace gpups {
namespace {

constexpr std::uint32_t kScanRows = 16384;  // in one call of scan's visitor

}  // namespace

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

// Below this, to find keys that repeat takes longer than to read their rows twice.
constexpr std::size_t kFewKeys = 2048;

// Groups keys by owner without looking for those that repeat. On the host.
void group_by_owner(View<Key const> keys, View<std::uint32_t> positions, cache::RowRequest& request) {
  auto const ranks = static_cast<std::uint32_t>(request.owners.size() - 1);
  auto& first = request.owners;
  for (Key const key : keys) ++first[kernels::home_of(key, ranks) + 1];
  for (std::uint32_t q = 0; q < ranks; ++q) first[q + 1] += first[q];
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    positions[i] = next[kernels::home_of(keys[i], ranks)]++;
    request.keys[positions[i]] = keys[i];
  }
}

// Keys by owner, and the place of each given key among them. distinct: each is there once; else some may repeat.
std::shared_ptr<cache::RowRequest> make_request(Stream& stream, TableId table, View<Key const> keys, int ranks,
                                                std::size_t dim, bool distinct, Array<std::uint32_t>& positions) {
  GPUPS_REQUIRE(keys.size() <= kernels::kUniqueKeysMax,
                "{} keys are read or set at once (the most is {}): do it in parts", keys.size(),
                kernels::kUniqueKeysMax);
  GPUPS_REQUIRE(keys.empty() || keys.device() == stream.device(),
                "keys are on {} and the stream is on {} (they are read there): copy them first",
                to_string(keys.device()), to_string(stream.device()));
  auto request = std::make_shared<cache::RowRequest>();
  request->table = table;
  request->owners.resize(static_cast<std::size_t>(ranks) + 1);
  request->keys = Array<Key>(stream.device(), keys.size());
  positions = Array<std::uint32_t>(stream.device(), keys.size());
  if (!distinct && stream.device().is_host() && keys.size() <= kFewKeys) {
    group_by_owner(keys, positions, *request);
  } else {
    kernels::wait_unique_keys(stream, {.keys = keys,
                                       .homes = static_cast<std::uint32_t>(ranks),
                                       .unique = request->keys,
                                       .positions = positions,
                                       .home_offsets = request->owners});
  }
  request->values = Matrix<float>(stream.device(), request->owners.back(), dim);
  return request;
}

}  // namespace

struct Lookup::Impl {
  std::shared_ptr<cache::RowRequest> request;
  Array<std::uint32_t> positions;
  MatrixView<float> out;
  View<std::uint8_t> found;
};

void Store::lookup(Stream& stream, TableId table, View<Key const> keys, MatrixView<float> out,
                   View<std::uint8_t> found) {
  wait_lookup(stream, begin_lookup(stream, table, keys, out, found));
}

Lookup Store::begin_lookup(Stream& stream, TableId table, View<Key const> keys, MatrixView<float> out,
                           View<std::uint8_t> found) {
  auto& engine = impl_->engine();
  wait_flush();
  auto const dim = impl_->shard(table).dim();
  GPUPS_REQUIRE(
      out.rows() >= keys.size() && out.columns() == dim && (found.empty() || found.size() >= keys.size()),
      "lookup was given room for ({}, {}) values and {} marks for {} keys of dim {}: give as much as there are "
      "keys",
      out.rows(), out.columns(), found.size(), keys.size(), dim);
  GPUPS_REQUIRE(impl_->lookups_ < kLookupsMax,
                "{} look-ups are under way (each takes memory on all ranks): wait for one before the next is begun",
                kLookupsMax);
  auto lookup = std::make_shared<Lookup::Impl>();
  lookup->request = make_request(stream, table, keys, ranks(), dim, false, lookup->positions);
  lookup->request->kind = cache::RowRequest::Kind::kLookup;
  lookup->request->found = Array<std::uint8_t>(stream.device(), lookup->request->values.rows());
  lookup->out = out;
  lookup->found = found;
  engine.begin_rows(lookup->request);
  ++impl_->lookups_;
  return Lookup(std::move(lookup));
}

void Store::wait_lookup(Stream& stream, Lookup const& lookup) {
  auto const impl = lookup.impl();
  GPUPS_REQUIRE(impl != nullptr && impl->request != nullptr,
                "wait_lookup was given a look-up that is over (its rows have been written): begin another");
  impl_->engine().wait_rows(*impl->request);
  --impl_->lookups_;
  auto const request = std::move(impl->request);
  kernels::take_rows(stream, {.from = request->values,
                              .positions = impl->positions,
                              .to = impl->out,
                              .flags_from = request->found,
                              .flags_to = impl->found});
  stream.wait();
}

void Store::assign(Stream& stream, TableId table, View<Key const> keys, MatrixView<float const> values) {
  auto& engine = impl_->engine();
  wait_flush();
  bool announced = false;
  {
    std::lock_guard lock(impl_->mutex_);
    announced = impl_->prepared_.contains(clock());
  }
  engine.allow_assign(true);
  auto const all = wait_gather(announced ? "announced" : "");
  bool const allowed = std::all_of(all.begin(), all.end(), [](auto const& one) { return one.empty(); });
  if (!allowed) engine.allow_assign(false);
  GPUPS_REQUIRE(allowed,
                "assign was called when a rank had prepared a batch for step {} (its values may already be under way): "
                "assign before the step's batch is prepared",
                number(clock()));
  auto const& options = impl_->shard(table).options();
  GPUPS_REQUIRE(values.rows() >= keys.size() && (keys.empty() || values.columns() == options.dim),
                "assign was given ({}, {}) values for {} keys of dim {} (each key gets a row): give as many",
                values.rows(), values.columns(), keys.size(), options.dim);
  Array<std::uint32_t> positions;
  auto const request = make_request(stream, table, keys, ranks(), options.dim, true, positions);
  GPUPS_REQUIRE(request->values.rows() == keys.size(),
                "assign was given {} keys of which {} are distinct (a row has one "
                "value): give each key once",
                keys.size(), request->values.rows());
  request->kind = cache::RowRequest::Kind::kAssign;
  kernels::put_rows(stream, {.from = values, .positions = positions, .to = request->values});
  stream.wait();
  engine.begin_rows(request);
  engine.wait_rows(*request);
  wait_barrier();
  engine.allow_assign(false);
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

}  // namespace gpups
