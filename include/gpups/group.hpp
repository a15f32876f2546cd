// SPDX-License-Identifier: Apache-2.0
// The ranks of a job and how they reach each other. A group sums arrays over its ranks, with or without a Store:
//
//   run_ranks(Group::threads(4), [](Group group) {
//     Stream stream(Device::host(), 1);
//     std::vector<float> values(1000, 1.0F);
//     CollectiveRequest const sum = group.begin_allreduce(stream, View<float>(values));
//     // ... other work ...
//     group.wait_allreduce(stream, sum);  // now all values are 4 on every rank
//   });
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

// How badly the simulated network treats its messages. Same seed, same run.
struct Simulation {
  std::uint64_t seed = 0;
  double delay_ms_max = 10;         // each message waits a random time up to this, in simulated time
  double stall_probability = 0.05;  // that a rank does nothing for up to `stall_ms_max` after a turn, or as it waits
  double stall_ms_max = 50;
};

// How this process comes into a group with others.
struct JoinOptions {
  // What must be the same on all ranks, by name. Where it differs all ranks reject, naming the rank and both values.
  std::vector<std::pair<std::string, std::string>> must_match{};
  std::string broadcast_data{};  // what rank 0 has to say to all; see Group::broadcast_data()
  double join_timeout_s = 120;   // until all ranks have come
  double peer_timeout_s = 30;    // how long a process may be silent before it is taken for lost
};

// How GPUs of ranks that are processes are connected.
struct ConnectOptions {
  bool nccl = true;        // by NCCL, where all ranks want it and each has a GPU of its own
  double timeout_s = 300;  // until all ranks are there
};

// A process as its launcher sees it.
struct LaunchInfo {
  Rank rank{};
  int ranks = 1;  // 0: several, perhaps; the launcher says how many at the join only
};

// Where a rank runs.
struct RankLocation {
  std::string host{};   // name of its machine
  std::string cores{};  // that it is bound to, as in "0-3,8"; empty for a thread, which is not bound
  int local_rank = 0;   // among the ranks of this machine
  int local_ranks = 1;  // of this machine
};

// One rank's membership of a group. Copies are the same membership. A membership is for one Store at most, once.
//
// The first call that needs the other ranks starts a communication thread. It ends with the last copy of the membership
// or, in run_ranks(), when the body returns: this rank then sends what it still owes the others, and leaves them. Ranks
// that wait for more from it get a PeerError that names it.
class Group {
 public:
  // A group of one.
  static Group alone();

  // A group with the other processes of this job, as the launcher's environment says: PMIx (mpirun, srun --mpi=pmix),
  // or RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT with a token in the file that GPUPS_TOKEN_FILE names (without one,
  // on the loopback interface only); alone where neither is there. Blocks until all are there, and binds this process
  // to its share of its machine's cores: call it before threads are started, once in a process. Throws Error where
  // ranks do not belong together, with the rank at fault.
  static Group join(JoinOptions const& options);
  // What join() will find: this process's rank, and how many there are; 0 of 1 without a launcher. Throws Error where
  // the environment makes no sense.
  static LaunchInfo launch_info();

  // `ranks` memberships for threads of this process, in rank order; each is for a thread of its own.
  static std::vector<Group> threads(int ranks);

  // The same over a simulated network, for tests. Use run_ranks() to run the ranks.
  static std::vector<Group> simulated(int ranks, Simulation const& options);

  Rank rank() const;
  int size() const;
  RankLocation const& location() const;
  // What rank 0 passed to join(); empty for other groups.
  std::string const& broadcast_data() const;

  // Connects the device that this rank's Store is going to use with those of the others by NCCL, where all ranks can
  // and want to; otherwise none is, and data between GPUs go over the network. Collective, once and before a Store is
  // made on this membership; blocks until all ranks have called it. Returns by what data go between GPUs, and why, in
  // words for a log: the same on all ranks, and empty where no rank has a GPU or ranks are threads. Throws Error where
  // there is a Store already or a collective has begun, PeerError where a rank is lost or does not come. A Store or a
  // collective on another device throws Error.
  std::string wait_connect_devices(Device device, ConnectOptions const& options = {}) const;

  // Sets how long this rank waits in the calls below for what other ranks owe it, before they throw PeerError: 300
  // seconds unless it is set. The calls of a Store wait for StoreOptions::wait_timeout_s. Throws Error for a number
  // that is not above 0.
  void set_wait_timeout_s(double seconds) const;

  // Starts an asynchronous allreduce: sums `values`, (n), element by element over the ranks, such as the gradients of
  // dense layers. 64-bit integers wrap, so that the sum has no order. Queued after the work on `stream`. Blocks only
  // while kAllreducesMax sums are under way. `values` belong to the group until wait_allreduce().
  // Device: all collectives of a rank use one, that of wait_connect_devices(), else that of its Store, else that of its
  // first collective; `values` and `stream` are on it.
  // Collective: every rank makes the same calls in the same order, for arrays of the same size. Several sums may be
  // under way together, and with all that a Store does, before, while and after there is one. All these calls are for
  // one thread of the rank, where it has a Store the training thread. On the host they use as many cores as the Store's
  // streams, without a Store this rank's even share.
  // Throws Error where devices or sizes do not fit, or when kAllreducesMax sums are under way. Where sizes differ,
  // every rank's wait throws PeerError, which names two ranks and their sizes.
  CollectiveRequest begin_allreduce(Stream& stream, View<std::int64_t> values) const;
  // The same for floats: all ranks get the same bits, which are the same in every run that sums by the same algorithm
  // ("nccl": as far as NCCL does so). "auto" selects the same one in every run with equal link costs
  // (explain_allreduces()). Throws Error also for an algorithm or a format that there is not.
  CollectiveRequest begin_allreduce(Stream& stream, View<float> values, AllreduceOptions const& options = {}) const;
  // The same without a copy: the array goes, and wait_result() gives it back.
  CollectiveRequest begin_allreduce(Stream& stream, Array<float>&& values, AllreduceOptions const& options = {}) const;
  // The same without a copy of values that go on being needed: `keep`, not null, owns them, and they stay as they are
  // until the sum is over. wait_result() gives the sums.
  CollectiveRequest begin_allreduce(Stream& stream, View<float const> values, std::shared_ptr<void const> keep,
                                    AllreduceOptions const& options = {}) const;
  // The same for sparse vectors of one size, each with elements of its own; for wait_result(). Where nobody keeps it,
  // the vector may change when the work queued on `stream` is done.
  CollectiveRequest begin_allreduce(Stream& stream, SparseView const& vector,
                                    AllreduceOptions const& options = {}) const;
  // Sums sparse vectors likewise, and leaves to each rank the sum of one slice, to rank r the r-th: for
  // wait_result(). Every rank sends the others the elements of theirs. Slices are of equal size, but for what does not
  // divide.
  CollectiveRequest begin_reduce_scatter(Stream& stream, SparseView const& vector,
                                         WireFormat format = WireFormat::kFloat) const;

  // Blocks until `values` are the sums over all ranks; they are the same on all of them. Wait for sums in any order;
  // one of which no copy of its CollectiveRequest is left goes on alone, and its sums are lost. Throws Error for one
  // that is over, PeerError where a rank is lost or has left, or nothing comes for as long as set_wait_timeout_s()
  // says.
  void wait_allreduce(Stream& stream, CollectiveRequest const& request) const;
  // The same for sums that were not begun with a View. They are in memory of the rank's device, ready for `stream`. A
  // sum of sparse vectors is sparse or not, as it came to be on its way, the same on all ranks.
  ReducedVector wait_result(Stream& stream, CollectiveRequest const& request) const;
  // Under way at a time, on a rank. Where all places are taken, what begins a sum waits for one under way that nobody
  // can wait for any more, and throws Error if there is none.
  static constexpr std::size_t kAllreducesMax = 64;

  // Moving copies: no membership is without a group.
  Group(Group const&) = default;
  Group& operator=(Group const&) = default;
  // How the sums of begin_allreduce() were done whose algorithm was "auto": a line of what the links cost, and one for
  // each kind of sum so far, with the selected algorithm and the modelled times of all. The same on all ranks; empty
  // before the first such sum. In a simulated group the links' costs are assumed.
  std::vector<std::string> explain_allreduces() const;

  struct Impl;
  explicit Group(std::shared_ptr<Impl> impl);
  Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// Runs `body` once for each of the memberships of this process, each in a thread of its own, and waits for all of them.
// Ranks of a simulated group take turns, one at a time, in an order that only the seed decides. Where bodies throw, the
// first cause is thrown again: a rank that fails makes the others' next wait fail with PeerError, which is never
// preferred. What is no std::exception is thrown as an Error with the object nested in it (std::rethrow_if_nested).
// Where a body has used its membership (a Store, a collective), that ends as the body returns.
void run_ranks(std::vector<Group> const& group, std::function<void(Group)> const& body);

}  // namespace gpups
