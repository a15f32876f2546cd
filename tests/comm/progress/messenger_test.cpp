// SPDX-License-Identifier: Apache-2.0
#include "comm/progress/messenger.hpp"

#include <gtest/gtest.h>

#include "comm/bulk/bulk_transport.hpp"
#include "comm/transport/transport.hpp"

namespace gpups::test::messenger_test {
namespace {

using namespace gpups::comm;

// A rank that has not opened a channel when another rank closes it may close it too. It then knows that no message
// follows, and does not wait for the other rank.
TEST(Messenger, RemembersWhoClosedChannelsThatWereNeverOpened) {
  auto const transports = make_local_transports(2);
  auto const bulks = make_local_bulk_transports(2);
  Messenger first(*transports[0], *bulks[0]), second(*transports[1], *bulks[1]);
  for (ChannelId const id : {ChannelId::kStore, ChannelId::kCollectives}) second.close(id);
  second.progress();
  while (first.receive()) {
  }
  EXPECT_FALSE(first.closed_by_all());  // it may still open them
  for (ChannelId const id : {ChannelId::kStore, ChannelId::kCollectives}) first.close(id);
  EXPECT_TRUE(first.closed_by_all());
  EXPECT_FALSE(second.closed_by_all());
  first.progress();
  while (second.receive()) {
  }
  EXPECT_TRUE(second.closed_by_all());
}

}  // namespace
}  // namespace gpups::test::messenger_test
