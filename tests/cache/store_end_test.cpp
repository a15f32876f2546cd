// SPDX-License-Identifier: Apache-2.0
// The end of a Store: ranks that still wait for it get an error at once. A group has one Store for each rank.
#include <gtest/gtest.h>

#include <functional>
#include <latch>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::test::store_end_test {
namespace {

constexpr int kRanks = 3;
constexpr Rank kEnding{1};

// A rank with a store of one table, whose steps read the same rows of all owners.
struct Member {
  explicit Member(Group const& of) : group(of) {
    store.emplace(group, StoreOptions{.threads = 1});
    table = store->add_table({.name = "rows", .dim = 4});
    stream.emplace(store->make_stream());
    for (std::uint64_t key = 0; key < 50; ++key) keys.push_back(Key{key});
  }

  bool ends() const { return group.rank() == kEnding; }
  void push() {
    Array<Key> const given = to_device(*stream, keys);
    TableBatch const part{.table = table, .keys = given};
    PreparedBatch const batch = store->prepare(*stream, store->clock(), {&part, 1}, 1);
    store->wait_ready(batch);
    Matrix<float> sources(Device::host(), keys.size(), 4);
    memory::fill_bytes(*stream, sources.view().data(), 0, sources.view().flat().bytes());
    TableGradients const gradients{.sources = sources};
    store->push(*stream, batch, {&gradients, 1});
  }
  void step() {
    push();
    store->advance_clock();
  }
  void look_up() {
    Array<Key> const given = to_device(*stream, keys);
    Matrix<float> const rows(Device::host(), keys.size(), 4);
    store->lookup(*stream, table, given, rows, {});
  }

  Group group;
  std::optional<Store> store;
  TableId table{};
  std::optional<Stream> stream;
  std::vector<Key> keys;
};

// All ranks call `before`. Then one rank's Store ends and all others call `after`, which throws an error that names the
// rank. The rank stays in the group until the others have the error.
struct Ending {
  char const* name;
  std::function<void(Member&)> before, after;
};

std::vector<Ending> endings() {
  auto const steps = [](Member& me) {
    me.step();
    me.step();
  };
  auto const step_and_push = [](Member& me) {
    me.step();
    me.push();
  };
  auto const end_step = [](Member& me) {
    me.store->advance_clock();
    me.store->wait_applied();
  };
  auto const step_and_flush = [](Member& me) {
    me.step();
    me.store->wait_applied();
  };
  auto const look_up_until_it_ends = [](Member& me) {
    for (;;) me.look_up();
  };
  return {{"between push and advance_clock", step_and_push, end_step},
          {"between steps", steps, step_and_flush},
          {"before its first call", [](Member&) {}, step_and_flush},
          {"before a barrier", steps, [](Member& me) { me.store->wait_barrier(); }},
          {"between look-ups", steps, look_up_until_it_ends},
          {"before the table is hashed", steps, [](Member& me) { me.store->table_hash(); }}};
}

// all_know: counts the ranks that have the error; null in a simulation, whose ranks run one at a time.
void end_one(Group const& group, Ending const& ending, std::latch* all_know) {
  Member me(group);
  if (me.ends()) {
    ending.before(me);
    me.store.reset();
    if (all_know != nullptr) all_know->wait();
    return;
  }
  try {
    ending.before(me);  // may throw already, if another rank has the error
    ending.after(me);
    ADD_FAILURE() << "a rank's Store has ended " << ending.name << ", and the others got no error";
  } catch (PeerError const& error) {
    EXPECT_EQ(error.peer(), kEnding) << ending.name << ": " << error.what();
    std::string const text = error.what();
    // In a simulation the rank leaves the group with its Store, and this may be noticed first.
    bool const is_named = text.find("rank 1 is lost (the Store of rank 1 has ended") != std::string::npos ||
                          (all_know == nullptr && text.find("rank 1 is lost (rank 1 has left") != std::string::npos);
    EXPECT_TRUE(is_named) << ending.name << ": " << text;
  }
  if (all_know != nullptr) all_know->count_down();
}

TEST(StoreEnd, WaitingRanksThrowPeerError) {
  for (Ending const& ending : endings()) {
    std::latch all_know(kRanks - 1);
    run_ranks(Group::threads(kRanks), [&](Group const& group) { end_one(group, ending, &all_know); });
  }
}

// With any messages in flight.
TEST(StoreEnd, SimulatedRanksThrowPeerError) {
  for (Ending const& ending : endings()) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      run_ranks(Group::simulated(kRanks, {.seed = seed}), [&](Group const& group) { end_one(group, ending, nullptr); });
    }
  }
}

TEST(StoreEnd, ErrorNamesAwaitedData) {
  std::latch all_know(1);
  run_ranks(Group::threads(2), [&](Group const& group) {
    Member me(group);
    me.step();
    me.store->wait_applied();
    if (me.ends()) {
      me.store.reset();
      return all_know.wait();
    }
    me.store->advance_clock();
    try {
      me.store->wait_applied();
      ADD_FAILURE();
    } catch (PeerError const& error) {
      // The error comes before the step's messages are sent, or while this rank waits for the answers.
      EXPECT_NE(std::string(error.what()).find("rank 0 waited for the gradients of step 1 from rank 1"),
                std::string::npos)
          << error.what();
    }
    all_know.count_down();
  });
}

// A rank may end after its last step while others are still in it: they wait for nothing more from it.
TEST(StoreEnd, IsNoErrorAfterLastStep) {
  auto const body = [](Group const& group) {
    Member me(group);
    for (int step = 0; step < 4; ++step) me.step();
    // Some ranks announce rows of a step that never begins.
    if (me.group.rank() != Rank{2}) {
      Array<Key> const given = to_device(*me.stream, me.keys);
      TableBatch const part{.table = me.table, .keys = given};
      me.store->prepare(*me.stream, me.store->clock() + 2, {&part, 1}, 1);
    }
    if (me.group.rank() == Rank{0}) me.store->wait_applied();
    me.store.reset();
  };
  run_ranks(Group::threads(kRanks), body);
  for (std::uint64_t seed = 0; seed < 100; ++seed) run_ranks(Group::simulated(kRanks, {.seed = seed}), body);
}

// A program that catches an exception which has destroyed its Store can no longer use its group, and the other ranks
// get an error.
TEST(StoreEnd, ByCaughtExceptionIsReportedByCollectives) {
  auto const body = [](Group const& group) {
    try {
      Member me(group);
      me.step();
      if (me.ends()) throw std::runtime_error("a disk is full");
      me.step();
      me.store->wait_applied();
      ADD_FAILURE() << "a rank's Store has ended, and the others got no error";
    } catch (PeerError const& error) {
      EXPECT_EQ(error.peer(), kEnding) << error.what();
    } catch (std::runtime_error const&) {
      Stream stream(Device::host(), 1);
      std::vector<std::int64_t> values(10, 1);
      expect_error([&] { group.wait_allreduce(stream, group.begin_allreduce(stream, values)); },
                   {"rank 1 has left its group", "an exception has ended its Store"});
    }
  };
  run_ranks(Group::threads(kRanks), body);
  for (std::uint64_t seed = 0; seed < 40; ++seed) run_ranks(Group::simulated(kRanks, {.seed = seed}), body);
}

TEST(StoreEnd, GroupRejectsSecondStore) {
  auto const reject = [](Group const& group) {
    expect_error([&] { Store(group, {.threads = 1}); },
                 {"a second Store is created on one membership", "put all tables into one Store", "another Group"});
  };
  auto const body = [&](Group const& group) {
    {
      Member me(group);
      me.step();
      reject(group);
      me.step();
      me.store->wait_applied();
      EXPECT_EQ(me.store->size(me.table), me.keys.size());
    }
    reject(group);
  };
  body(Group::alone());
  run_ranks(Group::threads(kRanks), body);
  for (std::uint64_t seed = 0; seed < 20; ++seed) run_ranks(Group::simulated(kRanks, {.seed = seed}), body);
}

}  // namespace
}  // namespace gpups::test::store_end_test
