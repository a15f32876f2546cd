// SPDX-License-Identifier: Apache-2.0
// The eager allreduce of short arrays of floats: each rank sends its array to every other rank.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "comm/collectives/allreduce/dense.hpp"
#include "comm/collectives/collective_header.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/memory_communicator.hpp"

namespace gpups::test::eager_test {
namespace {

using comm::Communicator;
using comm::CoTask;
using Floats = std::vector<float>;

Floats floats_of(std::uint32_t rank, std::size_t n) {
  Random random(rank + 1);
  Floats values(n);
  for (auto& value : values) value = 1.F / static_cast<float>(1 + below(random, 1000));  // sums are rounded
  return values;
}

// Returns the sums, added in the order of the ranks.
Floats sums_of(int ranks, std::size_t n) {
  Floats sums = floats_of(0, n);
  for (std::uint32_t rank = 1; rank < static_cast<std::uint32_t>(ranks); ++rank) {
    Floats const terms = floats_of(rank, n);
    for (std::size_t i = 0; i < n; ++i) sums[i] += terms[i];
  }
  return sums;
}

struct Arrays {
  Array<float> terms, sums;
};

// Runs all ranks over these communicators, whose seed decides the order of messages, and checks the sums of each rank.
void run(MemoryCommunicators& communicators, int ranks, std::size_t n, bool in_place) {
  Floats const expected = sums_of(ranks, n);
  communicators.run([&](Communicator& comm) -> CoTask<> {
    auto const arrays = std::make_shared<Arrays>();
    Floats const mine = floats_of(number(comm.me()), n);
    arrays->terms = to_device(comm.stream(), mine);
    arrays->sums = Array<float>(comm.stream().device(), n);
    View<float> const sums = in_place ? arrays->terms.view() : arrays->sums.view();
    comm::DenseAllreduce const of{.values = sums, .terms = arrays->terms, .keep = arrays};
    co_await comm::eager_allreduce(comm, of);
    EXPECT_EQ(to_host(comm.stream(), sums), expected) << ranks << " ranks, " << n;
    if (!in_place) {
      EXPECT_EQ(to_host(comm.stream(), arrays->terms.view()), mine);
    }
  });
}

TEST(EagerAllreduce, SumsInRankOrder) {
  for (int ranks = 1; ranks <= 19; ++ranks) {
    for (std::size_t const n : {0, 1, 7, 200}) {
      for (bool const in_place : {false, true}) {
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
          MemoryCommunicators communicators(ranks, seed);
          run(communicators, ranks, n, in_place);
        }
      }
    }
  }
}

TEST(EagerAllreduce, SendsOneMessageToEachRank) {
  MemoryCommunicators communicators(4);
  run(communicators, 4, 100, true);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(communicators.sent(rank).messages, 3U);
    EXPECT_EQ(communicators.sent(rank).bytes, 3U * 400);
  }
}

TEST(EagerAllreduce, IsUsedForArraysThatFitHeaders) {
  EXPECT_TRUE(comm::fits_eager(2, 4096));
  EXPECT_FALSE(comm::fits_eager(2, 4097));
  EXPECT_TRUE(comm::fits_eager(17, 1024));
  EXPECT_FALSE(comm::fits_eager(18, 1024));
}

}  // namespace
}  // namespace gpups::test::eager_test
