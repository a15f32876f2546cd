// SPDX-License-Identifier: Apache-2.0
// Allreduces of integers over the ranks of a group: sums, concurrent work, bytes sent, and errors.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test::allreduce_test {
namespace {

using Words = std::vector<std::int64_t>;

// Returns the terms of a rank. They use all 64 bits, so that sums wrap.
Words words_of(int rank, std::size_t n, std::uint64_t seed) {
  Random random(seed * 1000 + static_cast<std::uint64_t>(rank));
  Words words(n);
  for (auto& word : words) word = static_cast<std::int64_t>(random());
  return words;
}

Words sums_of(int ranks, std::size_t n, std::uint64_t seed) {
  Words sums(n, 0);
  for (int rank = 0; rank < ranks; ++rank) {
    auto const words = words_of(rank, n, seed);
    for (std::size_t i = 0; i < n; ++i) (void)__builtin_add_overflow(sums[i], words[i], &sums[i]);  // wraps
  }
  return sums;
}

// One rank: its group, a store that runs at the same time, and a stream.
struct Member {
  explicit Member(Group const& of, StoreOptions const& options = {.threads = 1})
      : group(of), store(of, options), stream(store.make_stream()) {}

  int rank() const { return static_cast<int>(number(group.rank())); }
  Array<std::int64_t> words(std::size_t n, std::uint64_t seed) { return to_device(stream, words_of(rank(), n, seed)); }
  // Returns the difference between `values` and the sums; empty if there is none.
  std::string wrong(Array<std::int64_t> const& values, std::uint64_t seed) {
    return differ("sums", to_host(stream, values.view()), sums_of(group.size(), values.size(), seed));
  }

  Group group;
  Store store;
  Stream stream;
};

std::vector<Group> ranks_of_threads(int ranks) {
  return ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks);
}

class Allreduce : public testing::TestWithParam<int> {};

TEST_P(Allreduce, EveryRankGetsSums) {
  std::vector<Device> devices{Device::host()};
  if (cuda_device_count() > 0) devices.push_back(Device::cuda(0));
  for (Device const device : devices) {
    run_ranks(ranks_of_threads(GetParam()), [&](Group group) {
      Member me(group, {.device = device, .threads = 1});
      for (std::size_t const n : {0, 1, 3, 4097, 1000000}) {
        auto const values = me.words(n, n);
        me.group.wait_allreduce(me.stream, me.group.begin_allreduce(me.stream, values));
        EXPECT_EQ(me.wrong(values, n), "") << n << " on " << to_string(device);
      }
      me.store.wait_barrier();
    });
  }
}

TEST_P(Allreduce, ConcurrentSumsEndInAnyOrder) {
  run_ranks(ranks_of_threads(GetParam()), [](Group group) {
    Member me(group);
    std::vector<Array<std::int64_t>> arrays;
    std::vector<CollectiveRequest> requests;
    for (std::uint64_t i = 0; i < Group::kAllreducesMax; ++i) {
      arrays.push_back(me.words(i * 37 % 50, i));
      requests.push_back(me.group.begin_allreduce(me.stream, arrays.back()));
    }
    EXPECT_THROW(me.group.begin_allreduce(me.stream, arrays[0]), Error);
    for (std::uint64_t i = 0; i < Group::kAllreducesMax; ++i) {
      auto const chosen = (i * 13 + static_cast<std::uint64_t>(me.rank())) % Group::kAllreducesMax;
      me.group.wait_allreduce(me.stream, requests[chosen]);
      EXPECT_EQ(me.wrong(arrays[chosen], chosen), "") << chosen;
    }
    me.store.wait_barrier();
  });
}

// More requests than may be in flight are dropped without waiting: each is released. Requests that are kept are not.
TEST_P(Allreduce, DroppedRequestsAreReleased) {
  run_ranks(ranks_of_threads(GetParam()), [](Group group) {
    Member me(group);
    auto const unchanged = me.words(50, 0);
    auto const values = me.words(50, 0);
    std::vector<CollectiveRequest> kept;
    for (std::uint64_t i = 0; i < 3 * Group::kAllreducesMax; ++i) {
      CollectiveRequest const one = me.group.begin_allreduce(me.stream, values);
      if (kept.size() < Group::kAllreducesMax - 1) kept.push_back(one);
    }
    kept.push_back(me.group.begin_allreduce(me.stream, values));
    EXPECT_THROW(me.group.begin_allreduce(me.stream, values), Error);
    EXPECT_EQ(to_host<std::int64_t>(me.stream, values), to_host<std::int64_t>(me.stream, unchanged));
    me.group.wait_allreduce(me.stream, kept.back());
    EXPECT_EQ(me.wrong(values, 0), "");
    for (CollectiveRequest const& one : kept) {
      if (&one != &kept.back()) me.group.wait_allreduce(me.stream, one);
    }
    me.store.wait_barrier();
  });
}

// Steps of a trainer with dense layers: sums run during the round and a look-up.
TEST_P(Allreduce, RunsConcurrentlyWithStep) {
  run_ranks(ranks_of_threads(GetParam()), [](Group group) {
    Member me(group);
    auto const table = me.store.add_table({.name = "rows", .dim = 2});
    std::vector<Key> keys;
    for (std::uint64_t k = 0; k < 20; ++k) keys.push_back(Key{k});
    TableBatch const part{.table = table, .keys = View<Key const>(keys)};
    Matrix<float> const rows(Device::host(), keys.size(), 2), found(Device::host(), keys.size(), 2);
    memory::fill_bytes(me.stream, rows.view().data(), 0, rows.view().flat().bytes());
    for (std::uint64_t step = 0; step < 20; ++step) {
      auto const first = me.words(100, step), second = me.words(1, step + 100);
      auto const batch = me.store.prepare(me.stream, me.store.clock(), {&part, 1}, 1);
      me.store.wait_ready(batch);
      auto const lookup = me.store.begin_lookup(me.stream, table, View<Key const>(keys), found, {});
      auto const early = me.group.begin_allreduce(me.stream, first);
      TableGradients const gradients{.sources = rows};
      me.store.push(me.stream, batch, {&gradients, 1});
      auto const late = me.group.begin_allreduce(me.stream, second);
      me.store.wait_lookup(me.stream, lookup);
      me.store.advance_clock();
      me.group.wait_allreduce(me.stream, early);
      me.group.wait_allreduce(me.stream, late);
      EXPECT_EQ(me.wrong(first, step) + me.wrong(second, step + 100), "") << step;
    }
    me.store.wait_barrier();
  });
}

// Each block of 512 integers is sent in the fewest bytes that hold them: this rank's terms of other slices, and the
// sums of its own slice.
TEST_P(Allreduce, SentBytesMatchPackedSizes) {
  std::size_t const ranks = static_cast<std::size_t>(GetParam());
  for (std::size_t const slice : {20, 1000, 84000}) {
    std::size_t const n = slice * ranks, blocks = (slice + 511) / 512, front = (blocks + 7) / 8 * 8;
    for (std::size_t const bits : {0, 6, 13, 21, 60}) {
      // The sums of up to four ranks need two more bits.
      std::size_t const bytes = bits == 0 ? 0 : (bits + 1 + 7) / 8, bytes_of_sums = bits == 0                ? 0
                                                                                    : bits == 6 && ranks > 2 ? 2
                                                                                                             : bytes;
      run_ranks(ranks_of_threads(GetParam()), [&](Group group) {
        Member me(group);
        Words const mine(n, bits == 0 ? 0 : -(std::int64_t{1} << bits) + 1);
        auto values = to_device(me.stream, mine);
        me.group.wait_allreduce(me.stream, me.group.begin_allreduce(me.stream, values));
        auto const sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(mine[0]) * ranks);
        EXPECT_EQ(to_host(me.stream, values.view()), Words(n, sum)) << bits;
        auto const sent = me.store.stats().sent;
        bool const at_once = slice == 20;  // the whole array goes to each rank
        std::size_t const expected = at_once ? 8 + n * bytes : 2 * front + slice * (bytes + bytes_of_sums);
        EXPECT_EQ(sent.allreduces, (ranks - 1) * expected) << bits << " bits";
        EXPECT_EQ(sent.bytes(), sent.allreduces + sent.control);
        me.store.wait_barrier();
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Allreduce, testing::Values(1, 2, 3, 4));

// Returns the error of each rank's body; empty if there is none.
std::vector<std::string> errors_of(int ranks, std::function<void(Member&)> const& body) {
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  EXPECT_ANY_THROW(run_ranks(Group::threads(ranks), [&](Group group) {
    Member me(group);
    try {
      body(me);
    } catch (std::exception const& error) {
      errors[number(group.rank())] = error.what();
      throw;
    }
  }));
  return errors;
}

TEST(AllreduceErrors, RejectsDifferentSizes) {
  for (std::size_t const other : {0, 2, 1000}) {
    auto const errors = errors_of(3, [&](Member& me) {
      auto const values = me.words(me.rank() == 1 ? other : 3, 1);
      me.group.wait_allreduce(me.stream, me.group.begin_allreduce(me.stream, values));
      me.store.wait_barrier();
    });
    for (std::size_t const rank : {0, 1, 2}) {
      EXPECT_NE(errors[rank].find("integers in allreduce 0"), std::string::npos) << rank << ": " << errors[rank];
      EXPECT_NE(errors[rank].find("rank "), std::string::npos) << errors[rank];
    }
  }
}

TEST(AllreduceErrors, ErrorNamesFailedRank) {
  std::atomic<int> begun = 0;
  auto const errors = errors_of(3, [&begun](Member& me) {
    auto const table = me.store.add_table({.name = "rows", .dim = 2});
    auto const values = me.words(1000, 1);
    if (me.rank() == 1) {
      while (begun < 2) std::this_thread::yield();
      throw std::runtime_error("the disk is on fire");
    }
    auto const request = me.group.begin_allreduce(me.stream, values);
    me.store.scan(me.stream, table, [](auto, auto) {});  // the allreduce has begun when this returns
    ++begun;
    me.group.wait_allreduce(me.stream, request);
  });
  for (std::size_t const rank : {0, 2}) {
    EXPECT_NE(errors[rank].find("rank 1 is lost"), std::string::npos) << errors[rank];
    EXPECT_NE(errors[rank].find("waited for the sums of allreduce 0 from rank"), std::string::npos) << errors[rank];
    EXPECT_NE(errors[rank].find("the disk is on fire"), std::string::npos) << errors[rank];
  }
}

TEST(AllreduceErrors, ErrorNamesMissingRankAfterTimeout) {
  std::binary_semaphore given_up(0);
  auto const wait = [&given_up](Member& me) {
    auto const values = me.words(10, 1);
    if (me.rank() == 1) {
      given_up.acquire();
      return me.store.wait_barrier();
    }
    me.group.set_wait_timeout_s(0.2);
    try {
      me.group.wait_allreduce(me.stream, me.group.begin_allreduce(me.stream, values));
    } catch (...) {
      given_up.release();
      throw;
    }
    given_up.release();
  };
  auto const errors = errors_of(2, wait);
  EXPECT_NE(errors[0].find("rank 0 waited for the sums of allreduce 0 from rank 1, and nothing arrived"),
            std::string::npos)
      << errors[0];
  EXPECT_NE(errors[0].find("Group::set_wait_timeout_s()"), std::string::npos) << errors[0];
}

// The group sums a copy: an exception may free the array, and what then uses its memory must not change.
TEST(AllreduceErrors, DestroyedStoreCompletesSumForOthers) {
  run_ranks(Group::threads(3), [](Group group) {
    std::optional<Member> me(group);
    auto values = words_of(me->rank(), 50000, 1);
    auto const request = group.begin_allreduce(me->stream, values);
    if (me->rank() == 1) {
      Words const others(values.size(), -1);
      values = others;
      me.reset();  // completes the sum that others wait for
      EXPECT_EQ(differ("the array in the same memory", values, others), "");
      return;
    }
    group.wait_allreduce(me->stream, request);
    EXPECT_EQ(differ("sums", values, sums_of(3, values.size(), 1)), "");
  });
}

TEST(AllreduceErrors, RejectsMisuse) {
  Words words(3);
  Stream stream(Device::host(), 1);
  auto const group = Group::alone();
  Store const store(group, {.threads = 1});
  expect_error(
      [&] {
        group.begin_allreduce(stream, {words.data(), words.size(), Device::cuda(0)});
      },
      {"the store is on", "of the store's device"});
  expect_error(
      [&] {
        group.begin_allreduce(stream, {words.data(), (std::size_t{1} << 32) + 1});
      },
      {"4294967297 integers", "in parts"});
  auto const request = group.begin_allreduce(stream, words);
  group.wait_allreduce(stream, request);
  expect_error([&] { group.wait_allreduce(stream, request); }, {"a sum that was waited for before"});
  expect_error([&] { group.wait_allreduce(stream, CollectiveRequest()); }, {"a sum that was waited for before"});
  auto const started = group.begin_allreduce(stream, words);
  expect_error([&] { Group::alone().wait_allreduce(stream, started); },
               {"wait_allreduce was given a sum of another membership", "the Group that started the sum"});
  group.wait_allreduce(stream, started);
}

}  // namespace
}  // namespace gpups::test::allreduce_test
