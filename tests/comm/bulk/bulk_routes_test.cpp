// SPDX-License-Identifier: Apache-2.0
// The routes of bulk data between devices.
#include "tests/support/bulk_routes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace gpups::test::bulk_routes_test {
namespace {

using namespace gpups::comm;
using Ends = std::vector<std::unique_ptr<BulkTransport>>;

// Checks that transfers use the fabric or staging: the conformance tests would pass without these routes too.
TEST(BulkRoutes, TransfersUseExpectedRoute) {
  constexpr std::size_t kBytes = (std::size_t{9} << 20) + 1;
  Stream stream(Device::host(), 1);
  std::vector<std::uint8_t> source(kBytes), target(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) source[i] = static_cast<std::uint8_t>(i * 31 + (i >> 8));
  auto const move = [&](Ends const& ends) {
    Transfer const sent = ends[0]->send(stream, Rank{1}, 0, source.data(), kBytes);
    Transfer const received = ends[1]->receive_into(stream, Rank{0}, 0, target.data(), kBytes);
    for (int open = 2; open > 0;) {
      for (auto const& end : ends) end->progress();
      open -= (ends[0]->done(sent) ? 1 : 0) + (ends[1]->done(received) ? 1 : 0);
    }
    EXPECT_EQ(target, source);
  };
  auto links = make_local_ucx_workers(2);
  auto const hub = std::make_shared<FabricHub>(2);
  auto const fabric = [&](std::uint32_t rank) { return std::make_shared<LocalFabric>(Rank{rank}, hub); };
  {
    Ends ends;
    for (std::uint32_t rank : {0, 1}) ends.push_back(make_ucx_bulk_transport(links[rank], fabric(rank)));
    move(ends);
    EXPECT_EQ(hub->moved, 1U);
  }
  {  // only one of them has a fabric
    Ends ends;
    ends.push_back(make_ucx_bulk_transport(links[0], fabric(0)));
    ends.push_back(make_ucx_bulk_transport(links[1]));
    move(ends);
    EXPECT_EQ(hub->moved, 1U);
  }
  auto const blind = std::make_shared<ForwardingActiveMessages>(links[0]);
  {
    Ends ends;
    ends.push_back(make_ucx_bulk_transport(blind));
    ends.push_back(make_ucx_bulk_transport(links[1]));
    move(ends);
    EXPECT_EQ(blind->pieces, 3U);
  }
  auto const sees = std::make_shared<ForwardingActiveMessages>(links[0], true);
  for (bool const receiver_sees : {true, false}) {
    Ends ends;  // the sender offers what it might send by a fabric
    ends.push_back(make_ucx_bulk_transport(sees, fabric(0)));
    ends.push_back(make_ucx_bulk_transport(std::make_shared<ForwardingActiveMessages>(links[1], receiver_sees)));
    move(ends);
    EXPECT_EQ(sees->pieces, receiver_sees ? 1U : 4U);  // in one piece, and then in three
  }
}

}  // namespace
}  // namespace gpups::test::bulk_routes_test
