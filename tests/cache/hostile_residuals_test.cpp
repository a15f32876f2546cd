// SPDX-License-Identifier: Apache-2.0
// What a peer claims of gradients that it has held back, and of values that have changed.
#include <functional>
#include <optional>
#include <vector>

#include "tests/support/hostile_peer.hpp"

namespace gpups::test {
namespace {

// A store whose table holds back, and whose peer says one thing at the end of the first step.
class HostileResiduals : public HostilePeer {
 protected:
  std::string turn_after(
      Message const& message, std::function<void(RawPeer&)> const& then = [](RawPeer&) {}) {
    RawPeer peer;
    Store store(peer.group(), {.threads = 1});
    store.add_table({.name = "t",
                     .dim = 4,
                     .gradient_compression = {.codec = RowCodec::kInt8, .filter = {.age_max = 3}},
                     .refresh_compression = {.codec = RowCodec::kInt8}});
    store.advance_clock();
    peer.send(message);
    then(peer);
    return turn(store);
  }
  static Message late(std::uint64_t rows, std::uint64_t bytes, TableId table = TableId{0}, bool exact = false) {
    Message message = in(0);
    message.flushed = {{table, rows, 5 + 8 * rows, bytes, exact}};
    return message;
  }
  // A row that comes late, its key in these bytes.
  std::string turn_after(std::vector<std::uint8_t> const& keys) {
    Message message = late(1, 16 + 4);  // codes as one row, and its scale
    message.flushed[0].key_bytes = keys.size();
    return turn_after(message, [&](RawPeer& peer) {
      peer.send_data(tag(Section::kFlushedKeys, 0, 0), keys);
      peer.send_data(tag(Section::kFlushedSums, 0, 0), std::vector<std::uint8_t>(20));
    });
  }
  static void expect_in(std::string const& text, char const* words) {
    EXPECT_NE(text.find(words), std::string::npos) << "'" << words << "' is not in: '" << text << "'";
  }
};

TEST_F(HostileResiduals, FlushedRowsOfATableThatIsNotThere) {
  expect_in(turn_after(late(1, 64, TableId{7})), "late for a table that holds none back");
}

TEST_F(HostileResiduals, FlushedRowsOfAnotherSize) {
  for (std::uint64_t const bytes : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{1} << 60}) {
    for (bool const exact : {false, true}) {
      expect_in(turn_after(late(kHuge, bytes, TableId{0}, exact)), "whose size is not that of their rows");
    }
  }
}

TEST_F(HostileResiduals, FlushedRowsWithMoreBytesOfKeysThanTheyCanTake) {
  auto message = late(1, 20);
  message.flushed[0].key_bytes = std::uint64_t{1} << 60;
  expect_in(turn_after(message), "more bytes of keys than they can take");
}

TEST_F(HostileResiduals, FlushedRowsWhoseKeysAreNone) {
  std::vector<std::uint8_t> const plain{0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0};
  expect_in(turn_after(plain), "waited for the values of step 0");  // it was taken
  expect_in(turn_after({1, 0, 0, 0, 0, 0}), "late rows with the number of a key that it has never named");
  expect_in(turn_after({0, 0, 0, 0, 0, 7}), "late rows with fewer bytes than its keys take");
  expect_in(turn_after(std::vector<std::uint8_t>{}), "late rows with a list of keys that is cut");
  auto more = plain;
  more.resize(17);
  expect_in(turn_after(more), "late rows with more bytes of keys than it has rows");
}

TEST_F(HostileResiduals, NoRowsLate) { expect_in(turn_after(late(0, 0)), "a size that cannot be"); }

TEST_F(HostileResiduals, ValuesThatNobodyAskedFor) {
  Message message = in(0);
  message.kind = MessageKind::kRefreshPhase;
  message.sent = {7};
  expect_in(turn_after(message), "rank 1");
}

}  // namespace
}  // namespace gpups::test
