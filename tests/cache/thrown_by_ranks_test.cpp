// SPDX-License-Identifier: Apache-2.0
// A rank's body throws something that is no std::exception: all other ranks get an error at once, and run_ranks()
// throws an Error in which the thrown object is nested.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::test::thrown_by_ranks_test {
namespace {

enum class At { kBeforeTheStore, kWithAStore, kPrepared, kPushed, kRoundInFlight, kAllreduceInFlight, kInScan };
constexpr At kAll[] = {At::kBeforeTheStore, At::kWithAStore,        At::kPrepared, At::kPushed,
                       At::kRoundInFlight,  At::kAllreduceInFlight, At::kInScan};

// Trains without end; the last rank throws at the point `at` of step 3.
void train(Group const& group, At at) {
  bool const throws = group.rank() == Rank{static_cast<std::uint32_t>(group.size() - 1)};
  auto const maybe = [&](At here, Clock clock) {
    if (throws && here == at && clock == Clock{3}) throw 42;
  };
  maybe(At::kBeforeTheStore, Clock{3});
  Store store(group, {.threads = 1, .wait_timeout_s = 3000});
  store.add_table({.name = "t", .dim = 4});
  auto stream = store.make_stream();
  for (;;) {
    maybe(At::kWithAStore, store.clock());
    std::vector<Key> const keys{Key{1}, Key{2}, Key{static_cast<std::uint64_t>(number(store.clock()))}};
    TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys), .offsets = {}};
    auto const batch = store.prepare(stream, store.clock(), {&part, 1}, 1);
    maybe(At::kPrepared, store.clock());
    store.wait_ready(batch);
    Matrix<float> const sources(Device::host(), keys.size(), 4);
    memory::fill_bytes(stream, sources.view().data(), 0, sources.view().flat().bytes());
    TableGradients const gradients{.sources = sources};
    store.push(stream, batch, {&gradients, 1});
    maybe(At::kPushed, batch.clock());
    std::vector<float> sums(100, 1.0F);
    auto const request = group.begin_allreduce(stream, View<float>(sums));
    maybe(At::kAllreduceInFlight, batch.clock());
    group.wait_allreduce(stream, request);
    store.advance_clock();
    maybe(At::kRoundInFlight, batch.clock());
    store.scan(stream, TableId{0}, [&](auto, auto) { maybe(At::kInScan, batch.clock()); });
    store.wait_barrier();
  }
}

void expect_42(std::vector<Group> const& group, At at) {
  std::atomic<int> informed = 0;
  int thrown = 0;
  try {
    run_ranks(group, [&](Group const& member) {
      try {
        train(member, at);
      } catch (PeerError const& error) {
        EXPECT_NE(std::string(error.what()).find("no std::exception"), std::string::npos) << error.what();
        ++informed;
        throw;
      }
    });
  } catch (Error const& error) {
    EXPECT_EQ(dynamic_cast<PeerError const*>(&error), nullptr) << error.what();
    std::string const last = "rank " + std::to_string(group.size() - 1) + " threw something that is no std::exception";
    EXPECT_NE(std::string(error.what()).find(last), std::string::npos) << error.what();
    try {
      std::rethrow_if_nested(error);
    } catch (int what) {
      thrown = what;
    }
  }
  EXPECT_EQ(thrown, 42);
  EXPECT_EQ(informed, static_cast<int>(group.size()) - 1);
}

TEST(ThrownByRanks, NonExceptionEndsAllRanks) {
  for (At const at : kAll) {
    for (int const ranks : {1, 2, 4}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, point " << static_cast<int>(at));
      expect_42(Group::threads(ranks), at);
      expect_42(Group::simulated(ranks, {.seed = 7}), at);
    }
  }
}

TEST(ThrownByRanks, RejectsEmptyFunction) {
  expect_error([] { run_ranks(Group::threads(2), {}); }, {"an empty function"});
}

}  // namespace
}  // namespace gpups::test::thrown_by_ranks_test
