// SPDX-License-Identifier: Apache-2.0
// Store::lookup(), begin_lookup(), wait_lookup() and assign().
#include <algorithm>

#include "cache/protocol/requests/collective_call.hpp"
#include "cache/store/store_impl.hpp"
#include "kernels/base/check.hpp"
#include "kernels/rows/check_rows.hpp"
#include "kernels/rows/copy_rows.hpp"
#include "kernels/runtime/memory_scope.hpp"
#include "kernels/runtime/require_memory.hpp"

namespace gpups {
namespace {

// Throws Error if a value is not finite, or out of the range of the table's data type. Waits for `stream`.
void wait_check_values(Stream& stream, TableOptions const& options, View<Key const> keys,
                       MatrixView<float const> values) {
  Array<std::uint32_t> const bad_row(stream.device(), 1);
  float const limit = kernels::largest_kept(options.value_type);
  kernels::check_values(stream, {.rows = values.slice(0, keys.size()), .limit = limit, .bad_row = bad_row});
  std::uint32_t const row = to_host(stream, bad_row.view())[0];
  if (row == kernels::kNoRow) return;
  Key const key = to_host(stream, keys.slice(row, 1))[0];
  throw Error(fmt::format(
      "assign() was called with a value for key {} of table '{}' that is not finite or has a magnitude above {}, the "
      "largest of the table's value_type (training could not continue): give finite values in this range",
      number(key), options.name, limit));
}

}  // namespace

struct LookupRequest::Impl {
  std::shared_ptr<cache::RowRequest> request;
  Array<std::uint32_t> positions;
  MatrixView<float> out;
  View<std::uint8_t> found;
  std::shared_ptr<void const> store;  // Store::Impl::identity_
};

bool Store::Impl::reads_rows() const {
  return std::any_of(begun_.begin(), begun_.end(), [](Begun const& begun) {
    auto const request = begun.request.lock();
    return request != nullptr && !request->done;
  });
}

bool Store::Impl::awaits_lookup() const {
  return std::any_of(begun_.begin(), begun_.end(),
                     [](Begun const& begun) { return !begun.lookup.expired() && !begun.request.expired(); });
}

void Store::lookup(Stream& stream, TableId table, View<Key const> keys, MatrixView<float> out,
                   View<std::uint8_t> found) {
  wait_lookup(stream, begin_lookup(stream, table, keys, out, found));
}

LookupRequest Store::begin_lookup(Stream& stream, TableId table, View<Key const> keys, MatrixView<float> out,
                                  View<std::uint8_t> found) {
  impl_->require_between_steps("begin_lookup");
  impl_->require_stream(stream, "lookup");
  kernels::MemoryScope const scope(stream);
  auto& engine = impl_->engine();
  wait_applied();
  auto const dim = impl_->shard(table).dim();
  GPUPS_REQUIRE(
      out.rows() >= keys.size() && out.columns() == dim && (found.empty() || found.size() >= keys.size()),
      "a look-up has an array of ({}, {}) values and {} found marks for {} keys of dim {} (each key needs a row and a "
      "mark): give one row of the table's dim and one mark for each key",
      out.rows(), out.columns(), found.size(), keys.size(), dim);
  kernels::require_here(stream, out, "lookup", "rows");
  kernels::require_here(stream, found, "lookup", "marks");
  GPUPS_REQUIRE(
      impl_->lookups_ < kLookupsMax,
      "{} look-ups are in flight (the maximum, because each uses memory on all ranks): wait for one before you "
      "start another",
      kLookupsMax);
  auto lookup = std::make_shared<LookupRequest::Impl>();
  lookup->request =
      cache::make_request(stream, cache::RowRequest::Kind::kLookup, table, keys, dim, 0, ranks(), lookup->positions);
  lookup->out = out;
  lookup->found = found;
  lookup->store = impl_->identity_;
  std::erase_if(impl_->begun_, [](auto const& begun) { return begun.request.expired(); });
  impl_->begun_.push_back({lookup, lookup->request});
  engine.begin_rows(lookup->request);
  ++impl_->lookups_;
  return LookupRequest(std::move(lookup));
}

void Store::wait_lookup(Stream& stream, LookupRequest const& lookup) {
  impl_->require_stream(stream, "wait_lookup");
  kernels::MemoryScope const scope(stream);
  auto const impl = lookup.impl();
  GPUPS_REQUIRE(impl != nullptr && impl->request != nullptr,
                "wait_lookup() was called with an empty look-up, or with one that was waited for before (each can be "
                "waited for once): start another");
  GPUPS_REQUIRE(
      impl->store == impl_->identity_,
      "wait_lookup() was called with a look-up of another store (its rows are sent to that store): use the store that "
      "started it");
  impl_->engine().wait_rows(*impl->request);
  --impl_->lookups_;
  auto const request = std::move(impl->request);
  kernels::gather_matrix_rows(stream, {.from = request->values,
                                       .positions = impl->positions,
                                       .to = impl->out,
                                       .flags_from = request->found,
                                       .flags_to = impl->found});
  stream.wait();
}

void Store::assign(Stream& stream, TableId table, View<Key const> keys, MatrixView<float const> values) {
  impl_->require_between_steps("assign");
  auto& engine = impl_->engine();
  cache::Engine::CollectiveCall const call(engine, impl_->call_on(table, "assign"));
  wait_applied();
  struct Allow {
    cache::Engine& engine;
    ~Allow() { engine.allow_change({}); }
  } const allow{engine};
  engine.allow_change(cache::RowRequest::Kind::kAssign);
  std::shared_ptr<cache::RowRequest> request;
  cache::wait_collective_call(engine, cache::Timeout::kDefault, [&] {
    {
      std::lock_guard lock(impl_->mutex_);
      GPUPS_REQUIRE(!impl_->prepared_.contains(impl_->clock_),
                    "assign() was called after a rank had prepared a batch for step {} (its values may have been sent "
                    "already): call it before that batch is prepared",
                    number(impl_->clock_));
    }
    impl_->require_stream(stream, "assign");
    kernels::MemoryScope const scope(stream);
    auto const& options = impl_->shard(table).options();
    GPUPS_REQUIRE(values.rows() >= keys.size() && (keys.empty() || values.columns() == options.dim),
                  "assign() was called with ({}, {}) values for {} keys of dim {} (each key needs a row): give one row "
                  "of the table's dim for each key",
                  values.rows(), values.columns(), keys.size(), options.dim);
    kernels::require_here(stream, values, "assign", "rows");
    Array<std::uint32_t> positions;
    request =
        cache::make_request(stream, cache::RowRequest::Kind::kAssign, table, keys, options.dim, 0, ranks(), positions);
    GPUPS_REQUIRE(request->values.rows() == keys.size(),
                  "assign() was called with {} keys of which {} are distinct (a row has one value): give each key once",
                  keys.size(), request->values.rows());
    if (keys.empty()) return std::string();  // then `values` may have any shape
    wait_check_values(stream, options, keys, values);
    kernels::scatter_matrix_rows(stream, {.from = values, .positions = positions, .to = request->values});
    stream.wait();
    return std::string();
  });
  engine.begin_rows(request);
  engine.wait_rows(*request);
  wait_barrier();
}

}  // namespace gpups
