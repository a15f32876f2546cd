// SPDX-License-Identifier: Apache-2.0
// Calls of Store::localize(): the messages that ranks send, errors of one rank, and many keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::test::localize_calls_test {
namespace {

TableId const kTable{0};

// Returns the messages without data that this rank sends to each rank in a call.
std::vector<std::uint64_t> messages_of_call(Store& store, Stream& stream, std::vector<Key> const& keys) {
  store.wait_barrier();
  auto const before = store.stats();
  store.localize(stream, kTable, View<Key const>(keys));
  auto const after = store.stats();
  std::vector<std::uint64_t> messages;
  for (std::size_t q = 0; q < after.peers.size(); ++q) {
    messages.push_back(after.peers[q].sent.messages.control - before.peers[q].sent.messages.control);
  }
  return messages;
}

// A claim, a grant, and the end of the call; and, if rows move, a request for them and the reply to that of the other
// rank. So a call takes two and a half round trips: a grant is the reply to a claim, and the end is half a round trip.
TEST(LocalizeCalls, SendFiveMessagesToEachRank) {
  constexpr std::uint64_t kMessages = 3, kMessagesWithRows = 5, kKeysOfPair = 20;
  for (int const ranks : {2, 4}) {
    run_ranks(Group::threads(ranks), [&](Group const& group) {
      Store store(group, {.threads = 1});
      store.add_table({.name = "t", .dim = 2});
      auto stream = store.make_stream();
      std::uint64_t const me = number(store.rank()), n = static_cast<std::uint64_t>(store.ranks());
      std::vector<Key> first, second;  // row k belongs to rank k % n, then to rank k / n % n
      for (std::uint64_t k = 0; k < n * n * kKeysOfPair; ++k) {
        if (k % n == me) first.push_back(Key{k});
        if (k / n % n == me) second.push_back(Key{k});
      }
      store.localize(stream, kTable, View<Key const>(first));
      std::vector<std::uint64_t> expected(n, kMessagesWithRows);
      expected[me] = 0;
      EXPECT_EQ(messages_of_call(store, stream, second), expected);
      std::fill(expected.begin(), expected.end(), kMessages);
      expected[me] = 0;
      EXPECT_EQ(messages_of_call(store, stream, second), expected);  // they are there already
      EXPECT_EQ(messages_of_call(store, stream, {}), expected);
      store.wait_barrier();  // a look-up would make other ranks send replies while they count
      EXPECT_EQ(store.where(kTable, second[0]).owner, store.rank());
      store.wait_barrier();
    });
  }
}

// Ranks that are not at fault throw the error, too, no row has moved, and the next call works.
TEST(LocalizeCalls, ErrorOfOneRankIsThrownOnAllRanks) {
  constexpr int kRanks = 3;
  run_ranks(Group::threads(kRanks), [](Group const& group) {
    Store store(group, {.threads = 1});
    store.add_table({.name = "t", .dim = 2});
    auto stream = store.make_stream();
    bool const is_at_fault = store.rank() == Rank{1};
    std::vector<Key> keys;
    for (std::uint64_t k = 0; k < 30; ++k) keys.push_back(Key{kRanks * k + number(store.rank())});
    TableBatch const part{.table = kTable, .keys = View<Key const>(keys)};
    PreparedBatch batch;
    if (is_at_fault) batch = store.prepare(stream, Clock{0}, {&part, 1}, 1);
    expect_error([&] { store.localize(stream, kTable, View<Key const>(keys)); }, {"is prepared for step 0"});
    for (Key const key : keys) {
      auto const row = store.where(kTable, key);
      EXPECT_EQ(row.owner, row.home);
    }
    if (is_at_fault) {
      Matrix<float> const sources(Device::host(), keys.size(), 2);
      memory::fill_bytes(stream, sources.view().data(), 0, sources.view().flat().bytes());
      TableGradients const gradients{.sources = sources};
      store.push(stream, batch, {&gradients, 1});
    }
    store.advance_clock();
    store.localize(stream, kTable, View<Key const>(keys));
    for (Key const key : keys) EXPECT_EQ(store.where(kTable, key).owner, store.rank());
    store.wait_ready(store.prepare(stream, Clock{1}, {&part, 1}, 1));  // other ranks answer while they are there
    store.wait_barrier();
  });
}

// The other ranks do not wait for it forever.
TEST(LocalizeCalls, LostRankIsNamed) {
  try {
    run_ranks(Group::threads(3), [](Group const& group) {
      Store store(group, {.threads = 1});
      store.add_table({.name = "t", .dim = 2});
      auto stream = store.make_stream();
      std::vector<Key> const keys{Key{number(store.rank())}};
      store.localize(stream, kTable, View<Key const>(keys));
      if (store.rank() == Rank{2}) throw Error("rank 2 has ended itself");
      store.localize(stream, kTable, View<Key const>(keys));
      ADD_FAILURE() << "the call has returned";
    });
    ADD_FAILURE() << "no rank has failed";
  } catch (Error const& error) {
    EXPECT_NE(std::string(error.what()).find("rank 2 has ended itself"), std::string::npos) << error.what();
  }
}

// More keys of a home than fit in one message.
TEST(LocalizeCalls, ManyKeysMove) {
  constexpr std::uint64_t kKeys = 300'000;
  run_ranks(Group::threads(2), [](Group const& group) {
    Store store(group, {.threads = 1});
    store.add_table({.name = "t", .dim = 1});
    auto stream = store.make_stream();
    std::vector<Key> keys;
    for (std::uint64_t k = 0; store.rank() == Rank{0} && k < kKeys; ++k) keys.push_back(Key{k});
    store.localize(stream, kTable, View<Key const>(keys));
    for (std::uint64_t k = 0; k < kKeys; k += kKeys / 20 - 1) {
      EXPECT_EQ(store.where(kTable, Key{k}).owner, Rank{0});
    }
    store.wait_barrier();
  });
}

// Bytes that take several messages arrive in order.
TEST(LocalizeCalls, GathersKeepManyBytes) {
  constexpr std::size_t kBytes = 5 << 19;
  run_ranks(Group::threads(3), [](Group const& group) {
    Store store(group, {.threads = 1});
    auto const bytes_of = [](std::uint32_t rank) {
      std::string bytes(kBytes * rank + rank, 'x');
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>((i / 1000 + rank) % 251);
      return bytes;
    };
    auto const all = store.wait_allgather(bytes_of(number(store.rank())));
    for (std::uint32_t q = 0; q < all.size(); ++q) EXPECT_TRUE(all[q] == bytes_of(q)) << q;
    auto const at_root = store.wait_gather_to(Rank{2}, bytes_of(number(store.rank())));
    for (std::uint32_t q = 0; q < all.size(); ++q) {
      EXPECT_TRUE(at_root[q] == (store.rank() == Rank{2} ? bytes_of(q) : std::string())) << q;
    }
  });
}

}  // namespace
}  // namespace gpups::test::localize_calls_test
