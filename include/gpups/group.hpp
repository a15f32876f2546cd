// SPDX-License-Identifier: Apache-2.0
// Groups of ranks: how the ranks of a job find each other, and the collectives between them.
//
//   // Four ranks as threads of this process:
//   run_ranks(Group::threads(4), [](Group group) {
//     Stream stream(Device::host(), 1);
//     Array<std::int64_t> counts(Device::host(), 1000);
//     ... fill counts ...
//     group.wait_allreduce(stream, group.begin_allreduce(stream, counts));  // sums over the four ranks
//   });
//   // This process as one rank of a job that mpirun, srun, torchrun or Kubernetes started:
//   Group group = Group::join();
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpups/allreduce.hpp"
#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"

namespace gpups {

// Options of a simulated network, for tests. Equal options give equal runs.
struct Simulation {
  std::uint64_t seed = 0;
  double delay_ms_max = 10;         // a message is delayed by a random time up to this; simulated milliseconds
  double stall_probability = 0.05;  // probability that a rank pauses for up to `stall_ms_max` after it made progress
  double stall_ms_max = 50;
};

// Options of Group::join().
struct JoinOptions {
  // Named values that must be equal on all ranks, such as a hash of the configuration. If one differs, join() throws an
  // Error on all ranks that names the rank and both values.
  std::vector<std::pair<std::string, std::string>> must_match{};
  std::string broadcast_data{};  // bytes of rank 0 that all ranks get from Group::broadcast_data()
  double join_timeout_s = 120;   // seconds until all ranks must have joined
  double peer_timeout_s = 30;    // seconds without a heartbeat after which a process counts as lost
};

// Options of Group::wait_connect_devices().
struct ConnectOptions {
  bool nccl = true;        // use NCCL if all ranks set this and each rank has a GPU of its own
  double timeout_s = 300;  // seconds until all ranks must have called it
};

// The rank and size that a launcher gave this process.
struct LaunchInfo {
  Rank rank{};
  int ranks = 1;  // 0: unknown until join()
};

// The location of a rank.
struct RankLocation {
  std::string host{};   // host name
  std::string cores{};  // cores that the process is bound to, such as "0-3,8"; empty for ranks that are threads
  int local_rank = 0;   // number of this rank among the ranks of the same host
  int local_ranks = 1;  // number of ranks of the same host
};

// One rank's membership of a group. Copies are cheap and refer to the same membership. A Store takes one membership,
// and a membership has at most one Store.
class Group {
 public:
  // Returns a group of one rank.
  static Group alone();

  // Joins the processes of this job. The environment says which these are: PMIx (mpirun, srun --mpi=pmix), or RANK,
  // WORLD_SIZE, MASTER_ADDR and MASTER_PORT (torchrun, Kubernetes) with a token in the file GPUPS_TOKEN_FILE (without a
  // token, ranks connect over the loopback interface only). Without either, the group has one rank. Blocks until all
  // ranks have joined, and binds the process to its share of the cores of its host: call it once, before threads are
  // started. Throws Error if ranks do not belong together or do not come in time; the message names the rank.
  static Group join(JoinOptions const& options);
  // Returns the rank and size that join() will use; rank 0 of 1 without a launcher. Throws Error if the environment is
  // inconsistent.
  static LaunchInfo launch_info();

  // Returns `ranks` memberships, in rank order, for threads of this process. Use run_ranks(), or one thread for each.
  static std::vector<Group> threads(int ranks);

  // The same over a simulated network, for tests. Use run_ranks().
  static std::vector<Group> simulated(int ranks, Simulation const& options);

  Rank rank() const;
  int size() const;
  RankLocation const& location() const;
  // Returns the bytes that rank 0 passed to join(); empty for other groups.
  std::string const& broadcast_data() const;

  // Connects the devices of all ranks by NCCL if all ranks support and request it; otherwise data between GPUs goes
  // over UCX. Collective; call it at most once, before a Store is created, with the device of that Store. Blocks until
  // all ranks have called it. Returns what connects the GPUs, and why, as a text for a log: equal on all ranks, empty
  // if no rank has a GPU or ranks are threads. Throws Error if there is a Store or a collective was started, PeerError
  // if a rank is lost or late.
  std::string wait_connect_devices(Device device, ConnectOptions const& options = {}) const;

  // Sets the time that collectives wait for other ranks without progress before they throw PeerError; 300 seconds by
  // default. Throws Error for a number that is not above 0.
  void set_wait_timeout_s(double seconds) const;

  // Starts an allreduce: replaces `values`, (n), by their element-wise sums over all ranks; 64-bit integers, modulo
  // 2^64, so the result does not depend on an order. Queued after the work on `stream`. Blocks only while
  // kAllreducesMax sums are in flight. `values` must not be used until wait_allreduce(). Collective: all ranks start
  // the same sums, of equal sizes, in the same order. Sums may be in flight together, and together with look-ups and
  // rounds of a Store. All arrays and streams of a rank's collectives are on one device: that of
  // wait_connect_devices(), else that of its Store, else that of its first collective. A Store is not needed. One
  // thread at a time. Throws Error if devices or sizes do not fit. If sizes differ between ranks, the wait throws
  // PeerError on every rank and names two ranks and their sizes.
  CollectiveRequest begin_allreduce(Stream& stream, View<std::int64_t> values) const;
  // The same for floats. All ranks get equal bits, and so does every run that uses the same algorithm ("nccl": as far
  // as NCCL guarantees it). Throws Error also for an unknown algorithm or format.
  CollectiveRequest begin_allreduce(Stream& stream, View<float> values, AllreduceOptions const& options = {}) const;
  // The same without a copy: the group owns the array until wait_result() returns it.
  CollectiveRequest begin_allreduce(Stream& stream, Array<float>&& values, AllreduceOptions const& options = {}) const;
  // The same without a copy and without giving the values away: `keep`, not null, owns them, and they must not change
  // until the sum is done. wait_result() returns the sum.
  CollectiveRequest begin_allreduce(Stream& stream, View<float const> values, std::shared_ptr<void const> keep,
                                    AllreduceOptions const& options = {}) const;
  // The same for sparse vectors, which have the same size on all ranks but elements of their own. wait_result() returns
  // the sum. Without SparseView::keep the vector may change when the work queued on `stream` is done.
  CollectiveRequest begin_allreduce(Stream& stream, SparseView const& vector,
                                    AllreduceOptions const& options = {}) const;
  // Starts a reduce-scatter of sparse vectors: rank r gets slice r of the sum, from wait_result(). The slices have
  // equal sizes, except for a remainder.
  CollectiveRequest begin_reduce_scatter(Stream& stream, SparseView const& vector,
                                         WireFormat format = WireFormat::kFloat) const;

  // Blocks until `values` of begin_allreduce() hold the sums, the same bits on all ranks. Sums may be waited for in any
  // order. A sum whose last handle is destroyed goes on, and its result is lost. Throws Error for a sum that was waited
  // for before, PeerError if a rank is lost or does not
  // answer in time (set_wait_timeout_s()).
  void wait_allreduce(Stream& stream, CollectiveRequest const& request) const;
  // The same for sums that were not started with a View. The result is on the device of the collective, ready for
  // `stream`. A sum of sparse vectors is sparse or dense as the algorithm chose, the same on all ranks.
  ReducedVector wait_result(Stream& stream, CollectiveRequest const& request) const;
  // Maximum number of sums in flight per rank. If it is reached, the next begin waits for a sum without a handle, and
  // throws Error if there is none.
  static constexpr std::size_t kAllreducesMax = 64;

  // Explains the selections of "auto": returns a line with the link costs, and one for each kind of sum so far with the
  // selected algorithm and the modelled times of all algorithms. Equal on all ranks; empty before the first selection.
  // A simulated group has fixed link costs.
  std::vector<std::string> explain_allreduces() const;

  // Copies refer to the same membership. A move copies too, so every Group object has a membership.
  Group(Group const&) = default;
  Group& operator=(Group const&) = default;

  struct Impl;
  explicit Group(std::shared_ptr<Impl> impl);
  Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// Runs `body` for each membership, each in a thread of its own, and waits for all of them. Ranks of a simulated group
// run one at a time, in an order that the seed decides. A membership that a body has used ends when the body returns.
// If bodies throw, rethrows the first cause: an exception of one rank makes the other ranks' next wait throw PeerError,
// which is not the cause. An object that is no std::exception is rethrown as an Error with the object nested in it.
void run_ranks(std::vector<Group> const& group, std::function<void(Group)> const& body);

}  // namespace gpups
