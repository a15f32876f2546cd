// SPDX-License-Identifier: Apache-2.0
// Rows of any owner, read and set between steps by requests to their owners.
#include <algorithm>

#include "cache/store_impl.hpp"
#include "kernels/check.hpp"
#include "kernels/permute_rows.hpp"
#include "kernels/require_memory.hpp"

namespace gpups {
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
  kernels::require_memory(out, "lookup", "rows");
  kernels::require_memory(found, "lookup", "marks");
  GPUPS_REQUIRE(impl_->lookups_ < kLookupsMax,
                "{} look-ups are under way (each takes memory on all ranks): wait for one before the next is begun",
                kLookupsMax);
  auto lookup = std::make_shared<Lookup::Impl>();
  lookup->request =
      cache::make_request(stream, cache::RowRequest::Kind::kLookup, table, keys, dim, ranks(), lookup->positions);
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
  engine.allow(cache::RowRequest::Kind::kAssign);
  auto const all = wait_gather(announced ? "announced" : "");
  bool const allowed = std::all_of(all.begin(), all.end(), [](auto const& one) { return one.empty(); });
  if (!allowed) engine.allow({});
  GPUPS_REQUIRE(allowed,
                "assign was called when a rank had prepared a batch for step {} (its values may already be under way): "
                "assign before the step's batch is prepared",
                number(clock()));
  auto const& options = impl_->shard(table).options();
  GPUPS_REQUIRE(values.rows() >= keys.size() && (keys.empty() || values.columns() == options.dim),
                "assign was given ({}, {}) values for {} keys of dim {} (each key gets a row): give as many",
                values.rows(), values.columns(), keys.size(), options.dim);
  kernels::require_memory(values, "assign", "rows");
  Array<std::uint32_t> positions;
  auto const request =
      cache::make_request(stream, cache::RowRequest::Kind::kAssign, table, keys, options.dim, ranks(), positions);
  GPUPS_REQUIRE(request->values.rows() == keys.size(),
                "assign was given {} keys of which {} are distinct (a row has one "
                "value): give each key once",
                keys.size(), request->values.rows());
  kernels::put_rows(stream, {.from = values, .positions = positions, .to = request->values});
  stream.wait();
  engine.begin_rows(request);
  engine.wait_rows(*request);
  wait_barrier();
  engine.allow({});
}

}  // namespace gpups
