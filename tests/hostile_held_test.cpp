// SPDX-License-Identifier: Apache-2.0
// What a peer claims of gradients that it has held back, and of values that have changed.
#include <optional>

#include "tests/hostile_peer.hpp"

namespace gpups::test {
namespace {

// A store whose table holds back, and whose peer says one thing at the end of the first step.
class HostileHolder : public HostilePeer {
 protected:
  std::string turn_after(Message const& message) {
    RawPeer peer;
    Store store(peer.group(), {.threads = 1});
    store.add_table({.name = "t",
                     .dim = 4,
                     .gradients = {.codec = RowCodec::kInt8, .filter = {.age_max = 3}},
                     .refreshes = {.codec = RowCodec::kInt8}});
    store.advance_clock();
    peer.send(message);
    return turn(store);
  }
  static Message late(std::uint64_t rows, std::uint64_t bytes, TableId table = TableId{0}, bool exact = false) {
    Message message = in(0);
    message.late = {{table, rows, bytes, exact}};
    return message;
  }
  static void expect_in(std::string const& text, char const* words) {
    EXPECT_NE(text.find(words), std::string::npos) << "'" << words << "' is not in: '" << text << "'";
  }
};

TEST_F(HostileHolder, LateRowsOfATableThatIsNotThere) {
  expect_in(turn_after(late(1, 64, TableId{7})), "late for a table that holds none back");
}

TEST_F(HostileHolder, LateRowsOfAnotherSize) {
  for (std::uint64_t const bytes : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{1} << 60}) {
    for (bool const exact : {false, true}) {
      expect_in(turn_after(late(kHuge, bytes, TableId{0}, exact)), "whose size is not that of their rows");
    }
  }
}

TEST_F(HostileHolder, NoRowsLate) { expect_in(turn_after(late(0, 0)), "a size that cannot be"); }

TEST_F(HostileHolder, ValuesThatNobodyAskedFor) {
  Message message = in(0);
  message.kind = MessageKind::kOut;
  message.sent = {7};
  expect_in(turn_after(message), "rank 1");
}

}  // namespace
}  // namespace gpups::test
