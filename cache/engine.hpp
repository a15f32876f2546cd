// SPDX-License-Identifier: Apache-2.0
// The store's channel of a rank's messages: the round and its exchange, requests outside of it, and the store's ways to
// wait for them. Its group's progress engine does what is posted, and calls the channel.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/request_handler.hpp"
#include "cache/round_executor.hpp"
#include "cache/round_timer.hpp"
#include "comm/group/group_impl.hpp"
#include "comm/progress/progress_engine.hpp"
#include "gpups/store.hpp"

namespace gpups::cache {

class Engine final : public comm::Channel {
 public:
  // Throws Error where the membership has had a Store already.
  Engine(Group const& group, Stream const& stream, double wait_timeout_s);
  // Blocks until this rank owes the others nothing; then they learn that its Store has ended.
  ~Engine() override;

  Rank rank() const { return me_; }
  int ranks() const { return ranks_; }

  // The list is complete before turning starts; what changes in a table afterwards changes in turns only.
  std::vector<std::unique_ptr<TableShard>>& tables() { return tables_; }
  // Takes part in the protocol from now on, at this step. Once. All ranks must have the same seed and tables: others
  // are rejected by name.
  void start(Clock first, std::uint64_t seed);
  bool started() const { return started_; }

  // Does `task` in a turn and waits for it; what it throws is thrown here, and harms nothing else.
  void wait_invoke(std::function<void(Stream&)> const& task);
  // Blocks until done() is true; throws what went wrong meanwhile, and PeerError when nothing happens for as long as a
  // peer may stay silent. `done` must be cheap.
  void wait(std::function<bool()> const& done) { progress_.wait(done, limit_); }
  // Throws what has gone wrong in the thread that turns.
  void throw_if_failed() { progress_.throw_if_failed(); }
  // Throws GradientError, once, if a step has been rejected.
  void throw_if_rejected();

  void announce(BatchPtr batch);
  void wait_ready(PreparedBatch::Impl const& batch);
  void end_step(BatchPtr batch, std::uint32_t signal);
  // In turns only.
  RoundExecutor& executor() { return executor_; }
  void flush_residuals() {
    progress_.post([this] { executor_.flush_residuals(); });
  }
  // All steps before this one are complete here.
  Clock complete() const { return Clock{complete_.load()}; }
  std::uint32_t signals() const { return signals_.load(); }

  std::vector<std::string> wait_allgather(std::string const& mine) { return gather(mine, limit_); }
  std::vector<std::string> wait_gather_to(Rank root, std::string const& mine) { return gather(mine, limit_, root); }
  // The same after work that may take the ranks very different times, such as writing files.
  std::vector<std::string> wait_allgather_forever(std::string const& mine);
  void begin_rows(std::shared_ptr<RowRequest> const& request);
  void wait_rows(RowRequest const& request);
  // From before this rank enters a collective that changes rows until it is over, then nothing.
  void allow_change(std::optional<RowRequest::Kind> change) {
    progress_.post([this, change] { requests_.allow_change(change); });
  }

  // Any thread.
  void write_stats(Stats& stats) const;

  // What a rank keeps of each other one, whatever the tables are.
  static constexpr std::size_t kBytesOfQueues = 96;  // a rank's lists of what waits, and counters of collectives
  static constexpr std::size_t kBytesOfPeer = sizeof(PeerTraffic) + Round::kBytesOfPeer + kBytesOfQueues;

  // -- for the thread that makes progress --
  void progress_begins() override { times_.turn_begins(round_.phase()); }
  void received(Rank from, std::string_view body) override;
  void closed_by(Rank peer) override;
  bool progress(bool moved) override;
  bool idle() const override;
  comm::PendingPeers pending_peers() const override;

 private:
  std::vector<std::string> gather(std::string const& mine, comm::WaitLimit const& limit, std::optional<Rank> root = {});
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
  RoundExecutor executor_;
  RequestHandler requests_;
  bool started_ = false;
  std::uint64_t seed_ = 0;
  std::uint64_t gathers_ = 0;
  int exceptions_at_start_;

  std::mutex mutex_;  // guards what went wrong with the last step
  std::string rejection_;
  std::atomic<bool> closing_ = false;       // this rank's Store ends
  std::vector<Rank> closed_;                // ranks whose Store has ended; in turns only
  std::atomic<bool> any_closed_ = false;    // there are some
  std::atomic<std::int64_t> reading_ = -1;  // the step whose rows a thread waits for
  std::atomic<std::int64_t> complete_ = 0;
  std::atomic<std::uint32_t> signals_ = 0;
  std::atomic<std::uint64_t> late_keys_ = 0, steps_ = 0, rows_reserved_ = 0, index_growths_ = 0;
};

}  // namespace gpups::cache
