// SPDX-License-Identifier: Apache-2.0
// The simulated group: the seed decides all events, and deadlocks are detected.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/group/group_impl.hpp"
#include "gpups/error.hpp"

namespace gpups::simulation_test {
namespace {

// run_ranks() sends such messages when a body has returned.
bool closes_channel(std::string const& body) {
  return body.size() == 1 && static_cast<std::uint8_t>(body.front()) < comm::kChannels;
}

// Receiver, sender and body of messages. One rank of a simulation runs at a time, so all ranks can append to it.
using Trace = std::vector<std::tuple<Rank, Rank, std::string>>;

// A rank's protocol, which keeps all messages that arrive.
struct Node {
  explicit Node(Group const& g, Trace* all = nullptr) : group(g), impl(g.impl()), trace(all) {
    impl.transport->on_arrival([this] { impl.driver->wake(); });
    impl.bulk->on_arrival([this] { impl.driver->wake(); });
    impl.driver->start([this] { return progress(); });
  }
  ~Node() {
    impl.driver->stop();
    impl.transport->on_arrival(nullptr);
    impl.bulk->on_arrival(nullptr);
  }

  bool progress() {
    if (!error.empty()) return false;
    try {
      bool any = impl.bulk->progress();
      while (auto message = impl.transport->receive()) {
        any = true;
        if (closes_channel(message->body)) continue;
        got[message->from].push_back(message->body);
        if (trace != nullptr) trace->emplace_back(group.rank(), message->from, message->body);
      }
      return any;
    } catch (PeerError const& lost) {
      error = lost.what();
      return true;
    }
  }
  void wait(std::function<bool()> const& done) {
    bool const in_time = impl.driver->wait([&] { return !error.empty() || done(); }, 60);
    if (!error.empty()) throw PeerError(Rank{0}, error);
    if (!in_time) throw Error("nothing can happen any more");
  }
  void send_all(std::string const& body) {
    for (int to = 0; to < group.size(); ++to) {
      ASSERT_TRUE(impl.transport->send(Rank{static_cast<std::uint32_t>(to)}, body));
    }
  }

  Group group;
  Group::Impl& impl;
  Trace* trace;
  std::map<Rank, std::vector<std::string>> got;
  std::string error;
};

// Runs rounds in which each rank sends a message to each rank, and waits for the messages of all ranks.
void exchange_rounds(Group const& group, int rounds, Trace* trace = nullptr) {
  Node node(group, trace);
  for (int round = 0; round < rounds; ++round) {
    node.send_all(std::to_string(round));
    node.wait([&] {
      for (int from = 0; from < group.size(); ++from) {
        if (node.got[Rank{static_cast<std::uint32_t>(from)}].size() <= static_cast<std::size_t>(round)) return false;
      }
      return true;
    });
  }
  for (auto const& [from, bodies] : node.got) {
    for (std::size_t i = 0; i < bodies.size(); ++i) EXPECT_EQ(bodies[i], std::to_string(i));
  }
}

// Returns the messages of all ranks in the order in which they arrived.
Trace trace_of(int ranks, Simulation const& options) {
  Trace trace;
  run_ranks(Group::simulated(ranks, options), [&](Group const& member) { exchange_rounds(member, 5, &trace); });
  return trace;
}

TEST(Simulation, SameSeedGivesSameRun) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(trace_of(4, {.seed = seed}), trace_of(4, {.seed = seed})) << seed;
  }
}

TEST(Simulation, DifferentSeedsGiveDifferentRuns) {
  std::set<Trace> traces;
  for (std::uint64_t seed = 0; seed < 50; ++seed) traces.insert(trace_of(3, {.seed = seed}));
  EXPECT_EQ(traces.size(), 50U);
}

TEST(Simulation, EveryOptionChangesTheRun) {
  Trace const plain = trace_of(3, {.seed = 1});
  EXPECT_NE(plain, trace_of(3, {.seed = 1, .delay_ms_max = 0}));
  EXPECT_NE(plain, trace_of(3, {.seed = 1, .stall_probability = 1}));
  EXPECT_NE(trace_of(3, {.seed = 1, .stall_probability = 1}),
            trace_of(3, {.seed = 1, .stall_probability = 1, .stall_ms_max = 500}));
}

// The order of two senders' messages, and the order in which ranks end, depend on the seed.
TEST(Simulation, RanksFinishInAnyOrder) {
  std::set<std::vector<Rank>> arrived, ended;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<Rank> order, ends;
    run_ranks(Group::simulated(3, {.seed = seed, .stall_probability = 0.5}), [&](Group const& member) {
      Node node(member);
      if (member.rank() != Rank{0}) {
        EXPECT_TRUE(node.impl.transport->send(Rank{0}, "here"));
      }
      node.wait([&] {
        if (member.rank() == Rank{0} && node.got.size() > order.size()) {
          for (auto const& [from, bodies] : node.got) {
            if (std::find(order.begin(), order.end(), from) == order.end()) order.push_back(from);
          }
        }
        return member.rank() != Rank{0} || node.got.size() == 2;
      });
      ends.push_back(member.rank());
    });
    arrived.insert(order);
    ended.insert(ends);
  }
  EXPECT_EQ(arrived.size(), 2U);
  EXPECT_EQ(ended.size(), 6U);
}

TEST(Simulation, BulkTransfersArrive) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    run_ranks(Group::simulated(2, {.seed = seed}), [](Group const& member) {
      Node node(member);
      Stream stream(Device::host(), 1);
      Rank const other{1 - number(member.rank())};
      std::vector<std::uint32_t> const mine(1000, number(member.rank()));
      std::vector<std::uint32_t> first(1000), second(1000);
      auto& bulk = *node.impl.bulk;
      auto const a = bulk.send(stream, other, 1, mine.data(), 4000);
      auto const b = bulk.send(stream, other, 2, mine.data(), 4);
      auto const c = bulk.receive_into(stream, other, 2, second.data(), 4);
      auto const d = bulk.receive_into(stream, other, 1, first.data(), 4000);
      std::set<comm::Transfer> open{a, b, c, d};
      node.wait([&] {
        std::erase_if(open, [&](comm::Transfer transfer) { return bulk.done(transfer); });
        return open.empty();
      });
      EXPECT_EQ(first, std::vector<std::uint32_t>(1000, number(other)));
      EXPECT_EQ(second[0], number(other));
    });
  }
}

TEST(Simulation, WaitWithoutEventsEnds) {
  int ended = 0;
  EXPECT_THROW(run_ranks(Group::simulated(3, {}),
                         [&](Group const& member) {
                           Node node(member);
                           EXPECT_FALSE(member.impl().driver->wait([] { return false; }, 1e9));
                           ++ended;
                           node.wait([] { return false; });
                         }),
               Error);
  EXPECT_EQ(ended, 3);
}

// A protocol that does not wake its driver gets no progress, which is detected.
TEST(Simulation, DetectsMissingWake) {
  EXPECT_THROW(run_ranks(Group::simulated(2, {}),
                         [](Group const& member) {
                           Node node(member);
                           node.wait([&, started = false]() mutable { return std::exchange(started, true); });
                           member.impl().transport->on_arrival(nullptr);
                           node.send_all("x");
                           node.wait([&] { return node.got.size() == 2; });
                         }),
               Error);
}

TEST(Simulation, RethrowsFailureAndEndsOtherRanks) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    int lost = 0;
    auto const body = [&](Group const& member) {
      if (member.rank() == Rank{1}) throw std::out_of_range("no such row");
      try {
        exchange_rounds(member, 1000);
      } catch (PeerError const& error) {
        EXPECT_NE(std::string(error.what()).find("no such row"), std::string::npos) << error.what();
        ++lost;
        throw;
      }
    };
    EXPECT_THROW(run_ranks(Group::simulated(3, {.seed = seed}), body), std::out_of_range);
    EXPECT_EQ(lost, 2);
  }
}

// A rank that leaves without a message or a wait ends the waits of the others.
TEST(Simulation, EarlyLeaveIsReported) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    int reported = 0;
    auto const body = [&](Group const& member) {
      if (member.rank() == Rank{1}) return;
      std::vector<std::int64_t> values(10, 1);
      Stream stream(Device::host(), 1);
      try {
        member.wait_allreduce(stream, member.begin_allreduce(stream, values));
      } catch (PeerError const& error) {
        EXPECT_EQ(error.peer(), Rank{1}) << error.what();
        ++reported;
        throw;
      }
    };
    EXPECT_THROW(run_ranks(Group::simulated(3, {.seed = seed}), body), PeerError);
    EXPECT_EQ(reported, 2);
  }
}

TEST(Simulation, RejectsWaitOutsideRun) {
  auto const group = Group::simulated(2, {});
  EXPECT_THROW(group[0].impl().driver->wait([] { return true; }, 1), Error);
}

TEST(Simulation, RejectsInvalidOptions) {
  EXPECT_THROW(Group::simulated(0, {}), Error);
  EXPECT_THROW(Group::simulated(1025, {}), Error);
  EXPECT_THROW(Group::simulated(2, {.delay_ms_max = -1}), Error);
  EXPECT_THROW(Group::simulated(2, {.stall_ms_max = 1e300}), Error);
  EXPECT_THROW(Group::simulated(2, {.stall_probability = 1.5}), Error);
}

}  // namespace
}  // namespace gpups::simulation_test
