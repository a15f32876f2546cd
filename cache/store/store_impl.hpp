// SPDX-License-Identifier: Apache-2.0
// The implementation of Store.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "cache/protocol/engine.hpp"
#include "gpups/store.hpp"

namespace gpups {

// The state of a Store. Functions of Store are implemented in store.cpp and store_*.cpp.
class GPUPS_HIDDEN Store::Impl {
 public:
  Impl(Group const& group, StoreOptions const& options);

  // Returns the engine. The first call starts its protocol; tables cannot be added after that.
  cache::Engine& engine();

  cache::StoreSchema schema() const;
  // See Store::rows_move().
  bool rows_move(TableId table);

  // Returns the shard of a table. Throws Error if the table does not exist.
  cache::TableShard& shard(TableId table);

  // Throw Error for a batch that is empty or of another store; for a stream on another device; and for a call between
  // push() and advance_clock(), when some rows may already have the step's updates. call: the public function.
  void require_own(PreparedBatch const& batch, char const* call) const;
  void require_stream(Stream const& stream, char const* call) const;
  void require_between_steps(char const* call) const;

  // Returns the text of a collective call for a table, such as "size(table 'users')"; see Engine::CollectiveCall.
  // arguments: the others that must be equal on all ranks.
  std::string call_on(TableId table, char const* function, std::string const& arguments = {});

  // Return true if a look-up has not read its rows yet, and if there is a look-up for which wait_lookup() can still be
  // called.
  bool reads_rows() const;
  bool awaits_lookup() const;

  // A collective in which rows of this rank are removed or move, for as long as this object exists.
  class ChangeOfRows {
   public:
    explicit ChangeOfRows(Store::Impl& store) : store_(store) {}
    ~ChangeOfRows();
    ChangeOfRows(ChangeOfRows const&) = delete;
    ChangeOfRows& operator=(ChangeOfRows const&) = delete;

    // Lets prepare() throw. Throws Error if there is a prepared batch.
    void forbid_batches();
    // Lets other ranks change rows of this rank by requests of a kind.
    void allow(cache::RowRequest::Kind kind) { store_.engine_.allow_change(kind); }

   private:
    Store::Impl& store_;
  };

  // Runs a collective that removes rows: calls `check` and then `change` on every rank, and frees the row numbers.
  // change: returns a number. Returns the sum of these over all ranks. If a function throws on any rank, all ranks
  // throw an Error with its message.
  std::uint64_t wait_remove_rows(std::function<void()> const& check, std::function<std::uint64_t()> const& change);
  // Drops the replicas of other ranks' rows; frees the numbers of rows that are only reserved. stream: of the engine.
  // REQUIRES: no rank has a prepared batch, or can prepare one.
  void drop_replicas(Stream& stream);
  void free_unused_rows(Stream& stream);
  // Returns true if ranks may have residuals of gradients of the table.
  bool wait_may_have_residuals(TableId table);
  // Drops this rank's residuals of rows that do not exist. Not collective: other ranks answer look-ups.
  void wait_drop_residuals_without_rows(TableId table);
  // Sends a request for keys of one table to their homes, and waits for the answers. make: returns the request.
  std::shared_ptr<cache::RowRequest> wait_request(std::shared_ptr<cache::RowRequest> request);

  // Called before the clock advances; see Store::flush_residuals().
  void flush_leases(Store& store);

  // Returns true if push() can update the rows of a part while it sums their gradients. Then it has set
  // sum.contribution_max.
  bool can_fuse_update(Stream& stream, PreparedBatch const& batch, std::size_t part,
                       std::optional<float> source_max_abs, kernels::SumGradients& sum);

  Group group_;
  StoreOptions options_;
  std::shared_ptr<void const> const identity_ = std::make_shared<char>();  // identifies this store in its batches
  Stream main_stream_;
  std::mutex
      mutex_;  // guards the counters, clock_, changing_rows_, prepared_, wait_seconds_, and the start of the engine
  std::uint64_t entries_ = 0, distinct_keys_ = 0;
  Clock clock_{};
  bool flushes_leases_ = false;  // flush_residuals() was called in this step
  bool changing_rows_ = false;   // erase(), expire() or localize() is in progress: prepare() throws
  std::set<Clock> prepared_;     // steps that have a prepared batch and have not ended
  cache::BatchPtr pushed_;       // the batch of this step, after push()
  double wait_seconds_ = 0;
  std::size_t lookups_ = 0;  // look-ups in flight
  // A look-up in flight.
  struct Begun {
    std::weak_ptr<LookupRequest::Impl> lookup;
    std::weak_ptr<cache::RowRequest> request;
  };
  std::vector<Begun> begun_;                 // look-ups in flight, and some that ended
  MatrixView<float const> checked_sources_;  // of the current push(): the sources that source_max_abs_ belongs to
  float source_max_abs_ = 0;
  cache::Engine engine_;
};

}  // namespace gpups
