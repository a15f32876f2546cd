// SPDX-License-Identifier: Apache-2.0
// Checks that the ranks of the job can find and authenticate each other.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trainer/base/progress_reporter.hpp"
#include "trainer/doctor/checks.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kTokenLeast = 16;  // bytes that nobody can guess
constexpr int kPortLeast = 1024;         // lower ports are reserved for root

bool joins_over_loopback(RendezvousFacts const& rendezvous) {
  return std::all_of(rendezvous.hosts.begin(), rendezvous.hosts.end(), [](auto const& host) { return host.loopback; });
}

}  // namespace

Findings check_launcher(Facts const& facts) {
  RendezvousFacts const& m = facts.rendezvous;
  if (!m.error.empty()) return {problem(m.error)};
  if (m.launcher.empty()) return {ok("no launcher started this process: it is the only one of the job")};
  std::string const size =
      m.size > 0 ? with_count(static_cast<std::uint64_t>(m.size), "process", "processes") : "this process";
  return {ok(fmt::format("{} started {}", m.launcher, size))};
}

Findings check_host_names(Facts const& facts) {
  Findings found;
  if (!facts.machine.host_resolves) {
    found.push_back(
        warning(fmt::format("the name of this machine, {}, has no address (launchers look it up): add it to "
                            "/etc/hosts",
                            facts.machine.host)));
  }
  auto const& hosts = facts.rendezvous.hosts;
  for (RendezvousFacts::Host const& host : hosts) {
    if (host.error.empty()) continue;
    std::string const text = fmt::format(
        "{} has no address ({}; ranks connect to rank 0 there): check MASTER_ADDR, and that DNS or /etc/hosts has the "
        "name",
        host.name, host.error);
    bool const others = std::any_of(hosts.begin(), hosts.end(), [](auto const& other) { return other.error.empty(); });
    found.push_back(others ? warning(text) : problem(text));
  }
  return found;
}

Findings check_port(Facts const& facts) {
  RendezvousFacts const& m = facts.rendezvous;
  if (m.launcher.empty() || m.port == 0) return {};
  switch (m.port_error) {
    case 0:
      return {ok(fmt::format("ranks join at port {}", m.port))};
    case EADDRINUSE:
      return {
          problem(fmt::format("port {} is in use by another program (rank 0 listens there): check that no other "
                              "process has RANK=0, or set MASTER_PORT to another port on all ranks, or GPUPS_PORT if "
                              "the launcher itself listens there",
                              m.port))};
    case EACCES:
      return {
          problem(fmt::format("port {} is reserved for root (rank 0 listens there): set MASTER_PORT to a port from {} "
                              "to 65535 on all ranks",
                              m.port, kPortLeast))};
    default:
      return {
          problem(fmt::format("port {} cannot be used ({}; rank 0 listens there): set MASTER_PORT to another port on "
                              "all ranks",
                              m.port, std::strerror(m.port_error)))};
  }
}

Findings check_token(Facts const& facts) {
  RendezvousFacts const& m = facts.rendezvous;
  if (!m.token) {
    if (m.launcher.empty() || m.hosts.empty()) return {};
    if (joins_over_loopback(m)) return {ok("there is no token: ranks join through the loopback interface only")};
    return {
        problem("there is no token (anybody on the network could join as a rank): write 32 random bytes, as text, to "
                "a file that only you can read, and set GPUPS_TOKEN_FILE to its path on all ranks")};
  }
  RendezvousFacts::Token const& token = *m.token;
  // If the token file made the launch fail, check_launcher() reports it.
  if (!token.file.empty() && m.error.find(token.file) != std::string::npos) return {};
  std::string const what = token.file.empty() ? "GPUPS_TOKEN" : "the token file " + token.file;
  if (!token.error.empty()) {
    return {problem(
        fmt::format("{} cannot be read ({}; ranks need it to join): check GPUPS_TOKEN_FILE", what, token.error))};
  }
  if (token.bytes == 0) {
    return {
        problem(fmt::format("{} is empty (anybody could join as a rank): write 32 random bytes to it, as text", what))};
  }
  Findings found;
  if (!token.file.empty() && (token.mode & 077U) != 0) {
    found.push_back(
        warning(fmt::format("{} has mode {:03o} (other users of this machine can read it and join): chmod 600 {}", what,
                            token.mode & 0777U, token.file)));
  }
  if (token.bytes < kTokenLeast) {
    found.push_back(warning(
        fmt::format("{} has {} bytes (it can be guessed): write 32 random bytes to it, as text", what, token.bytes)));
  }
  if (found.empty()) found.push_back(ok(fmt::format("{} has {} bytes", what, token.bytes)));
  return found;
}

}  // namespace gpups::trainer
