// SPDX-License-Identifier: Apache-2.0
// Local hands: which triples draw from their own part, and how their draws are distributed.
#include "kernels/score/negatives.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "tests/support/on_devices.hpp"

namespace gpups::test::deal_negatives_test {
namespace {

using namespace kernels;
using Negatives = std::vector<std::vector<std::uint64_t>>;  // of each triple

// Parts of entities, and a batch whose triples are divided evenly over the parts. Key e is entity e.
struct DealtBatch {
  std::vector<std::uint64_t> part_sizes;
  std::uint32_t triples = 320, negatives = 3, reuse = 8;
  float local = 1;
  Clock clock{5};

  std::uint64_t entities() const { return std::accumulate(part_sizes.begin(), part_sizes.end(), std::uint64_t{0}); }
  std::uint32_t part_of_triple(std::uint32_t i) const {
    return static_cast<std::uint32_t>(i * part_sizes.size() / triples);
  }
  // Returns whether an entity is in the part of a triple.
  bool shares_part(std::uint64_t entity, std::uint32_t triple) const {
    std::uint64_t const begin =
        std::accumulate(part_sizes.begin(), part_sizes.begin() + part_of_triple(triple), std::uint64_t{0});
    return entity >= begin && entity < begin + part_sizes[part_of_triple(triple)];
  }
  // Returns the negatives of the triples first, first + 1, ..
  Negatives deal(Stream& stream, std::uint32_t first = 0) const;
};

Negatives DealtBatch::deal(Stream& stream, std::uint32_t first) const {
  std::vector<Key> keys;
  std::vector<std::uint64_t> offsets{0};
  std::vector<std::uint32_t> numbers, parts;
  for (std::uint64_t e = 0; e < entities(); ++e) keys.push_back(Key{e});
  for (std::uint64_t const size : part_sizes) offsets.push_back(offsets.back() + size);
  for (std::uint32_t i = first; i < triples; ++i) numbers.push_back(i), parts.push_back(part_of_triple(i));
  std::size_t const draws = 2 * std::size_t{negatives};
  auto const entities_there = to_device(stream, keys);
  auto const offsets_there = to_device(stream, offsets);
  auto const numbers_there = to_device(stream, numbers), parts_there = to_device(stream, parts);
  Array<Key> const out(stream.device(), numbers.size() * draws);
  deal_negatives(stream, {.seed = 1,
                          .clock = clock,
                          .numbers = numbers_there,
                          .batch_triples = triples,
                          .negatives = negatives,
                          .reuse = reuse,
                          .entities = entities_there,
                          .local = local,
                          .parts = parts_there,
                          .by_part = entities_there,
                          .part_offsets = offsets_there,
                          .first = 0,
                          .step = draws,
                          .keys = out,
                          .sources = {}});
  Negatives all(numbers.size());
  auto const drawn = to_host(stream, out.view());
  for (std::size_t entry = 0; entry < drawn.size(); ++entry) all[entry / draws].push_back(number(drawn[entry]));
  return all;
}

class LocalHandsOnDevice : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(All, LocalHandsOnDevice, kDevices, device_name);

TEST_P(LocalHandsOnDevice, DrawFromTheTriplesPart) {
  Stream stream(GetParam(), 2), host(Device::host(), 1);
  DealtBatch const batch{.part_sizes = {50, 120, 1, 60}};
  auto const triples = batch.deal(stream);
  for (std::uint32_t i = 0; i < batch.triples; ++i) {
    for (std::uint64_t const entity : triples[i]) EXPECT_TRUE(batch.shares_part(entity, i)) << i << ", " << entity;
    std::set<std::uint64_t> const distinct(triples[i].begin(), triples[i].end());
    EXPECT_EQ(distinct.size(), batch.part_of_triple(i) == 2 ? 1U : 6U);  // a part of one entity repeats it
  }
  EXPECT_EQ(triples, batch.deal(host));
}

TEST_P(LocalHandsOnDevice, AreTheRequestedShareOfAllHands) {
  Stream stream(GetParam(), 2);
  for (float const share : {0.0F, 0.25F, 0.3F, 0.5F, 0.75F, 1.0F}) {
    DealtBatch batch{.part_sizes = {100, 100, 100, 100}, .triples = 640, .local = share};
    auto const triples = batch.deal(stream);
    batch.local = 0;
    auto const plain = batch.deal(stream);
    std::size_t local = 0;
    for (std::uint32_t hand = 0; hand < 40; ++hand) {
      bool all_local = true, all_plain = true;
      for (std::uint32_t i = 16 * hand; i < 16 * (hand + 1); ++i) {
        for (std::uint64_t const entity : triples[i]) all_local = all_local && batch.shares_part(entity, i);
        all_plain = all_plain && triples[i] == plain[i];
      }
      EXPECT_NE(all_local, all_plain) << hand;
      local += all_local ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<float>(local), 40 * share, 1) << share;
  }
}

// So that no part has only local negatives, or none, if it has few hands.
TEST_P(LocalHandsOnDevice, DifferByStep) {
  Stream stream(GetParam(), 2);
  std::vector<int> local_steps(8);
  constexpr int kSteps = 100;
  for (int step = 0; step < kSteps; ++step) {
    DealtBatch const batch{
        .part_sizes = std::vector<std::uint64_t>(8, 50), .triples = 128, .local = 0.25F, .clock = Clock{step}};
    auto const triples = batch.deal(stream);
    for (std::uint32_t hand = 0; hand < 8; ++hand) {
      bool local = true;
      for (std::uint32_t i = 16 * hand; i < 16 * (hand + 1); ++i) {
        for (std::uint64_t const entity : triples[i]) local = local && batch.shares_part(entity, i);
      }
      local_steps[hand] += local ? 1 : 0;
    }
  }
  for (int const steps : local_steps) EXPECT_NEAR(steps, kSteps / 4, 16);
}

TEST_P(LocalHandsOnDevice, DrawFromAllEntitiesIfThePartIsEmpty) {
  Stream stream(GetParam(), 2);
  DealtBatch batch{.part_sizes = {70, 0, 80, 0}};
  auto const triples = batch.deal(stream);
  batch.local = 0;
  auto const plain = batch.deal(stream);
  for (std::uint32_t i = 0; i < batch.triples; ++i) EXPECT_EQ(triples[i] == plain[i], batch.part_of_triple(i) % 2 == 1);
}

TEST_P(LocalHandsOnDevice, DoNotDependOnOtherTriplesOfTheCall) {
  Stream stream(GetParam(), 2);
  DealtBatch const batch{.part_sizes = {50, 120, 60}, .triples = 500, .local = 0.5F};
  auto const all = batch.deal(stream);
  EXPECT_EQ(batch.deal(stream, 167), Negatives(all.begin() + 167, all.end()));
}

// With enough entities, hands of a part do not share entities, and `reuse` triples use each entity of a hand.
TEST_P(LocalHandsOnDevice, OfAPartAreDisjoint) {
  Stream stream(GetParam(), 2);
  for (float const share : {0.5F, 1.0F}) {
    DealtBatch const batch{.part_sizes = {400, 401}, .triples = 320, .reuse = 4, .local = share};
    auto const triples = batch.deal(stream);
    std::map<std::uint64_t, std::set<std::uint32_t>> hands;  // of each entity
    std::map<std::uint64_t, std::uint32_t> uses;
    for (std::uint32_t i = 0; i < batch.triples; ++i) {
      if (!std::ranges::all_of(triples[i], [&](std::uint64_t entity) { return batch.shares_part(entity, i); }))
        continue;
      for (std::uint64_t const entity : triples[i]) hands[entity].insert(i / 16), ++uses[entity];
    }
    EXPECT_EQ(hands.size(), static_cast<std::size_t>(20 * 24 * share));
    for (auto const& [entity, different] : hands) {
      EXPECT_EQ(different.size(), 1U) << entity;
      EXPECT_NEAR(uses[entity], 4U, 1) << entity;
    }
  }
}

TEST_P(LocalHandsOnDevice, AreUniformInEachPosition) {
  Stream stream(GetParam(), 2);
  DealtBatch batch{.part_sizes = {7, 11, 8}, .triples = 48, .negatives = 2};
  std::map<std::uint64_t, int> in_place[4], in_pair;
  for (std::int64_t step = 0; step < 4000; ++step) {
    batch.clock = Clock{step};
    auto const triple = batch.deal(stream)[17];
    for (std::size_t place = 0; place < 4; ++place) ++in_place[place][triple[place]];
    ++in_pair[std::min(triple[0], triple[2]) * 1000 + std::max(triple[0], triple[2])];
  }
  for (auto const& place : in_place) {
    for (auto const& [key, times] : place) EXPECT_NEAR(times, 363.6, 91) << key;  // five standard deviations
    EXPECT_EQ(place.size(), 11U);
  }
  EXPECT_EQ(in_pair.size(), 55U);
  for (auto const& [pair, times] : in_pair) EXPECT_NEAR(times, 72.7, 42) << pair;
}

}  // namespace
}  // namespace gpups::test::deal_negatives_test
