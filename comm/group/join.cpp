// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <string>

#include "comm/base/host_name.hpp"
#include "comm/bootstrap/core_affinity.hpp"
#include "comm/bootstrap/join.hpp"
#include "comm/bootstrap/launch.hpp"
#include "comm/group/group_impl.hpp"
#include "kernels/base/build_config.hpp"
#include "kernels/base/check.hpp"
#if GPUPS_HAS_UCX
#include "comm/ucx/header_mac.hpp"
#include "comm/ucx/worker.hpp"
#endif

namespace gpups {
namespace {

#if GPUPS_HAS_UCX

// Returns the cores of each rank on this rank's machine, in the order of the ranks: those on which it may run now, or
// its share of them.
std::vector<std::vector<int>> cores_of_machine(std::vector<comm::ProcessInfo> const& members,
                                               std::string const& machine, bool share) {
  std::vector<std::vector<int>> allowed, near;
  for (comm::ProcessInfo const& member : members) {
    if (member.machine != machine) continue;
    // A launcher may let each rank see its own GPU only, so a rank does not know those of the others.
    near.push_back(comm::cores_near_rank(member.near_gpus, static_cast<int>(near.size())));
    allowed.push_back(comm::order_by_locality(comm::parse_core_list(member.cores)));
  }
  return share ? comm::partition_cores(allowed, near) : allowed;
}

// Sets the location of this rank. bind: binds the process to its share of the cores.
void set_location(Group::Impl& impl, std::vector<comm::ProcessInfo> const& members, Rank me, bool bind) {
  comm::ProcessInfo const& mine = members[number(me)];
  impl.location = {.host = mine.host, .cores = {}, .local_rank = 0, .local_ranks = 0};
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    impl.shares_host.push_back(members[rank].machine == mine.machine);
    bool const starts = rank > 0 && members[rank].machine != members[rank - 1].machine;
    impl.hosts.push_back(rank == 0 ? 0 : impl.hosts.back() + (starts ? 1 : 0));
    if (!impl.shares_host.back()) continue;
    if (rank < number(me)) ++impl.location.local_rank;
    ++impl.location.local_ranks;
  }
  auto const shares = cores_of_machine(members, mine.machine, bind);
  auto const& cores = shares[static_cast<std::size_t>(impl.location.local_rank)];
  if (bind) comm::bind_to_cores(cores);
  impl.location.cores = comm::format_core_list(cores);
  impl.cores_shared_by = static_cast<int>(std::count(shares.begin(), shares.end(), cores));
}

// Joins the job. A rank whose network does not work joins too, so that all ranks get an error and none waits for it.
comm::JoinResult wait_join(comm::LaunchEnvironment const& launch, JoinOptions const& options,
                           std::string const& address, std::string const& network_error) {
  auto must_match = options.must_match;
  must_match.emplace_back("version of the data protocol", std::to_string(comm::kUcxProtocol));
  must_match.emplace_back("state of the network", network_error.empty() ? "usable" : "not usable: " + network_error);
  return comm::wait_join({.launch = launch,
                          .mine = {.host = comm::host_name(),
                                   .machine = comm::machine_name(),
                                   .pid = ::getpid(),
                                   .address = address,
                                   .cores = comm::format_core_list(comm::allowed_cores()),
                                   .near_gpus = comm::cores_near_gpus()},
                          .group = options.name,
                          .version = GPUPS_VERSION,
                          .must_match = std::move(must_match),
                          .broadcast_data = options.broadcast_data,
                          .timeout_s = options.join_timeout_s,
                          .failure_detector = {.peer_timeout_s = options.peer_timeout_s}});
}

Group join_by_launch_info(comm::LaunchEnvironment const& launch, JoinOptions const& options) {
  std::unique_ptr<comm::UcxWorker> ucx;
  try {
    ucx = std::make_unique<comm::UcxWorker>();
  } catch (Error const& error) {
    try {
      wait_join(launch, options, {}, error.what());
    } catch (Error const&) {  // the other ranks have the error; this rank throws the cause
    }
    throw;
  }
  auto joined = wait_join(launch, options, ucx->address(), {});
  Rank const me = joined.rank;
  auto const members = joined.members;
  auto impl = comm::make_process_group(me, std::move(ucx), std::move(joined));
  set_location(*impl, members, me, options.bind_cores);
  return Group(std::move(impl));
}

#else

Group join_by_launch_info(comm::LaunchEnvironment const& launch, JoinOptions const&) {
  throw Error(
      fmt::format("{} ranks were started as processes (this build has no UCX, which connects processes): "
                  "install libucx and build again, or use threads (--ranks)",
                  launch.size));
}

#endif

}  // namespace

LaunchInfo Group::launch_info() {
  auto const launch = comm::detect_launch();
  return {launch.rank, launch.size};
}

Group Group::join(JoinOptions const& options) {
  kernels::require_timeout(options.join_timeout_s, "JoinOptions::join_timeout_s (cluster.join_timeout_s)");
  kernels::require_timeout(options.peer_timeout_s, "JoinOptions::peer_timeout_s (cluster.peer_timeout_s)");
  auto const launch = comm::detect_launch();
  return launch.kind == comm::LaunchEnvironment::Kind::kAlone ? alone() : join_by_launch_info(launch, options);
}

}  // namespace gpups
