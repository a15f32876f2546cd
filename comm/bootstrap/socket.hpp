// SPDX-License-Identifier: Apache-2.0
// Connections between processes, over IPv4 and IPv6. No call here blocks unless its name says so.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpups::comm {

using TimePoint = std::chrono::steady_clock::time_point;
using FloatSeconds = std::chrono::duration<double>;
inline TimePoint now() { return std::chrono::steady_clock::now(); }
// `seconds` from `start` on; at most about 30 years, as the clock's type ends at some point.
TimePoint after(TimePoint start, double seconds);
// What is left until then, for poll(): never too short, and 0 where it is over.
int milliseconds_until(TimePoint then);

// A file descriptor that is closed with its owner.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close() { Socket().swap(*this); }

 private:
  void swap(Socket& other) { std::swap(fd_, other.fd_); }
  int fd_ = -1;
};

// An address and a port.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  std::string text() const;  // "10.0.0.3:4100", "[fe80::1]:4100"
  std::string address() const;
  int port() const;
  bool is_loopback() const;
  bool is_any() const;  // 0.0.0.0 or ::, which mean every address of a machine
};

// What a name stands for, best first. error: what the resolver says, where it says nothing else.
struct Resolved {
  std::vector<SocketAddress> endpoints{};
  std::string error{};
};
Resolved wait_resolve(std::string const& host, int port);

// Addresses by which other machines may reach this one; those that other machines have too (of bridges) come last.
std::vector<std::string> local_addresses();

// Connects. error: what the system says where nobody answers; then the socket is not open.
struct Connected {
  Socket socket{};
  std::string error{};
};
Connected wait_connect(SocketAddress const& to, TimePoint deadline);

// Where rank 0 waits for the others.
class Listener {
 public:
  // loopback_only: only processes of this machine can connect. port: 0 takes any that is free. Throws Error where the
  // port is occupied.
  Listener(bool loopback_only, int port);

  int port() const { return port_; }
  std::vector<Socket> const& sockets() const { return sockets_; }
  // Who has connected. Empty: nobody. Closed socket: this process has no room for a further one.
  std::optional<std::pair<Socket, SocketAddress>> accept(Socket const& from);

 private:
  std::vector<Socket> sockets_;
  int port_ = 0;
};

}  // namespace gpups::comm
