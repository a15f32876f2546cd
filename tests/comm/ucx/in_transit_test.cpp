// SPDX-License-Identifier: Apache-2.0
// Data that arrive over UCX: every changed byte is detected, and data of foreign processes are ignored.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "comm/bulk/bulk_transport.hpp"
#include "comm/transport/transport.hpp"
#include "comm/ucx/worker.hpp"
#include "gpups/error.hpp"
#include "kernels/base/checksum.hpp"
#include "tests/comm/ucx/foreign_process.hpp"

namespace gpups::test::in_transit_test {
namespace {

using namespace gpups::comm;
using testing::HasSubstr;

constexpr std::uint64_t kSession = 0x0123456789abcdef;
constexpr HashKey kOwn{1, 2}, kOfOne{3, 4};
constexpr Rank kOne{1};

// Rank 0 of two ranks on two machines; the test makes the messages of rank 1.
class InTransit : public testing::Test {
 protected:
  InTransit() { link->connect(Rank{0}, kSession, {{link->address(), false, kOwn}, {link->address(), false, kOfOne}}); }
  AmWireHeader header_of(AmKind kind, std::uint64_t number, std::string const& body) const {
    return ones.sign(Rank{0}, {kOne, kind, number, body.size()}, body.size(),
                     kernels::checksum(body.data(), body.size()));
  }
  // Sends a message, and makes progress on rank 0 until `come` returns true.
  template <class Come>
  void send(AmWireHeader const& header, std::string const& body, bool remote, Come come) {
    one.send(&header, sizeof header, body, remote, [this] { link->progress(); });
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!come() && std::chrono::steady_clock::now() < end) link->progress();
  }

  std::shared_ptr<UcxWorker> const link = std::make_shared<UcxWorker>();
  HeaderMac const ones{kOne, kSession, {kOfOne, kOwn}};
  ForeignUcxSender one{link->address()};
};

constexpr std::size_t kSmall = 20, kLarge = 200000;

TEST_F(InTransit, UnchangedDataArrives) {
  auto const transport = make_ucx_transport(link, nullptr);
  auto const bulk = make_ucx_bulk_transport(link);
  std::uint64_t next = 0;
  for (std::size_t const size : {kSmall, kLarge}) {
    std::string const body(size, 'b');
    std::optional<TransportMessage> message;
    send(header_of(AmKind::kMessage, next++, body), body, size == kLarge,
         [&] { return (message = transport->receive()).has_value(); });
    ASSERT_TRUE(message);
    EXPECT_EQ(message->body, body);
    Stream stream(Device::host(), 1);
    std::string into(size, ' ');
    auto const received = bulk->receive_into(stream, kOne, size, into.data(), size);
    bool done = false;
    send(header_of(AmKind::kData, size, body), body, size == kLarge,
         [&] { return done = bulk->done(received) || done; });
    EXPECT_TRUE(done);
    EXPECT_EQ(into, body);
  }
}

TEST_F(InTransit, DetectsEveryChangedByte) {
  int listener = 0, found = 0, handed_on = 0;
  std::string error;
  link->on_peer_error(&listener, [&](Rank peer, std::string const& what) {
    EXPECT_EQ(peer, kOne);
    error = what;
    ++found;
  });
  std::string into(kLarge, ' ');
  link->handle(AmKind::kData, [&](AmHeader const&, AmArrival const& arrival) {
    arrival.remote ? link->fetch(arrival, into.data(), [&] { ++handed_on; }) : void(++handed_on);
  });
  for (std::size_t const size : {kSmall, kLarge}) {
    std::string const body(size, 'b');
    bool const remote = size == kLarge;
    for (std::size_t i = 0; i < sizeof(AmWireHeader); ++i) {
      auto header = header_of(AmKind::kData, 7, body);
      reinterpret_cast<unsigned char*>(&header)[i] ^= 0x10;  // NOLINT
      send(header, body, remote, [&] { return found == 1; });
      ASSERT_EQ(std::exchange(found, 0), 1) << "byte " << i << " of the header";
    }
    for (std::size_t i = 0; i < size; i += remote ? 9999 : 1) {
      std::string altered = body;
      altered[i] ^= 1;
      send(header_of(AmKind::kData, 7, body), altered, remote, [&] { return found == 1; });
      ASSERT_EQ(std::exchange(found, 0), 1) << "byte " << i << " of " << size;
      EXPECT_THAT(error, HasSubstr("bulk data of " + std::to_string(size) + " bytes from it was corrupted on the way"));
    }
  }
  EXPECT_EQ(handed_on, 0);
  link->on_peer_error(&listener, nullptr);
  link->handle(AmKind::kData, nullptr);
}

TEST_F(InTransit, TransportAndBulkReportChange) {
  for (bool const remote : {false, true}) {
    auto const transport = make_ucx_transport(link, nullptr);
    auto const bulk = make_ucx_bulk_transport(link);
    std::string const body(remote ? kLarge : kSmall, 'b');
    std::string altered = body;
    altered.back() = 'x';
    send(header_of(AmKind::kMessage, 0, body), altered, remote, [] { return true; });
    auto const expect = [&](auto const& call) {
      try {
        for (;;) call();
      } catch (PeerError const& error) {
        EXPECT_EQ(error.peer(), kOne);
        EXPECT_THAT(error.what(), HasSubstr("rank 1"));
        EXPECT_THAT(error.what(),
                    HasSubstr("a message of " + std::to_string(body.size()) + " bytes from it was corrupted"));
      }
    };
    expect([&] { transport->receive(); });
    expect([&] { bulk->progress(); });
  }
}

TEST_F(InTransit, ErrorNamesBothVersions) {
  auto const transport = make_ucx_transport(link, nullptr);
  auto header = header_of(AmKind::kMessage, 0, "");
  header.protocol = 9;
  send(header, "", false, [] { return true; });
  try {
    for (;;) transport->receive();
  } catch (PeerError const& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("version 9 of the data protocol, and this rank version " + std::to_string(kUcxProtocol)));
  }
}

// A process that knows the address of rank 0, but not the secrets of the job.
TEST(ForeignProcess, DataOverUcxIsIgnored) {
  int to_child[2];
  ASSERT_EQ(pipe(to_child), 0);
  pid_t const child = fork();
  if (child == 0) {
    std::string address(1 << 16, '\0');
    ssize_t const got = read(to_child[0], address.data(), address.size());
    if (got <= 0) _exit(1);
    address.resize(static_cast<std::size_t>(got));
    ForeignUcxSender sender(address);
    HeaderMac const macs(kOne, std::uint64_t(getpid()) * 0x9e3779b97f4a7c15, {kOfOne, kOwn});
    for (std::uint32_t kind = 0; kind < 2 * kAmKinds; ++kind) {
      for (std::string const& body : {std::string(), std::string("the sender's"), std::string(kLarge, 's')}) {
        auto const header = macs.sign(Rank{0}, {kOne, static_cast<AmKind>(kind), 0, 0}, body.size(), {});
        for (std::size_t bytes : {std::size_t{0}, std::size_t{8}, sizeof header}) {
          sender.send(&header, bytes, body, body.size() == kLarge, [] {});
        }
      }
    }
    _exit(0);
  }
  auto const link = std::make_shared<UcxWorker>(), other = std::make_shared<UcxWorker>();
  std::string const address = link->address();
  link->connect(Rank{0}, kSession, {{address, true, kOwn}, {other->address(), true, kOfOne}});
  other->connect(kOne, kSession, {{address, true, kOfOne}, {other->address(), true, kOwn}});
  auto const transport = make_ucx_transport(link, nullptr), one = make_ucx_transport(other, nullptr);
  ASSERT_EQ(write(to_child[1], address.data(), address.size()), static_cast<ssize_t>(address.size()));
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) EXPECT_FALSE(transport->receive());
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(one->send(Rank{0}, "rank 1's"));
  std::optional<TransportMessage> message;
  while (!(message = transport->receive())) one->receive();
  EXPECT_EQ(message->body, "rank 1's");
  one->leave();
  transport->leave();
  ::close(to_child[0]);
  ::close(to_child[1]);
}

}  // namespace
}  // namespace gpups::test::in_transit_test
