// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <string>

#include "comm/cluster/cores.hpp"
#include "comm/cluster/join.hpp"
#include "comm/cluster/launch.hpp"
#include "comm/group_impl.hpp"
#include "comm/host_name.hpp"
#include "kernels/build_config.hpp"
#include "kernels/check.hpp"
#include "kernels/timeout.hpp"
#if GPUPS_HAS_UCX
#include "comm/group/processes.hpp"
#include "comm/ucx/seal.hpp"
#endif

namespace gpups {
namespace {

#if GPUPS_HAS_UCX

// The cores that each rank of this rank's machine takes, in the order of their ranks.
std::vector<std::vector<int>> cores_of_machine(std::vector<comm::Member> const& members, Place const& place,
                                               std::string const& machine) {
  std::vector<std::vector<int>> allowed, near;
  for (comm::Member const& member : members) {
    if (member.machine == machine) allowed.push_back(comm::by_neighbourhood(comm::cores_from(member.cores)));
  }
  for (int local = 0; local < place.local_ranks; ++local) {
    int const devices = cuda_device_count();
    near.push_back(devices > 0 ? comm::cores_near_cuda(local % devices) : std::vector<int>{});
  }
  return comm::share_cores(allowed, near);
}

// Where this rank runs among the others; binds it to its cores.
void take_place(Group::Impl& impl, std::vector<comm::Member> const& members, Rank me) {
  comm::Member const& mine = members[number(me)];
  impl.place = {.host = mine.host, .cores = {}, .local_rank = 0, .local_ranks = 0};
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    if (members[rank].machine != mine.machine) continue;
    if (rank < number(me)) ++impl.place.local_rank;
    ++impl.place.local_ranks;
  }
  auto const shares = cores_of_machine(members, impl.place, mine.machine);
  auto const& cores = shares[static_cast<std::size_t>(impl.place.local_rank)];
  comm::bind_to_cores(cores);
  impl.place.cores = comm::cores_text(cores);
  impl.cores_shared_by = static_cast<int>(std::count(shares.begin(), shares.end(), cores));
}

// Joins. A rank without a network can still say so: then no rank waits for it.
comm::Joined wait_join(comm::Launch const& launch, JoinOptions const& options, std::string const& address,
                       std::string const& trouble) {
  auto agreement = options.agreement;
  agreement.emplace_back("version of the data protocol", std::to_string(comm::kUcxProtocol));
  agreement.emplace_back("state of the network", trouble.empty() ? "usable" : "not usable: " + trouble);
  return comm::wait_join({.launch = launch,
                          .mine = {.host = comm::host_name(),
                                   .machine = comm::machine_name(),
                                   .pid = ::getpid(),
                                   .address = address,
                                   .cores = comm::cores_text(comm::allowed_cores())},
                          .version = GPUPS_VERSION,
                          .agreement = std::move(agreement),
                          .announcement = options.announcement,
                          .timeout_s = options.join_timeout_s,
                          .watch = {.peer_timeout_s = options.peer_timeout_s}});
}

Group join_launched(comm::Launch const& launch, JoinOptions const& options) {
  std::unique_ptr<comm::UcxLink> link;
  try {
    link = std::make_unique<comm::UcxLink>();
  } catch (Error const& error) {
    try {
      wait_join(launch, options, {}, error.what());
    } catch (Error const&) {  // the others have been told; here the cause is thrown
    }
    throw;
  }
  auto joined = wait_join(launch, options, link->address(), {});
  Rank const me = joined.rank;
  auto const members = joined.members;
  auto impl = comm::group_of_processes(me, std::move(link), std::move(joined));
  take_place(*impl, members, me);
  return Group(std::move(impl));
}

#else

Group join_launched(comm::Launch const& launch, JoinOptions const&) {
  throw Error(
      fmt::format("{} ranks were started as processes (this build has no UCX to join them by): install libucx "
                  "and build again, or use threads (--ranks)",
                  launch.size));
}

#endif

}  // namespace

Launched Group::launched() {
  auto const launch = comm::launch_of_process();
  return {launch.rank, launch.size};
}

Group Group::join(JoinOptions const& options) {
  kernels::require_timeout(options.join_timeout_s, "JoinOptions::join_timeout_s (cluster.join_timeout_s)");
  kernels::require_timeout(options.peer_timeout_s, "JoinOptions::peer_timeout_s (cluster.peer_timeout_s)");
  auto const launch = comm::launch_of_process();
  return launch.kind == comm::Launch::Kind::kAlone ? alone() : join_launched(launch, options);
}

}  // namespace gpups
