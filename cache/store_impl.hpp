// SPDX-License-Identifier: Apache-2.0
// What is inside a Store.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>

#include "cache/engine.hpp"
#include "gpups/store.hpp"

namespace gpups {

class Store::Impl {
 public:
  Impl(Group const& group, StoreOptions const& options);

  // The engine starts to turn with the first call that needs it; by then the tables are known.
  cache::Engine& engine();

  // Throws Error for a table that is not there.
  cache::TableShard& shard(TableId table);

  bool can_apply_at_once(Stream& stream, Prepared const& batch, std::size_t part, kernels::SumGradients const& sum);

  StoreOptions options_;
  Stream main_stream_;
  std::mutex mutex_;  // guards what follows up to the clock, and the start of the engine
  std::uint64_t entries_ = 0, distinct_keys_ = 0, remote_keys_ = 0;
  Clock clock_{};
  std::set<Clock> prepared_;  // steps from clock_ on that have a batch
  cache::BatchPtr pushed_;    // the batch of this step, once pushed
  double wait_seconds_ = 0;
  std::size_t lookups_ = 0;                  // that have begun
  MatrixView<float const> checked_sources_;  // of this push, and the largest absolute value in them
  float source_max_abs_ = 0;
  cache::Engine engine_;
};

}  // namespace gpups
