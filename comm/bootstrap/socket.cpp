// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/socket.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>

#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

std::string words_of(int error) { return std::generic_category().message(error); }

Socket new_socket(int family) { return Socket(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

void set(Socket const& socket, int level, int option, int value) {
  (void)setsockopt(socket.fd(), level, option, &value, sizeof value);  // all of these are optional
}

sockaddr const* address_of(SocketAddress const& endpoint) {
  return reinterpret_cast<sockaddr const*>(&endpoint.storage);
}

SocketAddress endpoint_of(sockaddr const* address, socklen_t size) {
  SocketAddress endpoint;
  std::memcpy(&endpoint.storage, address, size);
  endpoint.size = size;
  return endpoint;
}

SocketAddress numeric(char const* address, int port) { return wait_resolve(address, port).endpoints.at(0); }

}  // namespace

TimePoint after(TimePoint start, double seconds) {
  return start + std::chrono::duration_cast<TimePoint::duration>(FloatSeconds(std::clamp(seconds, 0.0, 1e9)));
}

int milliseconds_until(TimePoint then) {
  auto const left = std::chrono::ceil<std::chrono::milliseconds>(then - now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 60'000));
}

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

std::string SocketAddress::address() const {
  char text[NI_MAXHOST] = "?";
  (void)getnameinfo(address_of(*this), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  std::string const mapped = "::ffff:";  // an IPv4 address on a socket for both families
  return std::string_view(text).starts_with(mapped) ? text + mapped.size() : text;
}

int SocketAddress::port() const {
  if (storage.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6 const*>(&storage)->sin6_port);
  return ntohs(reinterpret_cast<sockaddr_in const*>(&storage)->sin_port);
}

std::string SocketAddress::text() const {
  std::string const host = address();
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port())
                                             : fmt::format("[{}]:{}", host, port());
}

bool SocketAddress::is_loopback() const {
  std::string const host = address();
  return host.starts_with("127.") || host == "::1";
}

bool SocketAddress::is_any() const {
  std::string const host = address();
  return host == "0.0.0.0" || host == "::";
}

Resolved wait_resolve(std::string const& host, int port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  int const failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (failed != 0) return {.error = failed == EAI_SYSTEM ? words_of(errno) : gai_strerror(failed)};
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> const owner(found, freeaddrinfo);
  Resolved resolved;
  for (addrinfo const* at = found; at != nullptr; at = at->ai_next) {
    resolved.endpoints.push_back(endpoint_of(at->ai_addr, at->ai_addrlen));
  }
  return resolved;
}

std::vector<std::string> local_addresses() {
  ifaddrs* found = nullptr;
  GPUPS_REQUIRE(getifaddrs(&found) == 0,
                "the addresses of this host cannot be listed ({}; other ranks could not find rank 0): check its "
                "network interfaces",
                words_of(errno));
  std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> const owner(found, freeifaddrs);
  std::vector<std::pair<int, std::string>> ranked;
  for (ifaddrs const* at = found; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0 || (at->ifa_flags & IFF_LOOPBACK) != 0) continue;
    int const family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    auto const size = static_cast<socklen_t>(family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    std::string const text = endpoint_of(at->ifa_addr, size).address();
    if (text.starts_with("fe80:")) continue;  // valid on its own link only
    std::string_view const name = at->ifa_name;
    bool const bridge = name.starts_with("docker") || name.starts_with("virbr") || name.starts_with("br-");
    ranked.emplace_back((bridge ? 2 : 0) + (family == AF_INET6 ? 1 : 0), text);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
  std::vector<std::string> addresses;
  for (auto& [order, text] : ranked) addresses.push_back(std::move(text));
  return addresses;
}

Connected wait_connect(SocketAddress const& to, TimePoint deadline) {
  Socket socket = new_socket(to.storage.ss_family);
  if (!socket.is_open()) return {.error = words_of(errno)};
  if (connect(socket.fd(), address_of(to), to.size) != 0) {
    if (errno != EINPROGRESS) return {.error = words_of(errno)};
    pollfd waiting{.fd = socket.fd(), .events = POLLOUT, .revents = 0};
    int ready = 0;
    while ((ready = poll(&waiting, 1, milliseconds_until(deadline))) < 0 && errno == EINTR) {
    }
    if (ready == 0) return {.error = words_of(ETIMEDOUT)};
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error != 0) return {.error = words_of(error)};
  }
  // The system may choose for the connection the very port that it connects to; then the socket is connected to itself.
  SocketAddress mine;
  mine.size = sizeof mine.storage;
  if (getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&mine.storage), &mine.size) == 0 &&
      mine.text() == to.text()) {
    return {.error = words_of(ECONNREFUSED)};
  }
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  return {.socket = std::move(socket)};
}

Listener::Listener(bool loopback_only, int port, Mode mode) : port_(port) {
  std::vector<char const*> const wanted =
      loopback_only ? std::vector<char const*>{"127.0.0.1", "::1"} : std::vector<char const*>{"::", "0.0.0.0"};
  int error = 0;
  SocketAddress failed;
  for (char const* const address : wanted) {
    SocketAddress const endpoint = numeric(address, port_);
    Socket socket = new_socket(endpoint.storage.ss_family);
    if (!socket.is_open()) continue;           // this machine has no IPv6
    set(socket, SOL_SOCKET, SO_REUSEADDR, 1);  // the port of a job that has just ended can be used
    if (endpoint.storage.ss_family == AF_INET6) set(socket, IPPROTO_IPV6, IPV6_V6ONLY, loopback_only ? 1 : 0);
    if (bind(socket.fd(), address_of(endpoint), endpoint.size) != 0 ||
        (mode == Mode::kListen && listen(socket.fd(), 1024) != 0)) {
      // This machine has no IPv6, or the port chosen for the first address is occupied for the second one.
      if (errno == EADDRNOTAVAIL && (!loopback_only || !sockets_.empty())) continue;
      if (port == 0 && !sockets_.empty()) continue;
      error = errno;
      failed = endpoint;
      break;
    }
    SocketAddress bound;
    bound.size = sizeof bound.storage;
    (void)getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.size);
    port_ = bound.port();
    sockets_.push_back(std::move(socket));
    if (!loopback_only) break;  // the first socket accepts both families
  }
  GPUPS_REQUIRE(error == 0 && !sockets_.empty(),
                "rank 0 cannot listen at {} ({}; other ranks could not join): {}set GPUPS_PORT to another port, the "
                "same on all ranks",
                error == 0 ? fmt::format("port {}", port) : failed.text(), words_of(error == 0 ? EAFNOSUPPORT : error),
                error == EADDRINUSE ? "check that no other process has RANK=0, or " : "");
}

std::optional<std::pair<Socket, SocketAddress>> Listener::accept(Socket const& from) {
  SocketAddress who;
  who.size = sizeof who.storage;
  Socket socket(accept4(from.fd(), reinterpret_cast<sockaddr*>(&who.storage), &who.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.is_open() && errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return {};
  if (socket.is_open()) set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  return std::pair(std::move(socket), who);
}

}  // namespace gpups::comm
