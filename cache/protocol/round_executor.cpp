// SPDX-License-Identifier: Apache-2.0
// RoundExecutor: announces batches, and marks them as ready when their values have arrived.
#include "cache/protocol/round_executor.hpp"

#include <fmt/core.h>

#include "cache/protocol/countdown_callback.hpp"
#include "gpups/error.hpp"
#include "kernels/check.hpp"

namespace gpups::cache {

RoundExecutor::RoundExecutor(Rank me, int ranks, Stream& stream, StoreMessenger& messenger, Round& round,
                             std::vector<std::unique_ptr<TableShard>>& tables)
    : me_(me),
      ranks_(ranks),
      stream_(stream),
      on_host_(stream.device().is_host() ? stream.sibling() : Stream(Device::host(), 1)),
      messenger_(messenger),
      round_(round),
      tables_(tables) {}

void RoundExecutor::throw_peer_error(Rank peer, std::string const& what) const {
  throw PeerError(peer, fmt::format("rank {} {} (rank {} cannot continue): check that all ranks run the same "
                                    "program and configuration",
                                    number(peer), what, number(me_)));
}

void RoundExecutor::announce(BatchPtr const& batch) {
  std::size_t missing = 0;
  std::vector<TableShard::ShardKeys> mine;
  for (auto& part : batch->parts) {
    auto& shard = *tables_[number(part.table)];
    part.ids = Array<std::uint32_t>(stream_.device(), part.owned_by(me_));
    mine.push_back({&shard, part.keys_of(me_), part.ids});
    part.remote_positions = Array<std::uint32_t>(stream_.device(), part.rows - part.owned_by(me_));
    for (int q = 0; q < ranks_; ++q) {
      Rank const owner{static_cast<std::uint32_t>(q)};
      if (owner != me_ && part.owned_by(owner) > 0) ++missing;
    }
  }
  TableShard::wait_resolve(stream_, mine);
  auto [place, added] = batches_.emplace(batch->clock, PendingBatch{.batch = batch, .missing = missing});
  GPUPS_ASSERT(added);
  if (missing > 0 && batch->clock <= round_.next_in()) {
    fetch_late(place->second);
  } else {
    for (auto const owner : owners_of(*batch)) encode_intent(owner, *batch, false, outgoing_[owner]);
  }
  check_ready(batch->clock);
}

void RoundExecutor::check_ready(Clock clock) {
  auto const found = batches_.find(clock);
  if (found == batches_.end() || found->second.missing > 0) return;
  if (round_.clock() != clock || round_.phase() != Round::Phase::kTraining) return;
  auto& batch = *found->second.batch;
  batch.ready_event = stream_.record();
  batch.ready = true;
  begin_round();  // its step may have ended already
}

std::vector<Rank> RoundExecutor::pending_peers() const {
  auto const found = batches_.find(round_.clock());
  if (found == batches_.end() || found->second.missing == 0) return {};
  return owners_of(*found->second.batch);
}

}  // namespace gpups::cache
