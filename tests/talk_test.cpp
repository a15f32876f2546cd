// SPDX-License-Identifier: Apache-2.0
// Ranks tell each other things, and measure how fast.
#include "comm/talk.hpp"

#include <gtest/gtest.h>

#include <string>

#include "comm/group_impl.hpp"
#include "comm/probe.hpp"
#include "tests/expect_error.hpp"

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
