// SPDX-License-Identifier: Apache-2.0
// The search for keys by a team of lanes; host threads take the place of GPU lanes.
#include "kernels/index/probe.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "tests/support/inputs.hpp"

namespace gpups::kernels::probe_test {
namespace {

// The values that lanes exchange.
template <unsigned kLanesOfTeam>
struct Board {
  std::barrier<> all{kLanesOfTeam};
  std::uint64_t word[kLanesOfTeam] = {};
};

template <unsigned kLanesOfTeam>
struct ThreadTeam {
  static constexpr unsigned kSize = kLanesOfTeam;
  Board<kSize>* board;
  unsigned number;

  unsigned lane() const { return number; }
  template <class T>
  T shuffle(T x, unsigned from) const {
    static_assert(sizeof(T) <= sizeof(std::uint64_t));
    std::memcpy(board->word + number, &x, sizeof x);
    board->all.arrive_and_wait();
    std::memcpy(&x, board->word + from, sizeof x);
    board->all.arrive_and_wait();
    return x;
  }
  unsigned ballot(bool b) const {
    unsigned bits = 0;
    for (unsigned l = 0; l < kSize; ++l) bits |= (shuffle(b, l) ? 1U : 0U) << l;
    return bits;
  }
};

// An index that is growing and nearly full, with erased keys; and the contents that it should have.
struct Half {
  std::vector<Bucket> old_buckets = std::vector<Bucket>(40), grown_buckets = std::vector<Bucket>(60);
  Buckets buckets{{old_buckets.data(), 40}, {grown_buckets.data(), 60}, 17};
  std::map<Key, std::uint32_t> ids{};

  Half() {
    for (Key key : test::distinct_keys(190)) {
      auto const id = static_cast<std::uint32_t>(1000 + ids.size());
      buckets.of(hash_of(key)).insert(key, hash_of(key), id);
      ids[key] = id;
    }
    for (Key key : test::distinct_keys(40, 20)) {
      EXPECT_FALSE(buckets.of(hash_of(key)).erase(key, hash_of(key), 999));
      EXPECT_TRUE(buckets.of(hash_of(key)).erase(key, hash_of(key), ids[key]));
      EXPECT_FALSE(buckets.of(hash_of(key)).erase(key, hash_of(key), ids[key]));
      ids.erase(key);
    }
  }
  std::uint32_t want(Key key) const { return ids.contains(key) ? ids.at(key) : kNoRow; }
};

template <unsigned kLanesOfTeam>
void check_team() {
  Half const half;
  std::vector<Key> const keys = test::distinct_keys(381);  // half are absent; the last group of keys is incomplete
  std::vector<std::uint32_t> ids(keys.size(), 0);
  Board<kLanesOfTeam> board;
  auto const work = [&](unsigned lane) {
    ThreadTeam<kLanesOfTeam> const team{&board, lane};
    for (std::size_t first = 0; first < keys.size(); first += kLanesOfTeam) {
      bool const has = first + lane < keys.size();
      std::uint32_t const id = probe(team, half.buckets, has ? keys[first + lane] : Key{7}, has);
      if (has) ids[first + lane] = id;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned lane = 0; lane < kLanesOfTeam; ++lane) threads.emplace_back(work, lane);
  for (auto& thread : threads) thread.join();
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(ids[i], half.want(keys[i])) << i;
}

TEST(Probe, FindsKeysWithTeamsOfAnySize) {
  check_team<1>();
  check_team<2>();
  check_team<4>();
  check_team<8>();
}

}  // namespace
}  // namespace gpups::kernels::probe_test
