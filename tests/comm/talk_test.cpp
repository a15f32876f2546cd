// SPDX-License-Identifier: Apache-2.0
// Ranks tell each other things, and measure how fast.
#include "comm/talk.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "comm/group_impl.hpp"
#include "comm/probe.hpp"
#include "comm/transport/resumed.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::comm {
namespace {

TEST(Talk, GathersInRankOrder) {
  run_ranks(Group::threads(3), [](Group const& group) {
    Talk talk(*group.impl().transport);
    auto const all = talk.wait_gather("I am " + std::to_string(talk.rank()));
    if (talk.rank() == 0) {
      EXPECT_EQ(all, (std::vector<std::string>{"I am 0", "I am 1", "I am 2"}));
    } else {
      EXPECT_TRUE(all.empty());
    }
    EXPECT_EQ(talk.wait_tell(talk.rank() == 0 ? "good" : "not heard"), "good");
    EXPECT_EQ(talk.wait_say_to_all(std::string(static_cast<std::size_t>(talk.rank()), 'x')),
              (std::vector<std::string>{"", "x", "xx"}));
  });
}

TEST(Talk, KeepsWhatOthersSay) {
  run_ranks(Group::threads(3), [](Group const& group) {
    Talk talk(*group.impl().transport);
    if (talk.rank() == 0) {
      EXPECT_EQ(talk.wait_receive(2), "first of 2");
      EXPECT_EQ(talk.wait_receive(1), "first of 1");
      EXPECT_EQ(talk.wait_receive(1), "second of 1");
      EXPECT_EQ(talk.wait_receive(2), "second of 2");
    } else {
      for (char const* which : {"first", "second"})
        talk.wait_send(0, std::string(which) + " of " + std::to_string(talk.rank()));
    }
    talk.wait_tell("over");
  });
}

// Others may go on over the transport before this rank has ended its Talk: what they send comes first, in their order.
TEST(Talk, HandsOnWhatNobodyHasAskedFor) {
  auto const groups = Group::threads(3);
  for (int const rank : {1, 2}) {
    auto& transport = *groups[static_cast<std::size_t>(rank)].impl().transport;
    for (char const* what : {" talks", " goes on", " and on"}) {
      ASSERT_TRUE(transport.send(Rank{0}, std::to_string(rank) + what));
    }
  }
  auto& mine = groups[0].impl().transport;
  Talk talk(*mine);
  EXPECT_EQ(talk.wait_receive(1), "1 talks");
  EXPECT_EQ(talk.wait_receive(2), "2 talks");
  Resumed resumed(std::move(mine), talk.take_rest());
  ASSERT_TRUE(groups[1].impl().transport->send(Rank{0}, "1 for ever"));
  std::vector<std::string> said[3];
  while (auto const message = resumed.receive()) said[number(message->from)].push_back(message->body);
  EXPECT_EQ(said[1], (std::vector<std::string>{"1 goes on", "1 and on", "1 for ever"}));
  EXPECT_EQ(said[2], (std::vector<std::string>{"2 goes on", "2 and on"}));
  EXPECT_TRUE(talk.take_rest().empty());
}

TEST(Talk, GivesUpOnASilentRank) {
  auto const group = Group::threads(2);
  Talk talk(*group[0].impl().transport, 0.01);
  test::expect_error([&] { talk.wait_receive(1); }, {"rank 1 has not answered", "firewalls"});
}

TEST(Probe, MeasuresEachRank) {
  for (int ranks : {1, 2, 3}) {
    run_ranks(Group::threads(ranks), [ranks](Group const& group) {
      Talk talk(*group.impl().transport);
      Stream stream(Device::host(), 1);
      ProbeSizes const sizes{.echoes = 3, .messages = 2, .message_bytes = 1000, .payloads = 2, .payload_bytes = 1000};
      auto const speeds = wait_probe(talk, *group.impl().payload, stream, sizes);
      EXPECT_EQ(speeds.size(), talk.rank() == 0 ? static_cast<std::size_t>(ranks - 1) : 0U);
      for (Speed const& speed : speeds) {
        EXPECT_GT(speed.latency_us, 0);
        EXPECT_GT(speed.messages_bytes_per_s, 0);
        EXPECT_GT(speed.payloads_bytes_per_s, 0);
      }
    });
  }
}

}  // namespace
}  // namespace gpups::comm
