// SPDX-License-Identifier: Apache-2.0
// Connections that do not belong to the job cannot end it, delay it or join it, and a rank detects a false rank 0.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "comm/bootstrap/authentication.hpp"
#include "comm/bootstrap/connection.hpp"
#include "comm/bootstrap/rank_info.hpp"
#include "tests/comm/bootstrap/join_fixture.hpp"

namespace gpups::test::join_unauthenticated_test {
namespace {

using namespace gpups::comm;
using testing::HasSubstr;
using testing::Not;

Socket connect_to(int port) {
  for (;;) {
    Connected connected = wait_connect(wait_resolve("127.0.0.1", port).endpoints[0], after(now(), 30));
    if (connected.socket.is_open()) return std::move(connected.socket);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void send_all(Socket const& socket, std::string const& bytes) {
  ASSERT_EQ(send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

TEST(UnauthenticatedPeers, DoNotDisturbJob) {
  int const port = free_port();
  auto zero = start_join(request_of(0, 2, port));
  std::vector<Socket> peers;
  for (std::string const& bytes :
       {std::string("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), std::string(1000, '\xff'), std::string(),
        make_handshake(kJoinProtocol + 1), make_handshake() + std::string(1000, '\xff'),
        make_handshake() + std::string(37, '\0'), make_handshake()}) {
    peers.push_back(connect_to(port));
    send_all(peers.back(), bytes);
  }
  for (int i = 0; i < 300; ++i) peers.push_back(connect_to(port));  // more than the limit of pending connections
  auto one = start_join(request_of(1, 2, port));
  EXPECT_EQ(one.get().error, "");
  EXPECT_EQ(zero.get().error, "");
}

TEST(UnauthenticatedPeers, WithOtherTokenAreRejectedAtOnce) {
  int const port = free_port();
  testing::internal::CaptureStderr();
  auto zero = start_join(request_of(0, 2, port));
  auto wrong = request_of(1, 2, port);
  wrong.launch.token = "a guess";
  std::string const error = start_join(wrong).get().error;
  EXPECT_THAT(error, HasSubstr("its token differs"));
  auto one = start_join(request_of(1, 2, port));
  EXPECT_EQ(one.get().error, "");
  EXPECT_EQ(zero.get().error, "");
  std::string const output = testing::internal::GetCapturedStderr();
  EXPECT_THAT(output, HasSubstr("gpups: rejected 127.0.0.1:"));
  EXPECT_THAT(output, HasSubstr("which claims to be rank 1 (its token differs from the token of rank 0)"));
  EXPECT_THAT(output + error, Not(HasSubstr("a guess")));
  EXPECT_THAT(output + error, Not(HasSubstr("the token of the tests")));
}

TEST(UnauthenticatedPeers, AreListedIfRanksAreMissing) {
  int const port = free_port();
  auto request = request_of(0, 2, port);
  request.timeout_s = 3;
  auto zero = start_join(request);
  auto wrong = request_of(1, 2, port);
  wrong.launch.token = "a guess";
  start_join(wrong).get();
  EXPECT_THAT(zero.get().error, HasSubstr("which claims to be rank 1 (its token differs from the token of rank 0)"));
}

// Listens in place of rank 0 and calls `answer` for each connection. Returns the error of the rank that joins.
std::string join_to(std::function<void(Socket const&)> const& answer) {
  int const port = free_port();
  Listener listener(true, port);
  auto one = start_join(request_of(1, 2, port));
  while (one.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    if (auto const accepted = listener.accept(listener.sockets()[0])) answer(accepted->first);
  }
  return one.get().error;
}

TEST(UnauthenticatedPeers, InPlaceOfRankZeroAreDetected) {
  EXPECT_THAT(join_to([](Socket const&) {}), HasSubstr("it closed the connection"));
  EXPECT_THAT(join_to([](Socket const& to) { send_all(to, "SSH-2.0-OpenSSH_9\r\n"); }),
              HasSubstr("it is not a gpups process"));
  EXPECT_THAT(join_to([](Socket const& to) { send_all(to, make_handshake(kJoinProtocol + 1)); }),
              HasSubstr("its join protocol is 4, not 3"));
  auto const silent = [](Socket const&) { std::this_thread::sleep_for(std::chrono::milliseconds(3500)); };
  EXPECT_THAT(join_to(silent), HasSubstr("it did not answer in time"));
}

TEST(UnauthenticatedPeers, CannotImitateRankZero) {
  auto const imitate = [](Socket const& to) {
    send_all(to, make_handshake());
    std::string made(5 + kHmacBytes, '\0');
    made[4] = static_cast<char>(FrameKind::kAlive);
    send_all(to, made);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  };
  EXPECT_THAT(join_to(imitate), HasSubstr("it did not prove that it has the same token"));
}

// Returns two connections that are connected with each other.
std::pair<Connection, Connection> linked() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  std::pair<Connection, Connection> links{Connection(Socket(ends[0]), ConnectionSide::kRankZero),
                                          Connection(Socket(ends[1]), ConnectionSide::kOther)};
  links.first.set_key("key");
  links.second.set_key("key");
  return links;
}

// Returns the bytes that `from` sends for this frame.
std::string sent(Connection& from, Connection& to, FrameKind kind, std::string const& body) {
  EXPECT_TRUE(from.put(kind, body));
  EXPECT_EQ(from.exchange(), "");
  EXPECT_EQ(to.exchange(), "");
  std::string const bytes(to.incoming());
  to.consume(bytes.size());
  return bytes;
}

// Sends these bytes to `to` as if they came from its other end.
void give(Connection& raw, Connection& to, std::string const& bytes) {
  raw.put_plaintext(bytes);
  EXPECT_EQ(raw.exchange(), "");
  EXPECT_EQ(to.exchange(), "");
}

TEST(Frames, ArriveInOrder) {
  auto [zero, one] = linked();
  for (int i = 0; i < 3; ++i) give(zero, one, "");
  zero.put(FrameKind::kMembershipUpdate, "first");
  zero.put(FrameKind::kAlive, "");
  give(zero, one, "");
  EXPECT_EQ(one.next()->body, "first");
  EXPECT_EQ(one.next()->kind, FrameKind::kAlive);
  EXPECT_FALSE(one.next());
}

TEST(Frames, DetectAnyChangedBit) {
  for (std::size_t bit = 0; bit < 8 * (5 + 4 + kHmacBytes); ++bit) {
    auto [zero, one] = linked();
    std::string bytes = sent(zero, one, FrameKind::kMembershipUpdate, "body");
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    give(zero, one, bytes);
    // With a changed length the frame may wait for bytes that never arrive.
    bool taken = false;
    try {
      taken = one.next().has_value();
    } catch (FrameError const&) {
    }
    EXPECT_FALSE(taken) << "bit " << bit;
  }
}

TEST(Frames, DetectReplayLossAndReflection) {
  {
    auto [zero, one] = linked();
    std::string const bytes = sent(zero, one, FrameKind::kMembershipUpdate, "body");
    give(zero, one, bytes + bytes);
    EXPECT_TRUE(one.next());
    EXPECT_THROW(one.next(), FrameError);
  }
  {
    auto [zero, one] = linked();
    sent(zero, one, FrameKind::kMembershipUpdate, "dropped");
    give(zero, one, sent(zero, one, FrameKind::kMembershipUpdate, "second"));
    EXPECT_THROW(one.next(), FrameError);
  }
  {
    auto [zero, one] = linked();
    give(one, zero, sent(zero, one, FrameKind::kMembershipUpdate, "mirrored"));
    EXPECT_THROW(zero.next(), FrameError);
  }
}

TEST(Frames, RejectTooLargeLength) {
  auto [zero, one] = linked();
  give(zero, one, std::string("\xff\xff\xff\x7f\x06", 5));
  EXPECT_THROW(one.next(), FrameError);
}

TEST(StartMessage, MustContainReceiver) {
  RankInfo const mine = rank_info_of(request_of(1, 2, 1));
  StartMessage const start{.members = {request_of(0, 2, 1).mine, mine.member}};
  EXPECT_TRUE(matches(start, mine));
  StartMessage fewer = start;
  fewer.members.pop_back();
  EXPECT_FALSE(matches(fewer, mine));
  StartMessage altered = start;
  altered.members[1].cores = "";
  EXPECT_FALSE(matches(altered, mine));
}

}  // namespace
}  // namespace gpups::test::join_unauthenticated_test
