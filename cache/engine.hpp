// SPDX-License-Identifier: Apache-2.0
// One rank's side of the protocol: takes what the application's threads post, turns the round and its exchange, and
// lets threads wait. What is posted happens in a turn; whichever thread does that (see comm/turner.hpp), turns exclude
// each other.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cache/collective_mail.hpp"
#include "cache/exchange.hpp"
#include "cache/requests.hpp"
#include "cache/round_times.hpp"
#include "comm/collective/collectives.hpp"
#include "comm/group_impl.hpp"
#include "gpups/store.hpp"

namespace gpups::cache {

class Engine {
 public:
  Engine(Group const& group, Stream const& stream, double wait_timeout_s);
  ~Engine();

  Rank rank() const { return me_; }
  int ranks() const { return ranks_; }

  // The list is complete before turning starts; what changes in a table afterwards changes in turns only.
  std::vector<std::unique_ptr<TableShard>>& tables() { return tables_; }
  // Begins to turn, at this step. Once. All ranks must have the same seed and tables: others are refused by name.
  void start(Clock first, std::uint64_t seed);
  bool started() const { return started_; }

  // Does `task` in a turn, some time. Any thread.
  void post(std::function<void()> task);
  // Does `task` in a turn and waits for it; what it throws is thrown here, and harms nothing else.
  void wait_run(std::function<void(Stream&)> const& task);
  // Blocks until done() is true; throws what went wrong meanwhile, and PeerError when nothing happens for as long as a
  // peer may stay silent. `done` must be cheap.
  void wait(std::function<bool()> const& done) { wait(done, wait_timeout_s_); }
  // Throws what has gone wrong in the thread that turns.
  void throw_if_failed();
  // Throws GradientError, once, if a step has been refused.
  void throw_if_refused();

  void announce(BatchPtr batch);
  void end_step(BatchPtr batch, std::uint32_t signal);
  // In turns only.
  Exchange& exchange() { return exchange_; }
  void send_held_back() {
    post([this] { exchange_.send_all_held(); });
  }
  // All steps before this one are complete here.
  Clock complete() const { return Clock{complete_.load()}; }
  std::uint32_t signals() const { return signals_.load(); }

  std::vector<std::string> wait_gather(std::string const& mine) { return gather(mine, wait_timeout_s_); }
  std::vector<std::string> wait_gather_to(Rank root, std::string const& mine) {
    return gather(mine, wait_timeout_s_, root);
  }
  // The same after work that may take the ranks very different times, such as writing files.
  std::vector<std::string> wait_gather_patiently(std::string const& mine);
  void begin_rows(std::shared_ptr<RowRequest> const& request);
  void wait_rows(RowRequest const& request);
  void begin_collective(std::shared_ptr<comm::Collective> const& collective);
  void wait_collective(comm::Collective const& collective) {
    wait([&collective] { return collective.done.load(); });
  }
  // From before this rank enters a collective that changes rows until it is over, then nothing.
  void allow(std::optional<RowRequest::Kind> change) {
    post([this, change] { requests_.allow(change); });
  }

  // Any thread.
  void write_stats(Stats& stats) const;

  // What a rank keeps of each other one, whatever the tables are.
  static constexpr std::size_t kBytesOfQueues = 96;  // a rank's lists of what waits, and counters of collectives
  static constexpr std::size_t kBytesOfPeer = sizeof(PeerTraffic) + Round::kBytesOfPeer + kBytesOfQueues;

 private:
  void wait(std::function<bool()> const& done, double timeout_s);
  std::vector<std::string> gather(std::string const& mine, double timeout_s, std::optional<Rank> root = {});
  bool turn();
  // The same as post(), for a thread that holds no lock which turning takes: it may do the turn itself.
  void post_soon(std::function<void()> task);
  void tell_tables();
  bool take_posts();
  void dispatch(Mail::Received const& received);
  // REQUIRES: turning_ is held.
  void fail(std::exception_ptr error) noexcept;
  void publish();
  struct Awaited {
    Rank rank;
    std::string text;
  };
  Awaited awaited();  // REQUIRES: turning_ is held

  Group group_;
  comm::Transport& transport_;
  comm::Turner& turner_;
  Rank me_;
  int ranks_;
  double wait_timeout_s_;
  Stream stream_;
  Mail mail_;
  Round round_;
  RoundTimes times_;
  std::vector<std::unique_ptr<TableShard>> tables_;
  Exchange exchange_;
  Requests requests_;
  CollectiveMail collective_mail_;
  comm::Collectives collectives_;
  bool started_ = false;
  std::uint64_t seed_ = 0;
  std::uint64_t gathers_ = 0;
  int exceptions_at_start_;

  std::mutex turning_;  // held while turning: for looking at the round from outside
  std::mutex mutex_;    // guards the three below
  std::vector<std::function<void()>> posts_;
  std::exception_ptr failure_;
  std::string refusal_;
  std::atomic<bool> failed_ = false;  // failure_ is set
  std::atomic<bool> idle_ = true;     // nothing is owed to other ranks, and no round is going on
  std::atomic<std::int64_t> complete_ = 0;
  std::atomic<std::uint32_t> signals_ = 0;
  std::atomic<std::uint64_t> urgent_keys_ = 0, steps_ = 0, rows_reserved_ = 0, index_growths_ = 0;
};

}  // namespace gpups::cache
