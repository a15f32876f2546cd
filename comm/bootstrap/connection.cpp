// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/connection.hpp"

#include <fmt/core.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "comm/base/serialization.hpp"
#include "comm/bootstrap/authentication.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

constexpr std::string_view kMagic = "gpupsjob";

constexpr std::size_t kHeadBytes = sizeof(std::uint32_t) + sizeof(FrameKind);
constexpr std::size_t kQueuedBytesMax = std::size_t{1} << 20;  // put() fails above that
constexpr std::size_t kReadBytes = std::size_t{1} << 16;
constexpr int kReadsMax = 64;  // in one call of exchange(), so that one peer cannot keep this rank busy

std::string ended_by(int error) {
  if (error == ECONNRESET || error == EPIPE) return "its process ended";
  return fmt::format("its connection broke ({})", std::generic_category().message(error));
}

}  // namespace

std::string make_handshake(std::uint32_t protocol) {
  Writer writer;
  writer.put<std::uint32_t>(protocol);
  return std::string(kMagic) + writer.take() + random_bytes(kHandshakeBytes - kMagic.size() - sizeof protocol);
}

std::string handshake_error(std::string_view incoming) {
  std::string_view const magic = incoming.substr(0, kMagic.size());
  if (magic != kMagic.substr(0, magic.size())) return "it is not a gpups process";
  if (incoming.size() < kMagic.size() + sizeof kJoinProtocol) return {};
  auto const protocol = Reader(incoming.substr(kMagic.size())).get<std::uint32_t>();
  if (protocol == kJoinProtocol) return {};
  return fmt::format("it runs another version of gpups: its join protocol is {}, not {}", protocol, kJoinProtocol);
}

std::string session_key(std::string_view token, std::string_view client_handshake, std::string_view server_handshake) {
  return hmac(token, std::string("gpups session").append(client_handshake).append(server_handshake));
}

void Connection::end_sending() {
  if (socket_.is_open()) (void)shutdown(socket_.fd(), SHUT_WR);
}

std::string Connection::frame_mac(ConnectionSide from, std::uint64_t number, FrameKind kind,
                                  std::string_view body) const {
  Writer writer;
  writer.put<ConnectionSide>(from);
  writer.put<std::uint64_t>(number);
  writer.put<FrameKind>(kind);
  return hmac(key_, writer.take().append(body));
}

bool Connection::put(FrameKind kind, std::string_view body) {
  if (outgoing_.size() > kQueuedBytesMax) return false;
  Writer head;
  head.put<std::uint32_t>(static_cast<std::uint32_t>(body.size()));
  head.put<FrameKind>(kind);
  outgoing_.append(head.body()).append(body).append(frame_mac(side_, queued_frames_++, kind, body));
  return true;
}

void Connection::send() {
  while (!outgoing_.empty()) {
    ssize_t const sent = ::send(socket_.fd(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) ended_ = ended_by(errno);
    if (sent <= 0) return;
    outgoing_.erase(0, static_cast<std::size_t>(sent));
    sent_bytes_ += static_cast<std::size_t>(sent);
  }
}

std::string Connection::exchange() {
  if (!socket_.is_open()) return ended_.empty() ? "its process ended" : ended_;
  if (ended_.empty()) send();
  // Read even if sending has failed: the last frames of the other end may have arrived.
  std::vector<char> some(kReadBytes);
  // Limit the unread bytes, so that the other end cannot exhaust memory.
  std::size_t const enough = kHeadBytes + body_bytes_max_ + kHmacBytes;
  for (int read = 0; read < kReadsMax && incoming_.size() < enough + kReadBytes; ++read) {
    ssize_t const got = recv(socket_.fd(), some.data(), some.size(), 0);
    if (got > 0) {
      incoming_.append(some.data(), static_cast<std::size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    ended_ = got == 0 ? "its process ended" : ended_by(errno);
    break;
  }
  return ended_;
}

std::optional<std::size_t> Connection::body_bytes() const {
  if (incoming_.size() < kHeadBytes) return {};
  std::size_t const length = Reader(incoming_).get<std::uint32_t>();
  if (length > body_bytes_max_) {
    throw FrameError(fmt::format("a frame has {} bytes ({} are allowed): connect only processes of one job", length,
                                 body_bytes_max_));
  }
  return length;
}

std::optional<Frame> Connection::peek_unauthenticated() const {
  auto const length = body_bytes();
  if (!length || incoming_.size() < kHeadBytes + *length + kHmacBytes) return {};
  return Frame{static_cast<FrameKind>(incoming_[kHeadBytes - 1]), incoming_.substr(kHeadBytes, *length)};
}

std::optional<Frame> Connection::next() {
  auto frame = peek_unauthenticated();
  if (!frame) return {};
  std::size_t const mac_at = kHeadBytes + frame->body.size();
  ConnectionSide const other = side_ == ConnectionSide::kRankZero ? ConnectionSide::kOther : ConnectionSide::kRankZero;
  if (!equal_hmac(frame_mac(other, received_frames_, frame->kind, frame->body),
                  std::string_view(incoming_).substr(mac_at, kHmacBytes))) {
    throw FrameError("a frame has a wrong MAC (it is not from a process of this job): find its sender");
  }
  ++received_frames_;
  consume(mac_at + kHmacBytes);
  return frame;
}

}  // namespace gpups::comm
