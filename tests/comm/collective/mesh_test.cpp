// SPDX-License-Identifier: Apache-2.0
// Coroutines over a mesh: what they await, what they throw, and how they end.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/expect_error.hpp"
#include "tests/support/memory_mesh.hpp"

namespace gpups::test {
namespace {

using comm::Bytes;
using comm::Mesh;
using comm::Task;

Bytes word(std::uint64_t value) {
  Bytes bytes(Device::host(), sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
std::uint64_t word_in(Bytes const& bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}
Rank other(Mesh const& mesh, std::uint32_t distance) {
  return Rank{(number(mesh.me()) + distance) % static_cast<std::uint32_t>(mesh.ranks())};
}

// What every rank has, added up: a value goes once around for each rank.
Task<std::uint64_t> sum_around(Mesh& mesh, std::uint64_t mine) {
  std::uint64_t sum = mine, passed = mine;
  for (int step = 1; step < mesh.ranks(); ++step) {
    mesh.send(other(mesh, 1), word(passed));
    passed = word_in(co_await mesh.receive(other(mesh, static_cast<std::uint32_t>(mesh.ranks()) - 1), 8));
    sum += passed;
  }
  co_return sum;
}

TEST(Mesh, ACollectiveReadsLikeItsPseudoCode) {
  for (int const ranks : {1, 2, 3, 5, 8}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      MemoryMeshes meshes(ranks, seed);
      std::vector<std::uint64_t> sums;
      meshes.run([&](Mesh& mesh) -> Task<> { sums.push_back(co_await sum_around(mesh, 1U << number(mesh.me()))); });
      EXPECT_EQ(sums, std::vector<std::uint64_t>(static_cast<std::size_t>(ranks), (1U << ranks) - 1));
      EXPECT_EQ(meshes.sent().messages, static_cast<std::size_t>(ranks * (ranks - 1)));
      EXPECT_EQ(meshes.sent(0).bytes, 8 * static_cast<std::size_t>(ranks - 1));
    }
  }
}

// Two tasks of one rank that go on beside each other share its mesh: the order of calls says which message is whose.
TEST(Mesh, TasksThatWereStartedGoOnBesideEachOther) {
  MemoryMeshes meshes(3);
  meshes.run([](Mesh& mesh) -> Task<> {
    auto first = sum_around(mesh, 1), second = sum_around(mesh, 1);
    first.start();
    EXPECT_FALSE(first.done());
    EXPECT_EQ(co_await first, 3U);
    EXPECT_TRUE(first.done());
    EXPECT_EQ(co_await second, 3U);
  });
}

TEST(Mesh, MessagesOfKnownSizeComeInTheirOrderToo) {
  MemoryMeshes meshes(2, 3);
  meshes.run([](Mesh& mesh) -> Task<> {
    auto const mine = std::make_shared<Bytes>(word(number(mesh.me())));
    auto const its = std::make_shared<Bytes>(Device::host(), 8);
    auto const none = std::make_shared<Bytes>();
    mesh.send_exactly(other(mesh, 1), mine->view(), mine);
    mesh.send(other(mesh, 1), word(7));
    auto sent = mesh.send_exactly(other(mesh, 1), none->view(), none);
    auto known = mesh.receive_exactly(other(mesh, 1), its->view(), its);
    auto told = mesh.receive(other(mesh, 1), 100);
    auto empty = mesh.receive_exactly(other(mesh, 1), none->view(), none);
    EXPECT_EQ(word_in(co_await told), 7U);
    co_await known;
    EXPECT_EQ(word_in(*its), 1 - number(mesh.me()));
    co_await empty;
    co_await sent;
  });
}

Task<int> throws_after(Mesh& mesh) {
  (void)co_await sum_around(mesh, 1);
  throw std::runtime_error("the disk is on fire");
}

TEST(Mesh, WhatATaskThrowsAwaitingItThrows) {
  MemoryMeshes meshes(2);
  int caught = 0;
  meshes.run([&](Mesh& mesh) -> Task<> {
    try {
      (void)co_await throws_after(mesh);
    } catch (std::runtime_error const& error) {
      EXPECT_EQ(std::string(error.what()), "the disk is on fire");
      ++caught;
    }
  });
  EXPECT_EQ(caught, 2);
  EXPECT_THROW(meshes.run([](Mesh& mesh) -> Task<> { (void)co_await throws_after(mesh); }), std::runtime_error);
}

// Says when it goes.
struct Guard {
  int& gone;
  ~Guard() { ++gone; }
};
Task<> waits_for_ever(Mesh& mesh, int& gone) {
  Guard const guard{gone};
  (void)co_await mesh.receive(other(mesh, 1), 8);
}

TEST(Mesh, ARunThatIsGivenUpTakesItsTasksAlong) {
  int gone = 0;
  MemoryMeshes meshes(2);
  EXPECT_THROW(meshes.run([&](Mesh& mesh) -> Task<> {
    Guard const guard{gone};
    co_await waits_for_ever(mesh, gone);
  }),
               std::logic_error);
  EXPECT_EQ(gone, 4);
}

TEST(Mesh, MoreThanTheReceiverExpectsIsRefused) {
  MemoryMeshes meshes(2);
  expect_error(
      [&] {
        meshes.run([](Mesh& mesh) -> Task<> {
          mesh.send(other(mesh, 1), word(1));
          (void)co_await mesh.receive(other(mesh, 1), 7);
        });
      },
      {"sends 8 bytes where 7 are expected"});
}

}  // namespace
}  // namespace gpups::test
