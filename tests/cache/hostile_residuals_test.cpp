// SPDX-License-Identifier: Apache-2.0
// A peer that sends invalid flushed gradients, or invalid changes of values.
#include <functional>
#include <optional>
#include <vector>

#include "tests/support/hostile_peer.hpp"

namespace gpups::test::hostile_residuals_test {
namespace {

// A store whose table has residuals, and whose peer sends one message at the end of the first step.
class HostileResiduals : public HostilePeer {
 protected:
  std::string error_after(
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
    return progress(store);
  }
  static GradientPhase late(std::uint64_t rows, std::uint64_t bytes, TableId table = TableId{0}, bool exact = false) {
    auto message = in(0);
    message.flushed = {{table, rows, cache::key_bytes_max(rows), bytes, exact}};
    return message;
  }
  // The peer sends one flushed row; `keys` encodes its key.
  std::string error_after(std::vector<std::uint8_t> const& keys) {
    auto message = late(1, 16 + 4);  // codes of one row, and its scale
    message.flushed[0].key_bytes = keys.size();
    return error_after(message, [&](RawPeer& peer) {
      peer.send_data(tag(Section::kFlushedKeys, 0, 0), keys);
      peer.send_data(tag(Section::kFlushedSums, 0, 0), std::vector<std::uint8_t>(20));
    });
  }
  static void expect_in(std::string const& text, char const* words) {
    EXPECT_NE(text.find(words), std::string::npos) << "'" << words << "' is not in: '" << text << "'";
  }
};

TEST_F(HostileResiduals, RejectsFlushOfUnknownTable) {
  expect_in(error_after(late(1, 64, TableId{7})), "residuals for a table without gradient compression");
}

TEST_F(HostileResiduals, RejectsFlushOfWrongSize) {
  for (std::uint64_t const bytes : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{1} << 60}) {
    for (bool const exact : {false, true}) {
      expect_in(error_after(late(kHuge, bytes, TableId{0}, exact)), "whose size is impossible for their rows");
    }
  }
}

TEST_F(HostileResiduals, RejectsTooManyKeyBytes) {
  auto message = late(1, 20);
  message.flushed[0].key_bytes = std::uint64_t{1} << 60;
  expect_in(error_after(message), "more bytes of keys than its rows can need");
}

TEST_F(HostileResiduals, RejectsInvalidKeys) {
  std::vector<std::uint8_t> const plain{0, 0, 7};
  expect_in(error_after(plain), "waited for the values of step 0");  // the list was accepted
  expect_in(error_after({0, 2, 0}), "residuals with a slot that has no key yet");
  expect_in(error_after({0, 0}), "residuals with fewer bytes than its keys need");
  expect_in(error_after(std::vector<std::uint8_t>{}), "residuals with a truncated list of keys");
  auto more = plain;
  more.resize(7);
  expect_in(error_after(more), "residuals with more bytes than its keys need");
}

TEST_F(HostileResiduals, RejectsEmptyFlush) { expect_in(error_after(late(0, 0)), "has no rows, or too many"); }

TEST_F(HostileResiduals, RejectsUnrequestedValues) { expect_in(error_after(RefreshPhase{.sent = {7}}), "rank 1"); }

}  // namespace
}  // namespace gpups::test::hostile_residuals_test
