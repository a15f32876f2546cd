// SPDX-License-Identifier: Apache-2.0
// The store's channel of the group's progress engine: the rounds, the requests outside of rounds, and the calls with
// which the store's threads start them and wait for them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/protocol/requests/request_handler.hpp"
#include "cache/protocol/round/round_timer.hpp"
#include "cache/protocol/round_executor.hpp"
#include "cache/protocol/schema_check.hpp"
#include "comm/group/group_impl.hpp"
#include "comm/progress/progress_engine.hpp"
#include "gpups/store.hpp"

namespace gpups::cache {

// Connects the threads of a Store with its protocol. Functions before the comment "for the thread that makes progress"
// may be called by any thread, unless their comment restricts it: they post tasks to the group's progress engine and
// wait for results. The protocol itself (Round, RoundExecutor, RequestHandler) is used in progress() only.
class Engine final : public comm::Channel {
 public:
  // stream: for all work of the protocol. Throws Error if the membership has had a Store before.
  Engine(Group const& group, Stream const& stream, double wait_timeout_s);
  // Blocks until this rank has sent everything that other ranks wait for; then informs them that its Store has ended.
  // During stack unwinding it abandons the protocol instead and does not block.
  ~Engine() override;

  Rank rank() const { return me_; }
  int ranks() const { return ranks_; }

  // The list must be complete before start(). Afterwards tables change in progress() only.
  std::vector<std::unique_ptr<TableShard>>& tables() { return tables_; }
  // Starts the protocol at step `first`: allocates the tables, sends their options to all ranks, and opens the channel.
  // Call it once. A rank with another seed or other tables causes a PeerError.
  void start(Clock first, StoreSchema const& schema, KeyFormat keys);
  bool started() const { return started_; }
  // Returns when rows move in a store with this schema.
  PlacementRules rules_of(StoreSchema const& schema) const;
  // Returns whether this rank sends plain keys to another.
  bool sends_plain_keys(Rank to, KeyFormat keys) const {
    return keys == KeyFormat::kPlain || (keys == KeyFormat::kAuto && group_.impl().has_fast_link(to, stream_.device()));
  }
  // Where rows of this home are. For use in progress() only.
  OwnerDirectories& placement() { return placement_; }

  // Runs `task` in progress() and blocks until it is done. Throws what `task` throws, and the protocol continues.
  void wait_invoke(std::function<void(Stream&)> const& task);
  // Blocks until done() returns true. Throws a failure of the protocol, and PeerError after wait_timeout_s seconds
  // without progress. done() is called often, so it must be cheap.
  void wait(std::function<bool()> const& done) { progress_.wait(done, limit_); }
  // Throws the failure of the protocol, if there is one. Does not block.
  void throw_if_failed() { progress_.throw_if_failed(); }
  // Throws GradientError if a step was rejected since the last call.
  void throw_if_rejected();

  // Announces a batch: sends its intents to the owners. Does not block.
  void announce(BatchPtr batch);
  // Blocks until all rows of the batch are here. Throws as wait().
  void wait_ready(PreparedBatch::Impl const& batch);
  // Ends the step of the training thread, with its pushed batch (null: none) and its signal bits. Does not block.
  void end_step(BatchPtr batch, std::uint32_t signal);
  // For use in progress() only.
  RoundExecutor& executor() { return executor_; }
  // See RoundExecutor::flush_residuals() and LeasedBatches::synchronize(). Do not block.
  void flush_residuals() {
    post([this] { executor_.flush_residuals(); });
  }
  void synchronize(Clock clock) {
    post([this, clock] { executor_.leased().synchronize(clock); });
  }
  // Returns the step before which all steps are complete on this rank.
  Clock complete() const { return Clock{complete_.load()}; }
  // Returns the signal bits of all ranks in the last complete step.
  std::uint32_t signals() const { return signals_.load(); }

  // A collective call of the Store, for as long as this object exists: its gathers carry the text of the call, so that
  // ranks that make different calls get a PeerError that names both. A call within another has the text of the outer.
  class CollectiveCall {
   public:
    // text: the function and the arguments that must be equal on all ranks, such as "size(table 'users')".
    CollectiveCall(Engine& engine, std::string const& text);
    ~CollectiveCall() {
      if (is_outermost_) engine_.call_.clear();
    }
    CollectiveCall(CollectiveCall const&) = delete;
    CollectiveCall& operator=(CollectiveCall const&) = delete;

   private:
    Engine& engine_;
    bool is_outermost_;
  };

  // Return the bytes of all ranks, in rank order; wait_gather_to() returns them on `root`, and empty strings elsewhere.
  // Block until all ranks have called it. Throw Error for more than 32 MiB, otherwise as wait(). REQUIRES: there is a
  // CollectiveCall. Collective.
  std::vector<std::string> wait_allgather(std::string const& mine);
  std::vector<std::string> wait_gather_to(Rank root, std::string const& mine);
  // The same without a time limit, for ranks whose work before the call may take very different times.
  std::vector<std::string> wait_allgather_forever(std::string const& mine);
  // As wait_allgather(), with other bytes for each rank: mine[q] is for rank q. Returns those that the ranks have for
  // this rank. REQUIRES: there is a CollectiveCall; mine.size() == ranks(); at most 8 * kernels::kUniqueKeysMax bytes
  // for a rank, or this rank is lost to it. Collective.
  std::vector<std::string> wait_exchange(std::vector<std::string> mine) { return gather(std::move(mine), limit_); }
  // Starts a request for rows. Does not block. The request must not be changed until wait_rows() returns.
  void begin_rows(std::shared_ptr<RowRequest> const& request);
  // Blocks until the request is done. Throws as wait().
  void wait_rows(RowRequest const& request);
  // Sets which requests of other ranks may change rows: call it with a kind before a collective that changes rows, and
  // with nullopt after it. Does not block.
  void allow_change(std::optional<RowRequest::Kind> change) {
    post([this, change] { requests_.allow_change(change); });
  }

  // Fills in the store's counters and the traffic counters.
  void write_stats(Stats& stats) const;

  // Host memory in bytes that a rank uses for each other rank, in addition to that of the tables.
  static constexpr std::size_t kBytesOfQueues = 96;  // queues of messages, and counters of collectives
  static constexpr std::size_t kBytesOfPeer = sizeof(PeerTraffic) + Round::kBytesOfPeer + kBytesOfQueues;

  // -- for the thread that makes progress --
  void progress_begins() override { times_.progress_begins(round_.phase()); }
  void received(Rank from, std::string_view body) override;
  void closed_by(Rank peer) override;
  bool progress(bool moved) override;
  bool idle() const override;
  comm::PendingPeers pending_peers() const override;
  std::string unmatched_call(Rank peer) const override { return requests_.unmatched_call(peer); }

 private:
  // Runs `task` in progress(), in the scope of the stream.
  void post(std::function<void()> task);
  std::vector<std::string> gather(std::vector<std::string> mine, comm::WaitLimit const& limit);
  void send_schema();
  void publish();
  void check_closed() const;

  Group group_;
  comm::ProgressEngine& progress_;
  Rank me_;
  int ranks_;
  comm::WaitLimit limit_;
  Stream stream_;
  StoreMessenger messenger_;
  Round round_;
  RoundTimer times_;
  std::vector<std::unique_ptr<TableShard>> tables_;
  OwnerDirectories placement_;
  RoundExecutor executor_;
  RequestHandler requests_;
  bool started_ = false;
  StoreSchema schema_;
  std::uint64_t gathers_ = 0;
  std::string call_;  // the text of the CollectiveCall; empty: there is none
  int exceptions_at_start_;

  std::mutex mutex_;                        // guards rejection_
  std::string rejection_;                   // why the last step was rejected; empty: it was not
  std::atomic<bool> closing_ = false;       // the destructor has started
  std::vector<Rank> closed_;                // ranks whose Store has ended; used in progress() only
  std::atomic<bool> any_closed_ = false;    // closed_ is not empty
  std::atomic<std::int64_t> reading_ = -1;  // the step whose rows a thread waits for
  std::atomic<std::int64_t> complete_ = 0;
  std::atomic<std::uint32_t> signals_ = 0;
  std::atomic<std::uint64_t> late_keys_ = 0, late_batches_ = 0, remote_keys_ = 0, remote_home_keys_ = 0,
                             moved_rows_ = 0, steps_ = 0, rows_reserved_ = 0, owned_rows_ = 0, index_growths_ = 0,
                             leased_keys_ = 0, leased_steps_ = 0, leased_steps_max_ = 0;
};

}  // namespace gpups::cache
