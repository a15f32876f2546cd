// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/join.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "comm/bootstrap/authentication.hpp"
#include "comm/bootstrap/pmix.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

constexpr double kUnknownNameRetry_s = 10;

std::vector<SocketAddress> wait_resolve_names(LaunchEnvironment const& launch, TimePoint deadline) {
  TimePoint const until = std::min(deadline, after(now(), kUnknownNameRetry_s));
  for (;;) {
    std::vector<SocketAddress> endpoints;
    std::string unknown;
    for (std::string const& host : launch.hosts) {
      Resolved const resolved = wait_resolve(host, launch.port);
      endpoints.insert(endpoints.end(), resolved.endpoints.begin(), resolved.endpoints.end());
      if (!resolved.error.empty()) unknown = resolved.error;
    }
    if (!endpoints.empty()) return endpoints;
    GPUPS_REQUIRE(
        now() < until,
        "the host name of rank 0, {}, cannot be resolved ({}): correct MASTER_ADDR, or set it to a numeric address",
        fmt::join(launch.hosts, ", "), unknown.empty() ? "no host name is set" : unknown);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

constexpr std::size_t kTokenBytes = 32;

// While it exists, other threads of this process do not listen at the port: they join other groups of the job.
class ListeningTurn {
 public:
  ListeningTurn(int port, TimePoint deadline) : port_(port) {
    while (!try_take()) {
      GPUPS_REQUIRE(now() < deadline,
                    "rank 0 could not begin to join this group in time (it still waits for ranks of another group at "
                    "port {}): join all groups on all ranks",
                    port);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  ~ListeningTurn() {
    std::lock_guard const lock(mutex_);
    ports_.erase(port_);
  }
  ListeningTurn(ListeningTurn const&) = delete;
  ListeningTurn& operator=(ListeningTurn const&) = delete;

 private:
  bool try_take() const {
    std::lock_guard const lock(mutex_);
    return ports_.insert(port_).second;
  }
  static inline std::mutex mutex_;
  static inline std::set<int> ports_;
  int port_;
};

JoinResult wait_by_address(JoinRequest const& request) {
  if (request.launch.rank != Rank{0}) return wait_join_bootstrap(request);
  // If other ranks cannot reach the loopback interface of this machine, throw the same error here.
  if (request.launch.token.empty()) (void)wait_bootstrap_addresses(request.launch, now());
  TimePoint const deadline = after(now(), request.timeout_s);  // of the turn and of the other ranks together
  ListeningTurn const turn(request.launch.port, deadline);
  return wait_serve_bootstrap(request, Listener(request.launch.token.empty(), request.launch.port), deadline);
}

// Returns where rank 0 listens for all groups of this job. The ranks exchange it once.
BootstrapAddress wait_pmix_address(Pmix& pmix, JoinRequest const& request) {
  static std::mutex mutex;
  static std::optional<Listener> reserved;  // of rank 0: keeps the port while no group is joined
  static std::optional<BootstrapAddress> known;
  std::lock_guard const lock(mutex);
  if (known) return *known;
  BootstrapAddress mine;
  if (pmix.rank() == Rank{0}) {
    if (!reserved) reserved.emplace(false, 0, Listener::Mode::kReserve);
    mine = {.hosts = local_addresses(),
            .port = reserved->port(),
            .token = hex(random_bytes(kTokenBytes)),
            .machine = request.mine.machine};
  }
  known = pmix.wait_exchange(mine, request.timeout_s);
  return *known;
}

JoinResult wait_pmix(JoinRequest request) {
  Pmix pmix;
  BootstrapAddress const address = wait_pmix_address(pmix, request);
  LaunchEnvironment& launch = request.launch;
  launch.rank = pmix.rank();
  launch.size = pmix.size();
  launch.hosts = address.hosts;
  launch.port = address.port;
  launch.token = address.token;
  // The loopback address is tried first. It fails in a container with a loopback interface of its own.
  if (address.machine == request.mine.machine) launch.hosts.insert(launch.hosts.begin(), "127.0.0.1");
  return wait_by_address(request);
}

}  // namespace

std::vector<SocketAddress> wait_bootstrap_addresses(LaunchEnvironment const& launch, TimePoint deadline) {
  std::vector<SocketAddress> endpoints = wait_resolve_names(launch, deadline);
  if (!launch.token.empty()) return endpoints;
  for (SocketAddress const& endpoint : endpoints) {
    GPUPS_REQUIRE(!endpoint.is_any(),
                  "MASTER_ADDR is {} (it stands for all addresses and is not the address of a machine): set it to the "
                  "host of rank 0, or to 127.0.0.1 if all ranks are on one machine",
                  endpoint.address());
  }
  // Without a token rank 0 listens on the loopback interface only, whichever of its names this machine has in
  // MASTER_ADDR.
  std::vector<std::string> const own = local_addresses();
  bool const is_here = std::any_of(endpoints.begin(), endpoints.end(), [&](SocketAddress const& endpoint) {
    return endpoint.is_loopback() || std::find(own.begin(), own.end(), endpoint.address()) != own.end();
  });
  GPUPS_REQUIRE(is_here,
                "rank 0 is on another machine, at {}, and there is no token (any process in the network could join the "
                "job): put the same token for all ranks into a file, and set GPUPS_TOKEN_FILE to its path",
                endpoints.front().text());
  std::vector<SocketAddress> here = wait_resolve("127.0.0.1", launch.port).endpoints;
  for (SocketAddress const& endpoint : wait_resolve("::1", launch.port).endpoints) here.push_back(endpoint);
  return here;
}

JoinResult wait_join(JoinRequest const& request) {
  GPUPS_ASSERT(request.launch.kind != LaunchEnvironment::Kind::kAlone);
  return request.launch.kind == LaunchEnvironment::Kind::kPmix ? wait_pmix(request) : wait_by_address(request);
}

}  // namespace gpups::comm
