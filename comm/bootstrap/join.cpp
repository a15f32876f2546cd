// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/join.hpp"

#include "comm/bootstrap/hmac.hpp"
#include "comm/bootstrap/join_steps.hpp"
#include "comm/bootstrap/pmix.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

constexpr std::size_t kTokenBytes = 32;

JoinResult wait_by_address(JoinRequest const& request) {
  if (request.launch.rank != Rank{0}) return wait_join_bootstrap(request);
  // If other ranks cannot reach the loopback interface of this machine, throw the same error here.
  if (request.launch.token.empty()) (void)wait_bootstrap_addresses(request.launch, now());
  return wait_serve_bootstrap(request, Listener(request.launch.token.empty(), request.launch.port));
}

JoinResult wait_pmix(JoinRequest request) {
  Pmix pmix;
  LaunchEnvironment& launch = request.launch;
  launch.rank = pmix.rank();
  launch.size = pmix.size();
  launch.local_rank = pmix.local_rank();
  if (launch.rank == Rank{0}) {
    Listener listener(false, 0);  // listens before the other ranks get the address
    launch.token = hex(random_bytes(kTokenBytes));
    pmix.wait_exchange(
        {.hosts = local_addresses(), .port = listener.port(), .token = launch.token, .machine = request.mine.machine},
        request.timeout_s);
    return wait_serve_bootstrap(request, std::move(listener));
  }
  BootstrapAddress address = pmix.wait_exchange({}, request.timeout_s);
  launch.token = address.token;
  launch.port = address.port;
  launch.hosts = address.hosts;
  // The loopback address is tried first. It fails in a container with a loopback interface of its own.
  if (address.machine == request.mine.machine) launch.hosts.insert(launch.hosts.begin(), "127.0.0.1");
  return wait_join_bootstrap(request);
}

}  // namespace

JoinResult wait_join(JoinRequest const& request) {
  GPUPS_ASSERT(request.launch.kind != LaunchEnvironment::Kind::kAlone);
  return request.launch.kind == LaunchEnvironment::Kind::kPmix ? wait_pmix(request) : wait_by_address(request);
}

}  // namespace gpups::comm
