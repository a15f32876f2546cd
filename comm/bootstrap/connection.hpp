// SPDX-License-Identifier: Apache-2.0
// A connection whose frames are sealed: nobody without the key can make, change, repeat, drop or swap one.
//
// A frame: 32-bit length of the body, 8-bit kind, body, HMAC over direction, sequence number, kind and body.
// Nothing here blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "comm/bootstrap/socket.hpp"
#include "gpups/error.hpp"

namespace gpups::comm {

// The numbers are part of the protocol.
enum class FrameKind : std::uint8_t {
  kHello = 1,         // what a rank says of itself
  kWrongToken,        // rank 0: no proof; not sealed, since there is no common key
  kAlive,             // nothing but that
  kRefused,           // rank 0: the job does not start, and why
  kStart,             // rank 0: who all are
  kMembershipUpdate,  // who leaves or is lost, and why
};

struct Frame {
  FrameKind kind{};
  std::string body{};
};

// What came cannot be right: it is too long, or its mac is another one.
class FrameError : public Error {
 public:
  using Error::Error;
};

// Which end of the connection this is; the two mac differently, so that what is sent cannot be sent back.
enum class ConnectionSide : std::uint8_t { kRankZero, kOther };

class Connection {
 public:
  Connection(Socket socket, ConnectionSide side) : socket_(std::move(socket)), side_(side) {}

  int fd() const { return socket_.fd(); }
  bool is_open() const { return socket_.is_open(); }
  void close() { socket_.close(); }
  // Says that nothing more will be sent; what is queued must be out before.
  void end_sending();

  void set_key(std::string key) { key_ = std::move(key); }
  std::string const& key() const { return key_; }
  // The longest body that is taken from the other end, which may not have proved anything yet.
  void set_body_bytes_max(std::size_t bytes) { body_bytes_max_ = bytes; }

  // Queue what is to be sent. False: no room, as the other end has taken nothing for long.
  bool put(FrameKind kind, std::string_view body);
  void put_plaintext(std::string_view bytes) { outgoing_ += bytes; }
  bool has_outgoing() const { return !outgoing_.empty(); }
  std::size_t sent_bytes() const { return sent_bytes_; }

  // Sends what the connection takes, reads what is there. Says "" or why the connection has ended; it may still hold
  // frames then.
  std::string exchange();

  // What has come before the first frame.
  std::string_view incoming() const { return incoming_; }
  void consume(std::size_t bytes) { incoming_.erase(0, bytes); }
  // The next frame, if all of it is there. Throws FrameError.
  std::optional<Frame> next();
  // A frame that has come, without looking at the mac: only for words about who is rejected.
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
  std::uint64_t queued_frames = 0, received_frames_ = 0;  // frames
};

}  // namespace gpups::comm
