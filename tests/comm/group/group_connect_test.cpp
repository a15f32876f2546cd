// SPDX-License-Identifier: Apache-2.0
// A rank that finds no way to another tells who is at fault: the other one where it has ended, else itself.
#include <gtest/gtest.h>

#include <string>

#include "comm/group/processes.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::test {
namespace {

using namespace gpups::comm;

struct Told {
  std::string lost;  // why rank 1 is taken for lost; empty: it is not
  Rank at_fault{99};
  std::string why;
};

struct FakeWatch final : Watch {
  explicit FakeWatch(Told& its_told) : told(its_told) {}
  void listen(Events events) override {
    if (events.lost && !told.lost.empty()) events.lost(Rank{1}, told.lost);
  }
  void leave(Rank at_fault, std::string const& why) override {
    told.at_fault = at_fault;
    told.why = why;
  }
  bool wait_all_gone(double) override { return true; }
  Told& told;
};

// A job of two, of which rank 1 has ended after it had said where it is reached.
void connect(Told& told) {
  auto link = std::make_unique<UcxLink>();
  std::string const address = UcxLink().address();
  Joined joined{.members = {{.address = link->address()}, {.address = address}},
                .keys = std::vector<HashKey>(2),
                .watch = std::make_unique<FakeWatch>(told)};
  (void)group_of_processes(Rank{0}, std::move(link), std::move(joined));
}

TEST(GroupConnect, ToARankThatHasEndedSaysThatItIsLost) {
  Told told{.lost = "its process ended", .why = {}};
  expect_error([&] { connect(told); }, {"rank 1 is lost", "its process ended"});
  EXPECT_EQ(told.at_fault, Rank{1});
  EXPECT_EQ(told.why, "its process ended");
}

TEST(GroupConnect, WithoutAWaySaysSoToAll) {
  Told told;
  expect_error([&] { connect(told); }, {"rank 0 has no way to rank 1"});
  EXPECT_EQ(told.at_fault, Rank{0});
  EXPECT_NE(told.why.find("rank 0 has no way to rank 1"), std::string::npos);
}

}  // namespace
}  // namespace gpups::test
