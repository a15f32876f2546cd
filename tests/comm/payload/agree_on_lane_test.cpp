// SPDX-License-Identifier: Apache-2.0
// Ranks agree on whether a lane connects their devices: with devices and lanes that are made up.
#include "comm/payload/agree_on_lane.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/group_impl.hpp"
#include "gpups/gpups.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::test {
namespace {

using comm::LaneOffer;

// What a lane was made of. Nothing goes by it.
class NamedLane final : public comm::Lane {
 public:
  explicit NamedLane(std::string made_of) : made_of_(std::move(made_of)) {}
  std::string const& made_of() const { return made_of_; }

  Device device() const override { return Device::host(); }
  Stream& stream() override { return stream_; }
  Over move(std::span<Part const>) override {
    return [] { return true; };
  }
  Over sum(View<float const>, View<float>) override {
    return [] { return true; };
  }
  void check() override {}
  void abort() noexcept override {}
  bool is_given_up() const override { return false; }

 private:
  std::string made_of_;
  Stream stream_{Device::host(), 1};
};

// A rank as a test wants it.
struct FakeMaker final : comm::LaneMaker {
  LaneOffer mine;
  std::string no_id, no_lane;  // errors
  int tries = 0;
  std::weak_ptr<comm::Lane> made;

  LaneOffer offer() const override { return mine; }
  std::string make_id() override {
    if (!no_id.empty()) throw Error(no_id);
    return "the id";
  }
  std::shared_ptr<comm::Lane> wait_make(std::string const& id, Rank me, int ranks) override {
    ++tries;
    if (!no_lane.empty()) throw Error(no_lane);
    auto lane =
        std::make_shared<NamedLane>(id + ", rank " + std::to_string(number(me)) + " of " + std::to_string(ranks));
    made = lane;
    return lane;
  }
};

// What each rank is left with.
struct Outcome {
  std::string lane, why_not;
  int tries = 0;
  bool lane_is_gone = true;
};

std::vector<Outcome> agree(std::vector<FakeMaker> makers) {
  std::vector<Outcome> outcomes(makers.size());
  auto const groups =
      makers.size() == 1 ? std::vector{Group::alone()} : Group::threads(static_cast<int>(makers.size()));
  run_ranks(groups, [&](Group const& group) {
    auto& maker = makers[number(group.rank())];
    comm::Talk talk(*group.impl().transport);
    auto const agreed = comm::wait_agree_on_lane(talk, maker);
    auto const* const lane = dynamic_cast<NamedLane const*>(agreed.lane.get());
    outcomes[number(group.rank())] = {lane == nullptr ? "" : lane->made_of(), agreed.why_not, maker.tries,
                                      maker.made.expired()};
    talk.wait_say_to_all({});
  });
  return outcomes;
}

FakeMaker on(std::string const& place, std::string const& why_not = {}) {
  FakeMaker maker;
  maker.mine = {place, why_not};
  return maker;
}

// Without a lane and for this reason on all ranks, each of which has tried so often.
void expect_none(std::vector<Outcome> const& outcomes, std::string const& why_not, int tries) {
  for (auto const& outcome : outcomes) {
    EXPECT_EQ(outcome.lane, "");
    EXPECT_EQ(outcome.why_not, why_not);
    EXPECT_EQ(outcome.tries, tries);
    EXPECT_TRUE(outcome.lane_is_gone);
  }
}

TEST(AgreeOnLane, AllHaveOneWhereAllCan) {
  auto const outcomes = agree({on("a 1"), on("a 2"), on("b 1")});
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    EXPECT_EQ(outcomes[rank].lane, "the id, rank " + std::to_string(rank) + " of 3");
    EXPECT_EQ(outcomes[rank].why_not, "");
  }
}

TEST(AgreeOnLane, NobodyTriesWhereOneCannot) {
  expect_none(agree({on("a 1"), on("b 1"), on("a 1")}), "ranks 0 and 2 share a device", 0);
  expect_none(agree({on("a 1"), on(""), on("a 2")}), "rank 1 is on the host", 0);
  expect_none(agree({on("a 1"), on("a 2", "its build has none")}), "rank 1: its build has none", 0);
  expect_none(agree({on("a 1"), on("a 2", "a\nline")}), "rank 1: a?line", 0);
}

TEST(AgreeOnLane, ThereIsNothingToSayWhereNothingIsToBeConnected) {
  expect_none(agree({on(""), on(""), on("")}), "", 0);
  expect_none(agree({on("a 1")}), "", 0);
}

TEST(AgreeOnLane, NobodyTriesWithoutAnId) {
  auto first = on("a 1");
  first.no_id = "no network";
  expect_none(agree({first, on("a 2"), on("a 3")}), "rank 0: no network", 0);
}

TEST(AgreeOnLane, NobodyKeepsOneThatAnotherHasNot) {
  for (std::size_t const failing : {0, 2}) {
    std::vector<FakeMaker> makers{on("a 1"), on("a 2"), on("a 3")};
    makers[failing].no_lane = "out of memory";
    expect_none(agree(makers), "rank " + std::to_string(failing) + ": out of memory", 1);
  }
}

TEST(AgreeOnLane, WhoSaysWhatIsNoOfferIsNamed) {
  run_ranks(Group::threads(3), [](Group const& group) {
    comm::Talk talk(*group.impl().transport);
    if (group.rank() == Rank{1}) {
      talk.wait_say_to_all("no offer");
    } else {
      auto maker = on("a device");
      try {
        comm::wait_agree_on_lane(talk, maker);
        ADD_FAILURE() << "rank 1 was believed";
      } catch (PeerError const& error) {
        EXPECT_EQ(error.peer(), Rank{1});
        EXPECT_NE(std::string(error.what()).find("rank 1 said of its device what cannot be"), std::string::npos)
            << error.what();
      }
    }
    talk.wait_say_to_all({});
  });
}

TEST(ConnectDevices, IsNothingToThreads) {
  run_ranks(Group::threads(2), [](Group const& group) {
    EXPECT_EQ(group.wait_connect_devices(Device::host()), "");
    Store store(group, {.threads = 1});
    store.wait_barrier();
  });
}

TEST(ConnectDevices, IsForTheDeviceOfTheStore) {
  Group const group = Group::alone();
  EXPECT_EQ(group.wait_connect_devices(Device::cuda(3)), "");
  expect_error([&] { Store const store(group, {.threads = 1}); },
               {"a Store on host", "wait_connect_devices() was called for cuda:3", "both for the same device"});
}

TEST(ConnectDevices, ComesBeforeTheStore) {
  Group const group = Group::alone();
  Store const store(group, {.threads = 1});
  expect_error([&] { group.wait_connect_devices(Device::host()); },
               {"on a membership with a Store", "make the Store later"});
}

}  // namespace
}  // namespace gpups::test
