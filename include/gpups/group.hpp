// SPDX-License-Identifier: Apache-2.0
// Groups of ranks: how the ranks of a job find each other, and their collectives.
//
//   // Four ranks as threads of this process:
//   run_ranks(Group::threads(4), [](Group group) {
//     Stream stream(Device::host(), 1);
//     Array<std::int64_t> counts(Device::host(), 1000);
//     fill(counts);
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
#include "gpups/compiler.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"

namespace gpups {

// Options of a simulated network, for tests. Equal options give equal runs. Times are simulated milliseconds.
struct Simulation {
  std::uint64_t seed = 0;
  double delay_ms_max = 10;         // maximum of the random delay of a message
  double stall_probability = 0.05;  // probability that a rank pauses after it made progress
  double stall_ms_max = 50;         // maximum of the random length of a pause
};

// Options of Group::join().
struct JoinOptions {
  // Named values that must be equal on all ranks, such as a hash of the configuration. If one differs, join() throws an
  // Error on all ranks, with the rank and both values.
  std::vector<std::pair<std::string, std::string>> must_match{};
  std::string broadcast_data{};  // of rank 0: bytes that all ranks get from Group::broadcast_data()
  double join_timeout_s = 120;   // seconds within which all ranks must have joined
  double peer_timeout_s = 30;    // seconds without a heartbeat after which a process counts as lost
  // Name of the group, equal on all its ranks: ranks that join groups of different names do not meet. Groups with equal
  // names meet in the order in which they are joined.
  std::string name{};
  bool bind_cores = true;  // bind to a share of the cores of the host; false leaves the affinity as it is
};

// Options of Group::wait_connect_devices().
struct ConnectOptions {
  bool nccl = true;        // use NCCL if all ranks set this and each rank has a GPU of its own
  double timeout_s = 300;  // seconds within which all ranks must have called it
};

// The rank of this process and the number of ranks, as the launcher has set them.
struct LaunchInfo {
  Rank rank{};
  int ranks = 1;  // number of ranks; 0: unknown until join()
};

// Where a rank runs: its host, its cores, and its number among the ranks of that host. See Group::location().
struct RankLocation {
  std::string host{};   // host name
  std::string cores{};  // cores on which the process runs, such as "0-3,8"; empty for ranks that are threads
  int local_rank = 0;   // number of this rank among the ranks of the same host, from 0
  int local_ranks = 1;  // number of ranks of the same host
};

// One rank's membership of a group. Copies are cheap and refer to the same membership. A Store uses one membership, and
// a membership has at most one Store in its lifetime. When the last copy is destroyed, the rank leaves the group: this
// blocks until the rank has sent what other ranks wait for.
//
// Collective functions must be called by all ranks, in the same order. rank(), size(), location() and broadcast_data()
// may be called by any thread; other functions by one thread at a time.
class GPUPS_EXPORT Group {
 public:
  // Returns the membership of a new group of one rank.
  static Group alone();

  // Joins the other processes of this job. The environment must have PMIx (mpirun, srun --mpi=pmix), or the variables
  // RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (torchrun, Kubernetes) and the path of a file with a secret token in
  // GPUPS_TOKEN_FILE. Without a token, ranks connect over the loopback interface only. Without PMIx and these
  // variables, the group has one rank. Blocks until all ranks have joined. Throws Error with the rank concerned if a
  // rank is late or has other values of JoinOptions::must_match.
  //
  // A job can have several groups, one after another or at the same time; each has all ranks of the job. All ranks must
  // join them in the same order; threads may join groups of different names in any order. MPI_Init() and MPI_Finalize()
  // may be called before, between and after, at the same place on all ranks.
  //
  // What else changes in this process, if the group has several ranks:
  // - Cores: the calling thread, and threads that it starts later, run only on this rank's share of the cores on which
  //   the ranks of this host may run, see location(). If a launcher has bound each rank to other cores, nothing
  //   changes. So call it before other threads are started, or set JoinOptions::bind_cores to false.
  // - Environment: UCX_TCP_CONN_NB is set to "y" unless it is set. UCX prints no warnings unless UCX_LOG_LEVEL is set.
  // - PMIx, if it is used, stays initialized until the process exits.
  // - Files: join() writes none, but the first sum with the algorithm "auto" does, see AllreduceOptions::algorithm.
  static Group join(JoinOptions const& options = {});
  // Returns the rank and the number of ranks that join() will use; rank 0 of 1 without a launcher. Does not
  // communicate. Throws Error if the environment is inconsistent.
  static LaunchInfo launch_info();

  // Returns the memberships of a new group of `ranks` ranks, in rank order. Each must be used in its own thread of this
  // process, for example by run_ranks().
  static std::vector<Group> threads(int ranks);

  // The same over a simulated network, for tests. The memberships must be used by run_ranks().
  static std::vector<Group> simulated(int ranks, Simulation const& options);

  Rank rank() const;
  int size() const;
  // Returns the host, the cores and the local rank of this rank.
  RankLocation const& location() const;
  // Returns the bytes that rank 0 passed to join(); empty for other groups.
  std::string const& broadcast_data() const;

  // Connects the devices of all ranks by NCCL, if all ranks support and request it. Otherwise data between GPUs are
  // sent over UCX. If ranks are threads, NCCL sums, and data are copied from one GPU to the other. Call it at most
  // once, before a Store is created and before other collectives, with the device of that Store. Returns a text for a
  // log, equal on all ranks: what connects the GPUs, and why. The text is empty if no rank has a GPU. Blocks until all
  // ranks have called it. Throws Error if there is a Store or a collective was started, and PeerError if a rank is lost
  // or late. Collective.
  std::string wait_connect_devices(Device device, ConnectOptions const& options = {}) const;

  // Returns whether sums of arrays on the device are made by NCCL, because wait_connect_devices() has connected the
  // GPUs of all ranks. Equal on all ranks.
  bool sums_on_devices(Device device) const;

  // Sets the seconds without progress after which a wait for a collective throws PeerError; 300 by default. Throws
  // Error unless the number is finite and above 0.
  void set_wait_timeout_s(double seconds) const;

  // Starts an allreduce: replaces `values`, (n), by their element-wise sums over all ranks, modulo 2^64, so the result
  // does not depend on the order of additions. The collective starts after the work that is queued on `stream`.
  // `values` must not be used until wait_allreduce() returns.
  //
  // Several collectives may be in flight together, and together with look-ups and rounds of a Store; no Store is
  // needed. All arrays and streams of a rank's collectives must be on one device: that of wait_connect_devices(), else
  // that of the rank's Store, else that of its first collective. Blocks only while kAllreducesMax collectives are in
  // flight. Throws Error for an array or a stream on another device. If sizes differ between ranks, the wait throws
  // PeerError on every rank, with two ranks and their sizes. Collective: all ranks must start the same collectives in
  // the same order.
  CollectiveRequest begin_allreduce(Stream& stream, View<std::int64_t> values) const;
  // The same for floats. All ranks get equal bits. Every run with the same algorithm and number of ranks gets equal
  // bits too ("nccl": as far as NCCL guarantees it); for bits that do not depend on the number of ranks, sum integers.
  // The first sum with the algorithm "auto" measures the links, and rank 0 writes a file, see AllreduceOptions.
  // Also throws Error for an unknown algorithm, or a format that the algorithm does not support.
  CollectiveRequest begin_allreduce(Stream& stream, View<float> values, AllreduceOptions const& options = {}) const;
  // The same without a copy: takes ownership of the array. wait_result() returns the sum.
  CollectiveRequest begin_allreduce(Stream& stream, Array<float>&& values, AllreduceOptions const& options = {}) const;
  // The same without a copy: reads `values` in place, so they must not change until the sum is done. keep: the owner of
  // `values`, not null; the group holds it until then. wait_result() returns the sum.
  CollectiveRequest begin_allreduce(Stream& stream, View<float const> values, std::shared_ptr<void const> keep,
                                    AllreduceOptions const& options = {}) const;
  // The same for sparse vectors, which have equal sizes on all ranks but may have different indices. If
  // SparseView::keep is null, the vector may change after the work queued on `stream` is done. wait_result() returns
  // the sum.
  CollectiveRequest begin_allreduce(Stream& stream, SparseView const& vector,
                                    AllreduceOptions const& options = {}) const;
  // Starts a reduce-scatter of sparse vectors: on rank r, wait_result() returns the elements size * r / ranks up to
  // size * (r + 1) / ranks of the sum, sparse or dense. Indices of a sparse result are those of the whole vector.
  // format: kFloat, kHalf, kBFloat16 or kInt8. Rules and errors are those of begin_allreduce().
  CollectiveRequest begin_reduce_scatter(Stream& stream, SparseView const& vector,
                                         WireFormat format = WireFormat::kFloat) const;

  // Blocks until `values` of begin_allreduce() have the sums, so that work queued on `stream` afterwards can read them.
  // Wait for each sum once; the order does not matter. If the last copy of a request is destroyed, its sum continues,
  // because other ranks need it, and its result is lost. Throws Error for a sum that was waited for before or
  // that another membership started, and PeerError if a rank is lost or does not answer in time (set_wait_timeout_s()).
  void wait_allreduce(Stream& stream, CollectiveRequest const& request) const;
  // The same for collectives that do not write to the caller's array. Returns the result, on the device of the
  // collective, readable by work on `stream`. The sum of sparse vectors is sparse or dense; the algorithm decides,
  // equally on all ranks.
  ReducedVector wait_result(Stream& stream, CollectiveRequest const& request) const;
  // Maximum number of collectives in flight per rank. When it is reached, the next begin_...() blocks until one whose
  // requests are destroyed is done, and throws Error if there is none.
  static constexpr std::size_t kAllreducesMax = 64;

  // Explains the selections of the algorithm "auto": returns one line with the link costs, and one line for each kind
  // of sum so far, with the selected algorithm and the modelled times of all algorithms. Equal on all ranks; empty
  // before the first selection. A simulated group has fixed link costs.
  std::vector<std::string> explain_allreduces() const;

  // There is no move: it copies, so every Group object has a membership.
  Group(Group const&) = default;
  Group& operator=(Group const&) = default;

  struct Impl;
  explicit Group(std::shared_ptr<Impl> impl);
  Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// Runs `body` for each membership in its own thread, and blocks until all have returned. group: all memberships of this
// process: those of Group::threads() or Group::simulated(), or the one of Group::join(). A membership ends when its
// body returns, also if the body made no use of it: ranks that wait for it get PeerError. Ranks of a simulated group
// run one at a time, in an order that depends on the seed.
//
// If bodies throw, rethrows the exception that was the cause: after an exception of one rank, the next wait of each
// other rank throws PeerError, which is not the cause. An exception that is not a std::exception is rethrown as an
// Error, with the exception nested in it. Throws Error if threads cannot be started.
GPUPS_EXPORT void run_ranks(std::vector<Group> const& group, std::function<void(Group)> const& body);

}  // namespace gpups
