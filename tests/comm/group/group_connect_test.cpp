// SPDX-License-Identifier: Apache-2.0
// A rank that cannot connect to another reports the rank at fault: the other rank if it has ended, else itself.
#include <gtest/gtest.h>

#include <string>

#include "comm/bootstrap/join.hpp"
#include "comm/group/group_impl.hpp"
#include "comm/ucx/worker.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::test::group_connect_test {
namespace {

using namespace gpups::comm;

struct Failure {
  std::string lost;  // why rank 1 is reported as lost; empty: it is not
  Rank at_fault{99};
  std::string why;
};

struct FakeFailureDetector final : FailureDetector {
  explicit FakeFailureDetector(Failure& reported) : failure(reported) {}
  void subscribe(Events events) override {
    if (events.lost && !failure.lost.empty()) events.lost(Rank{1}, failure.lost);
  }
  void leave(Rank at_fault, std::string const& why) override {
    failure.at_fault = at_fault;
    failure.why = why;
  }
  bool wait_all_left(double) override { return true; }
  Failure& failure;
};

// Connects rank 0 of a job of two whose rank 1 has ended after it sent its address.
void connect(Failure& failure) {
  auto link = std::make_unique<UcxWorker>();
  std::string const address = UcxWorker().address();
  JoinResult joined{.members = {{.address = link->address()}, {.address = address}},
                    .keys = std::vector<HashKey>(2),
                    .failure_detector = std::make_unique<FakeFailureDetector>(failure)};
  (void)make_process_group(Rank{0}, std::move(link), std::move(joined));
}

TEST(GroupConnect, ReportsEndedRankAsLost) {
  Failure failure{.lost = "its process ended", .why = {}};
  expect_error([&] { connect(failure); }, {"rank 1 is lost", "its process ended"});
  EXPECT_EQ(failure.at_fault, Rank{1});
  EXPECT_EQ(failure.why, "its process ended");
}

TEST(GroupConnect, ReportsOwnFaultWithoutRoute) {
  Failure failure;
  expect_error([&] { connect(failure); }, {"rank 0 cannot connect to rank 1"});
  EXPECT_EQ(failure.at_fault, Rank{0});
  EXPECT_NE(failure.why.find("rank 0 cannot connect to rank 1"), std::string::npos);
}

}  // namespace
}  // namespace gpups::test::group_connect_test
