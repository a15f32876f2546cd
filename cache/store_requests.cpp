// SPDX-License-Identifier: Apache-2.0
// Rows of any owner, read and set between steps by requests to their owners.
#include <algorithm>

#include "cache/store_impl.hpp"
#include "kernels/check.hpp"
#include "kernels/hash.hpp"
#include "kernels/permute_rows.hpp"
#include "kernels/unique_keys.hpp"

namespace gpups {
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

}  // namespace gpups
