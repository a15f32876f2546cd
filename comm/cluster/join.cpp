// SPDX-License-Identifier: Apache-2.0
#include "comm/cluster/join.hpp"

#include "comm/cluster/host.hpp"
#include "comm/cluster/joiner.hpp"
#include "comm/cluster/meeting.hpp"
#include "comm/cluster/pmix.hpp"
#include "comm/cluster/secret.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {
namespace {

constexpr std::size_t kTokenBytes = 32;

Joined wait_either(JoinRequest const& request) {
  if (request.launch.rank != Rank{0}) return wait_joiner(request);
  // Where others could not reach this machine's loopback interface, say so here too.
  if (request.launch.token.empty()) (void)wait_meeting_points(request.launch, now());
  return wait_host(request, Listener(request.launch.token.empty(), request.launch.port));
}

Joined wait_pmix(JoinRequest request) {
  Pmix pmix;
  Launch& launch = request.launch;
  launch.rank = pmix.rank();
  launch.size = pmix.size();
  launch.local_rank = pmix.local_rank();
  if (launch.rank == Rank{0}) {
    Listener listener(false, 0);  // listens before the others learn where
    launch.token = hex(random_bytes(kTokenBytes));
    pmix.wait_exchange(
        {.hosts = addresses_of_host(), .port = listener.port(), .token = launch.token, .machine = request.mine.machine},
        request.timeout_s);
    return wait_host(request, std::move(listener));
  }
  MeetingPlace place = pmix.wait_exchange({}, request.timeout_s);
  launch.token = place.token;
  launch.port = place.port;
  launch.hosts = place.hosts;
  // The shortest way comes first; in a container of its own a rank may have another loopback interface than rank 0.
  if (place.machine == request.mine.machine) launch.hosts.insert(launch.hosts.begin(), "127.0.0.1");
  return wait_joiner(request);
}

}  // namespace

Joined wait_join(JoinRequest const& request) {
  GPUPS_ASSERT(request.launch.kind != Launch::Kind::kAlone);
  return request.launch.kind == Launch::Kind::kPmix ? wait_pmix(request) : wait_either(request);
}

}  // namespace gpups::comm
