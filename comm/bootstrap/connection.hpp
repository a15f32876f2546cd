// SPDX-License-Identifier: Apache-2.0
// A bootstrap connection: its handshake, and its authenticated frames. Without the session key, frames cannot be
// forged, changed, repeated, dropped or reordered unnoticed. No function blocks.
//
// The handshake, in plain text: a magic string, the protocol version and a nonce. A frame: 32-bit length of the body,
// 8-bit kind, body, HMAC over direction, sequence number, kind and body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "comm/bootstrap/socket.hpp"
#include "gpups/error.hpp"

namespace gpups::comm {

inline constexpr std::uint32_t kJoinProtocol = 3;
inline constexpr std::size_t kHandshakeBytes = 8 + 4 + 32;

// Returns a handshake with a new nonce.
std::string make_handshake(std::uint32_t protocol = kJoinProtocol);

// Returns why the bytes received so far are not a valid handshake, without naming the sender; empty if they may still
// become one, or, from kHandshakeBytes on, if they are one.
std::string handshake_error(std::string_view incoming);

// Returns the key that authenticates the frames of one connection. It can be computed only with the token, and differs
// for each connection.
std::string session_key(std::string_view token, std::string_view client_handshake, std::string_view server_handshake);

// The values are part of the protocol.
enum class FrameKind : std::uint8_t {
  kHello = 1,         // RankInfo
  kWrongToken,        // from rank 0: the token differs; not authenticated, since there is no common key
  kAlive,             // a heartbeat; has no body
  kRejected,          // from rank 0: why the job is rejected
  kStart,             // from rank 0: StartMessage
  kMembershipUpdate,  // a rank leaves or is lost, and why
  kOtherGroup,        // from rank 0: the name of the group whose ranks join now; the receiver tries again later
};

// A received frame.
struct Frame {
  FrameKind kind{};
  std::string body{};
};

// Thrown for a frame that is too long or has a wrong MAC.
class FrameError : public Error {
 public:
  using Error::Error;
};

// Which end of the connection this is. The MAC depends on it, so that a frame cannot be sent back to its sender.
enum class ConnectionSide : std::uint8_t { kRankZero, kOther };

// Frames over a socket, with queues of outgoing and incoming bytes.
class Connection {
 public:
  Connection(Socket socket, ConnectionSide side) : socket_(std::move(socket)), side_(side) {}

  int fd() const { return socket_.fd(); }
  bool is_open() const { return socket_.is_open(); }
  void close() { socket_.close(); }
  // Shuts down the sending direction. Call it once has_outgoing() is false.
  void end_sending();

  void set_key(std::string key) { key_ = std::move(key); }
  std::string const& key() const { return key_; }
  // Sets the longest body that is accepted. The other end may be unauthenticated.
  void set_body_bytes_max(std::size_t bytes) { body_bytes_max_ = bytes; }

  // Queue a frame, or bytes without a frame. put() returns false if the queue is full, because the other end has read
  // nothing for long.
  bool put(FrameKind kind, std::string_view body);
  void put_plaintext(std::string_view bytes) { outgoing_ += bytes; }
  bool has_outgoing() const { return !outgoing_.empty(); }
  std::size_t sent_bytes() const { return sent_bytes_; }

  // Sends and reads as much as is possible without blocking. Returns "", or why the connection has ended; received
  // frames may still be there then.
  std::string exchange();

  // Returns the received bytes that have not been consumed.
  std::string_view incoming() const { return incoming_; }
  void consume(std::size_t bytes) { incoming_.erase(0, bytes); }
  // Returns the next frame if it is complete. Throws FrameError.
  std::optional<Frame> next();
  // Returns the next frame without checking its MAC: only for the text about a rejected connection.
  std::optional<Frame> peek_unauthenticated() const;

 private:
  std::string frame_mac(ConnectionSide from, std::uint64_t number, FrameKind kind, std::string_view body) const;
  std::optional<std::size_t> body_bytes() const;
  void send();

  Socket socket_;
  ConnectionSide side_;
  std::string key_;
  std::size_t body_bytes_max_ = std::size_t{1} << 20;
  std::string outgoing_, incoming_, ended_;
  std::size_t sent_bytes_ = 0;
  std::uint64_t queued_frames_ = 0, received_frames_ = 0;  // sequence numbers
};

}  // namespace gpups::comm
