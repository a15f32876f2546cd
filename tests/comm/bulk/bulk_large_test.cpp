// SPDX-License-Identifier: Apache-2.0
// Transfers of a gibibyte, and of more bytes than a signed 32-bit number can count, over every bulk transport and by
// the routes between devices. They run alone: each takes twice its size of memory.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "comm/group/all_transports.hpp"
#include "gpups/array.hpp"
#include "kernels/base/build_config.hpp"
#include "kernels/runtime/host_memory.hpp"
#if GPUPS_HAS_UCX
#include "tests/support/bulk_routes.hpp"
#endif

namespace gpups::comm {

void PrintTo(BulkTransportFactory const& entry, std::ostream* out) { *out << entry.name; }

namespace {

class BulkLarge : public testing::TestWithParam<BulkTransportFactory> {};

TEST_P(BulkLarge, TransfersMoreThan2GiB) {
  if (std::string const lacks = GetParam().lacks(2); !lacks.empty()) GTEST_SKIP() << lacks;
  std::size_t const most = (std::size_t{1} << 31) + 5;
  std::uint64_t const available = kernels::host_memory().available;
  if (available < 2 * most + (std::size_t{2} << 30)) GTEST_SKIP() << "less than 6 GiB of memory are available";
  auto const ends = GetParam().make(2);
  Stream stream(Device::host(), 2);
  Array<std::uint64_t> const source(Device::host(), most / 8 + 1), target(Device::host(), most / 8 + 1);
  for (std::size_t i = 0; i < source.size(); ++i) source.data()[i] = i * 0x9e3779b97f4a7c15;
  std::uint64_t tag = 0;
  for (std::size_t const bytes : {std::size_t{1} << 30, most}) {
    Transfer const sent = ends[0]->send(stream, Rank{1}, tag, source.data(), bytes);
    Transfer const received = ends[1]->receive_into(stream, Rank{0}, tag++, target.data(), bytes);
    for (int open = 2; open > 0;) {
      for (auto const& end : ends) end->progress();
      open -= (ends[0]->done(sent) ? 1 : 0) + (ends[1]->done(received) ? 1 : 0);
    }
    EXPECT_EQ(std::memcmp(source.data(), target.data(), bytes), 0) << bytes;
  }
}

#if GPUPS_HAS_UCX
constexpr BulkTransportFactory kRoutes[] = {{"by_fabric", test::lacks_nothing, test::make_by_fabric},
                                            {"staged", test::lacks_nothing, test::make_staged}};
INSTANTIATE_TEST_SUITE_P(Routes, BulkLarge, testing::ValuesIn(kRoutes),
                         [](auto const& entry) { return std::string(entry.param.name); });
#endif

INSTANTIATE_TEST_SUITE_P(All, BulkLarge, testing::ValuesIn(all_bulk_transports().begin(), all_bulk_transports().end()),
                         [](auto const& entry) { return std::string(entry.param.name); });

}  // namespace
}  // namespace gpups::comm
