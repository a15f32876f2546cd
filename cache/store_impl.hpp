// SPDX-License-Identifier: Apache-2.0
// What is inside a Store.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "cache/engine.hpp"
#include "gpups/store.hpp"

namespace gpups {

class Store::Impl {
 public:
  Impl(Group const& group, StoreOptions const& options);

  // The engine takes part in the protocol from the first call that needs it on; by then the tables are known.
  cache::Engine& engine();

  // Throws Error for a table that is not there.
  cache::TableShard& shard(TableId table);

  // Throw Error for a batch that is empty or another store's, for a stream on another device, and, where a call reads
  // or changes rows, within a step: on some ranks the rows may have its updates already.
  void require_own(PreparedBatch const& batch, char const* call) const;
  void require_stream(Stream const& stream, char const* call) const;
  void require_between_steps(char const* call) const;

  // Whether a look-up still reads rows, and whether wait_lookup() can still be called for one.
  bool reads_rows() const;
  bool awaits_lookup() const;

  // A collective in which rows end: calls `check` and then `change` on every rank, and frees the rows' places. check:
  // says what the call is, which must be the same on all. What any rank throws, all throw. Returns the sum of what
  // `change` returned.
  std::uint64_t wait_remove_rows(std::function<std::string()> const& check,
                                 std::function<std::uint64_t()> const& change);

  // Where it can, sum.contribution_max is known after it.
  bool can_fuse_update(Stream& stream, PreparedBatch const& batch, std::size_t part,
                       std::optional<float> source_max_abs, kernels::SumGradients& sum);

  Group group_;
  StoreOptions options_;
  std::shared_ptr<void const> const identity_ = std::make_shared<char>();  // of this store, for its batches
  Stream main_stream_;
  std::mutex mutex_;  // guards what follows up to the clock, and the start of the engine
  std::uint64_t entries_ = 0, distinct_keys_ = 0, remote_keys_ = 0;
  Clock clock_{};
  bool removing_rows_ = false;  // rows are going: no batch may name any
  std::set<Clock> prepared_;    // steps from clock_ on that have a batch
  cache::BatchPtr pushed_;      // the batch of this step, once pushed
  double wait_seconds_ = 0;
  std::size_t lookups_ = 0;  // that have begun
  struct Begun {
    std::weak_ptr<LookupRequest::Impl> lookup;
    std::weak_ptr<cache::RowRequest> request;
  };
  std::vector<Begun> begun_;                 // look-ups whose rows are not written yet
  MatrixView<float const> checked_sources_;  // of this push, and the largest absolute value in them
  float source_max_abs_ = 0;
  cache::Engine engine_;
};

}  // namespace gpups
