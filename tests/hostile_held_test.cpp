// SPDX-License-Identifier: Apache-2.0
// What a peer claims of gradients that it has held back, and of values that have changed.
#include "cache/row_coder.hpp"
#include "tests/hostile_peer.hpp"

namespace gpups::test {
namespace {

class HostileHolder : public HostilePeer {
 protected:
  HostileHolder() {
    store_.emplace(group_, StoreOptions{.threads = 1});
    table_ = store_->add_table({.name = "t",
                                .dim = 4,
                                .gradients = {.codec = RowCodec::kInt8, .filter = {.age_max = 3}},
                                .refreshes = {.codec = RowCodec::kInt8}});
  }
  Message late(std::uint64_t rows, std::uint64_t bytes, TableId table = TableId{0}, bool exact = false) {
    Message message = in(0);
    message.late = {{table, rows, bytes, exact}};
    return message;
  }
};

TEST_F(HostileHolder, LateRowsOfATableThatIsNotThere) {
  store_->advance_clock();
  peer_.send(late(1, 64, TableId{7}));
  expect_refused("late for a table that holds none back");
}

TEST_F(HostileHolder, LateRowsOfAnotherSize) {
  for (std::uint64_t const bytes : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{1} << 60}) {
    for (bool const exact : {false, true}) {
      RawPeer peer;
      Store store(peer.group(), {.threads = 1});
      store.add_table({.name = "t", .dim = 4, .gradients = {.codec = RowCodec::kInt8}});
      store.advance_clock();
      peer.send(late(kHuge, bytes, TableId{0}, exact));
      EXPECT_NE(turn(store).find("whose size is not that of their rows"), std::string::npos) << bytes;
    }
  }
}

TEST_F(HostileHolder, LateRowsThatNeverComeCostNothing) {
  store_->advance_clock();
  peer_.send(late(kHuge, kHuge * 8, TableId{0}, true));
  EXPECT_EQ(error_of([&] {
              auto stream = store_->make_stream();
              store_->scan(stream, table_, [](auto, auto) {});
            }),
            "");
}

TEST_F(HostileHolder, NoRowsLate) {
  store_->advance_clock();
  peer_.send(late(0, 0));
  expect_refused("a size that cannot be");
}

TEST_F(HostileHolder, ValuesOfMoreRowsThanWereAskedFor) {
  Message message = in(0);
  message.kind = MessageKind::kOut;
  message.sent = {7};
  peer_.send(message);
  expect_refused("lost step");
}

}  // namespace
}  // namespace gpups::test
