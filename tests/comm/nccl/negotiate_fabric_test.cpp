// SPDX-License-Identifier: Apache-2.0
// Ranks agree on whether a fabric connects their devices, with synthetic devices and fabrics.
#include "comm/nccl/connect.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/group/group_impl.hpp"
#include "gpups/gpups.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::test::negotiate_fabric_test {
namespace {

using comm::FabricOffer;

// A fabric that only keeps its arguments, and transfers nothing.
class NamedFabric final : public comm::DeviceFabric {
 public:
  explicit NamedFabric(std::string made_of) : made_of_(std::move(made_of)) {}
  std::string const& made_of() const { return made_of_; }

  Device device() const override { return Device::host(); }
  Stream& stream() override { return stream_; }
  IsDone move(std::span<P2pOp const>) override {
    return [] { return true; };
  }
  IsDone sum(comm::FabricSum const&) override {
    return [] { return true; };
  }
  void check() override {}
  void abort() noexcept override {}
  bool is_given_up() const override { return false; }

 private:
  std::string made_of_;
  Stream stream_{Device::host(), 1};
};

// A fabric factory whose offer and errors a test sets.
struct FakeMaker final : comm::FabricFactory {
  FabricOffer mine;
  std::string no_id, no_fabric;  // errors
  int tries = 0;
  std::weak_ptr<comm::DeviceFabric> made;

  FabricOffer offer() const override { return mine; }
  std::string make_id() override {
    if (!no_id.empty()) throw Error(no_id);
    return "the id";
  }
  std::shared_ptr<comm::DeviceFabric> wait_make(std::string const& id, Rank me, int ranks) override {
    ++tries;
    if (!no_fabric.empty()) throw Error(no_fabric);
    auto fabric =
        std::make_shared<NamedFabric>(id + ", rank " + std::to_string(number(me)) + " of " + std::to_string(ranks));
    made = fabric;
    return fabric;
  }
};

// The result of one rank.
struct Outcome {
  std::string fabric, why_not;
  int tries = 0;
  bool fabric_is_gone = true;
};

std::vector<Outcome> negotiate(std::vector<FakeMaker> makers) {
  std::vector<Outcome> outcomes(makers.size());
  auto const groups =
      makers.size() == 1 ? std::vector{Group::alone()} : Group::threads(static_cast<int>(makers.size()));
  run_ranks(groups, [&](Group const& group) {
    auto& maker = makers[number(group.rank())];
    comm::ControlChannel channel(*group.impl().transport);
    auto const agreed = comm::wait_negotiate_fabric(channel, maker);
    auto const* const fabric = dynamic_cast<NamedFabric const*>(agreed.fabric.get());
    outcomes[number(group.rank())] = {fabric == nullptr ? "" : fabric->made_of(), agreed.why_not, maker.tries,
                                      maker.made.expired()};
    channel.wait_allgather({});
  });
  return outcomes;
}

FakeMaker on(std::string const& place, std::string const& why_not = {}) {
  FakeMaker maker;
  maker.mine = {place, why_not};
  return maker;
}

// Expects no fabric, this reason and this number of tries on all ranks.
void expect_none(std::vector<Outcome> const& outcomes, std::string const& why_not, int tries) {
  for (auto const& outcome : outcomes) {
    EXPECT_EQ(outcome.fabric, "");
    EXPECT_EQ(outcome.why_not, why_not);
    EXPECT_EQ(outcome.tries, tries);
    EXPECT_TRUE(outcome.fabric_is_gone);
  }
}

TEST(NegotiateFabric, AllRanksGetFabricIfAllCan) {
  auto const outcomes = negotiate({on("a 1"), on("a 2"), on("b 1")});
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    EXPECT_EQ(outcomes[rank].fabric, "the id, rank " + std::to_string(rank) + " of 3");
    EXPECT_EQ(outcomes[rank].why_not, "");
  }
}

TEST(NegotiateFabric, NoRankTriesIfOneCannot) {
  expect_none(negotiate({on("a 1"), on("b 1"), on("a 1")}), "ranks 0 and 2 share a device", 0);
  expect_none(negotiate({on("a 1"), on(""), on("a 2")}), "rank 1 uses the host", 0);
  expect_none(negotiate({on("a 1"), on("a 2", "its build has none")}), "rank 1: its build has none", 0);
  expect_none(negotiate({on("a 1"), on("a 2", "a\nline")}), "rank 1: a?line", 0);
}

TEST(NegotiateFabric, NoReasonIfNothingToConnect) {
  expect_none(negotiate({on(""), on(""), on("")}), "", 0);
  expect_none(negotiate({on("a 1")}), "", 0);
}

TEST(NegotiateFabric, NoRankTriesWithoutId) {
  auto first = on("a 1");
  first.no_id = "no network";
  expect_none(negotiate({first, on("a 2"), on("a 3")}), "rank 0: no network", 0);
}

TEST(NegotiateFabric, AllRanksDropFabricIfOneFails) {
  for (std::size_t const failing : {0, 2}) {
    std::vector<FakeMaker> makers{on("a 1"), on("a 2"), on("a 3")};
    makers[failing].no_fabric = "out of memory";
    expect_none(negotiate(makers), "rank " + std::to_string(failing) + ": out of memory", 1);
  }
}

TEST(NegotiateFabric, ErrorNamesRankWithInvalidOffer) {
  run_ranks(Group::threads(3), [](Group const& group) {
    comm::ControlChannel channel(*group.impl().transport);
    if (group.rank() == Rank{1}) {
      channel.wait_allgather("no offer");
    } else {
      auto maker = on("a device");
      try {
        comm::wait_negotiate_fabric(channel, maker);
        ADD_FAILURE() << "the invalid offer of rank 1 was accepted";
      } catch (PeerError const& error) {
        EXPECT_EQ(error.peer(), Rank{1});
        EXPECT_NE(std::string(error.what()).find("the description of the device of rank 1 is invalid"),
                  std::string::npos)
            << error.what();
      }
    }
    channel.wait_allgather({});
  });
}

TEST(ConnectDevices, HasNoEffectForThreads) {
  run_ranks(Group::threads(2), [](Group const& group) {
    EXPECT_EQ(group.wait_connect_devices(Device::host()), "");
    Store store(group, {.threads = 1});
    store.wait_barrier();
  });
}

TEST(ConnectDevices, RejectsStoreOnOtherDevice) {
  Group const group = Group::alone();
  EXPECT_EQ(group.wait_connect_devices(Device::cuda(3)), "");
  expect_error([&] { Store const store(group, {.threads = 1}); },
               {"a Store on host", "wait_connect_devices() was called for cuda:3", "the same device for both"});
}

TEST(ConnectDevices, MustPrecedeStore) {
  Group const group = Group::alone();
  Store const store(group, {.threads = 1});
  expect_error([&] { group.wait_connect_devices(Device::host()); },
               {"after a Store was created", "create the Store later"});
}

}  // namespace
}  // namespace gpups::test::negotiate_fabric_test
