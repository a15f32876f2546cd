// SPDX-License-Identifier: Apache-2.0
// The control channel, and the benchmark of links.
#include "comm/transport/control_channel.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "comm/bulk/link_benchmark.hpp"
#include "comm/group/group_impl.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::comm::control_channel_test {
namespace {

TEST(ControlChannel, GathersInRankOrder) {
  run_ranks(Group::threads(3), [](Group const& group) {
    ControlChannel channel(*group.impl().transport);
    auto const all = channel.wait_gather_to_root("I am " + std::to_string(channel.rank()));
    if (channel.rank() == 0) {
      EXPECT_EQ(all, (std::vector<std::string>{"I am 0", "I am 1", "I am 2"}));
    } else {
      EXPECT_TRUE(all.empty());
    }
    EXPECT_EQ(channel.wait_broadcast(channel.rank() == 0 ? "good" : "ignored"), "good");
    EXPECT_EQ(channel.wait_allgather(std::string(static_cast<std::size_t>(channel.rank()), 'x')),
              (std::vector<std::string>{"", "x", "xx"}));
  });
}

TEST(ControlChannel, KeepsMessagesOfOtherRanks) {
  run_ranks(Group::threads(3), [](Group const& group) {
    ControlChannel channel(*group.impl().transport);
    if (channel.rank() == 0) {
      EXPECT_EQ(channel.wait_receive(2), "first of 2");
      EXPECT_EQ(channel.wait_receive(1), "first of 1");
      EXPECT_EQ(channel.wait_receive(1), "second of 1");
      EXPECT_EQ(channel.wait_receive(2), "second of 2");
    } else {
      for (char const* which : {"first", "second"})
        channel.wait_send(0, std::string(which) + " of " + std::to_string(channel.rank()));
    }
    channel.wait_broadcast("over");
  });
}

// Other ranks may use the transport before this rank has ended its ControlChannel. Their messages are received first,
// in their order.
TEST(ControlChannel, PassesOnUnreadMessages) {
  auto const groups = Group::threads(3);
  for (int const rank : {1, 2}) {
    auto& transport = *groups[static_cast<std::size_t>(rank)].impl().transport;
    for (char const* what : {" first", " second", " third"}) {
      ASSERT_TRUE(transport.send(Rank{0}, std::to_string(rank) + what));
    }
  }
  auto& mine = groups[0].impl().transport;
  ControlChannel channel(*mine);
  EXPECT_EQ(channel.wait_receive(1), "1 first");
  EXPECT_EQ(channel.wait_receive(2), "2 first");
  ReplayingTransport resumed(std::move(mine), channel.take_unread());
  ASSERT_TRUE(groups[1].impl().transport->send(Rank{0}, "1 last"));
  std::vector<std::string> received[3];
  while (auto const message = resumed.receive()) received[number(message->from)].push_back(message->body);
  EXPECT_EQ(received[1], (std::vector<std::string>{"1 second", "1 third", "1 last"}));
  EXPECT_EQ(received[2], (std::vector<std::string>{"2 second", "2 third"}));
  EXPECT_TRUE(channel.take_unread().empty());
}

TEST(ControlChannel, TimesOutOnSilentRank) {
  auto const group = Group::threads(2);
  ControlChannel channel(*group[0].impl().transport, 0.01);
  test::expect_error([&] { channel.wait_receive(1); }, {"rank 1 has not answered", "firewalls"});
}

TEST(LinkBenchmark, MeasuresEachRank) {
  for (int ranks : {1, 2, 3}) {
    run_ranks(Group::threads(ranks), [ranks](Group const& group) {
      ControlChannel channel(*group.impl().transport);
      Stream stream(Device::host(), 1);
      LinkBenchmarkSizes const sizes{
          .echoes = 3, .messages = 2, .message_bytes = 1000, .payloads = 2, .payload_bytes = 1000};
      auto const speeds = wait_benchmark_links(channel, *group.impl().bulk, stream, sizes);
      EXPECT_EQ(speeds.size(), channel.rank() == 0 ? static_cast<std::size_t>(ranks - 1) : 0U);
      for (LinkSpeed const& speed : speeds) {
        EXPECT_GT(speed.latency_us, 0);
        EXPECT_GT(speed.messages_bytes_per_s, 0);
        EXPECT_GT(speed.payloads_bytes_per_s, 0);
      }
    });
  }
}

}  // namespace
}  // namespace gpups::comm::control_channel_test
