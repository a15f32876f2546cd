// SPDX-License-Identifier: Apache-2.0
// TCP sockets over IPv4 and IPv6. Only functions with wait in their name block.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpups::comm {

using TimePoint = std::chrono::steady_clock::time_point;
using FloatSeconds = std::chrono::duration<double>;
inline TimePoint now() { return std::chrono::steady_clock::now(); }
// Returns `start` plus `seconds`, at most about 30 years, since the range of the clock is limited.
TimePoint after(TimePoint start, double seconds);
// Returns the time left as an argument for poll(): rounded up, at most a minute, and 0 if it is over.
int milliseconds_until(TimePoint then);

// Owns a file descriptor.
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
  bool is_any() const;  // 0.0.0.0 or ::, which stand for all addresses of a machine
};

// The addresses of a host name, best first. error: the error of the resolver; empty if it succeeded.
struct Resolved {
  std::vector<SocketAddress> endpoints{};
  std::string error{};
};
Resolved wait_resolve(std::string const& host, int port);

// Returns the addresses by which other machines may reach this one. Addresses of bridges come last, because other
// machines may have the same ones.
std::vector<std::string> local_addresses();

// A connection, or an error of the system and a closed socket.
struct Connected {
  Socket socket{};
  std::string error{};
};
// Connects to an address. Blocks until it is connected, refused, or the deadline is over.
Connected wait_connect(SocketAddress const& to, TimePoint deadline);

// The sockets on which rank 0 accepts connections.
class Listener {
 public:
  // kReserve: only keeps the port from other programs; connections are refused, and another Listener can use the port.
  enum class Mode : std::uint8_t { kListen, kReserve };

  // loopback_only: only processes of this machine can connect. port: 0 chooses a free port. Throws Error if the port is
  // occupied.
  Listener(bool loopback_only, int port, Mode mode = Mode::kListen);

  int port() const { return port_; }
  std::vector<Socket> const& sockets() const { return sockets_; }
  void close() { sockets_.clear(); }
  // Returns the next connection. Empty: there is none. Closed socket: the process or the system is out of file
  // descriptors or memory.
  std::optional<std::pair<Socket, SocketAddress>> accept(Socket const& from);

 private:
  std::vector<Socket> sockets_;
  int port_ = 0;
};

}  // namespace gpups::comm
