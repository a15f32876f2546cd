// SPDX-License-Identifier: Apache-2.0
// With a placement, global batches have the same samples as without, and ranks read mostly rows of their own parts.
#include "trainer/placement/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/trainer/placement/planted_graph.hpp"
#include "trainer/step/batch_sampler.hpp"
#include "trainer/tasks/graph/model.hpp"

namespace gpups::trainer::placement_test {
namespace {

using test::PlantedGraph;

constexpr std::uint32_t kParts = 4;

std::shared_ptr<Placement const> placement_of(PlantedGraph const& planted) {
  return std::make_shared<Placement const>(planted.with_keys(), PartitionOptions{.parts = kParts});
}

TEST(Placement, EachKeyIsInOnePart) {
  PlantedGraph const planted;
  auto const placement = placement_of(planted);
  std::vector<Key> all;
  for (std::uint32_t part = 0; part < kParts; ++part) {
    auto const keys = placement->keys(TableId{0}, part, part + 1);
    EXPECT_GT(keys.size(), 80U);
    all.insert(all.end(), keys.begin(), keys.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, planted.with_keys().tables[0].keys);
  EXPECT_EQ(placement->keys(TableId{0}, 0, kParts).size(), all.size());
  EXPECT_TRUE(placement->keys(TableId{1}, 0, kParts).empty());
}

TEST(Placement, AssignFillsMicrobatches) {
  auto const placement = placement_of({});
  std::vector<std::uint64_t> samples;
  for (std::uint64_t i = 0; i < 100; ++i) samples.push_back(39 * i);
  for (std::vector<std::uint32_t> const& sizes :
       {std::vector<std::uint32_t>{25, 25, 25, 25}, {97, 1, 1, 1}, {0, 0, 0, 100}}) {
    auto order = placement->assign(samples, sizes);
    std::size_t first = 0;
    for (std::uint32_t const size : sizes) {
      EXPECT_TRUE(std::is_sorted(order.begin() + first, order.begin() + first + size));
      first += size;
    }
    std::sort(order.begin(), order.end());
    for (std::uint32_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i);
  }
}

// If a part has too many samples, those that read rows of two parts go to the other one.
TEST(Placement, SamplesThatLoseLeastMakeRoom) {
  PlantedGraph planted{.communities = 2, .mixed = 50};
  auto const placement = std::make_shared<Placement const>(planted.with_keys(), PartitionOptions{.parts = 2});
  std::vector<std::uint16_t> part(planted.rows());
  for (Key const key : placement->keys(TableId{0}, 1, 2)) part[number(key)] = 1;
  Bigraph const graph = planted.make();
  std::vector<std::uint64_t> pure, torn;  // samples of part 0 only, and of both parts
  for (std::uint64_t i = 0; i < planted.samples; ++i) {
    auto const rows = graph.rows_of(i);
    if (part[rows[0]] != part[rows[1]]) torn.push_back(i);
    if (part[rows[0]] == 0 && part[rows[1]] == 0) pure.push_back(i);
  }
  std::vector<std::uint64_t> samples(torn.begin(), torn.begin() + 10);
  samples.insert(samples.end(), pure.begin(), pure.begin() + 10);
  std::uint32_t const sizes[] = {10, 10};
  auto const order = placement->assign(samples, sizes);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(order[i] >= 10, i < 10) << i;
}

TEST(Placement, GlobalBatchesHaveTheSameSamples) {
  PlantedGraph const planted{.samples = 1003};
  for (bool const same_batches : {false, true}) {
    BatchOptions options{.batch_size = 100, .microbatches = kParts, .seed = 4, .same_batches = same_batches};
    BatchSampler plain(planted.samples, options);
    options.placement = placement_of(planted);
    BatchSampler placed(planted.samples, options);
    bool moved = false;
    for (std::int64_t t : {0, 3, 10, 11, 25, 32}) {
      auto const whole = placed.make(Clock{t}).samples;
      auto expected = plain.make(Clock{t}).samples, sorted = whole;
      moved = moved || expected != whole;
      std::ranges::sort(expected), std::ranges::sort(sorted);
      EXPECT_EQ(sorted, expected) << t;
      for (std::uint32_t ranks = 2; ranks <= kParts; ++ranks) {
        std::vector<std::uint64_t> joined;
        for (std::uint32_t r = 0; r < ranks; ++r) {
          options.rank = Rank{r}, options.ranks = ranks;
          Batch const share = BatchSampler(planted.samples, options).make(Clock{t});
          for (std::size_t k = 0; k < share.samples.size(); ++k) {
            EXPECT_EQ(share.sample_numbers[k], joined.size() + k);
          }
          joined.insert(joined.end(), share.samples.begin(), share.samples.end());
        }
        EXPECT_EQ(joined, whole) << t << ", " << ranks << " ranks";
      }
    }
    EXPECT_TRUE(moved);
  }
}

// Counts rows that a rank reads and does not own, for owners by parts and for random owners.
TEST(Placement, RanksReadFewRemoteRows) {
  PlantedGraph const planted{.rows_each = 1000, .samples = 20000};
  Bigraph const graph = planted.make();
  BatchOptions options{.batch_size = 256, .microbatches = kParts, .placement = placement_of(planted)};
  std::uint64_t by_part = 0, by_chance = 0;
  for (std::uint32_t r = 0; r < 2; ++r) {
    options.rank = Rank{r}, options.ranks = 2;
    std::set<Key> mine;
    for (Key const key :
         options.placement->keys(TableId{0}, first_microbatch(r, 2, kParts), first_microbatch(r + 1, 2, kParts))) {
      mine.insert(key);
    }
    BatchSampler batches(planted.samples, options);
    for (std::int64_t t = 0; t < 20; ++t) {
      std::set<std::uint32_t> rows;
      for (std::uint64_t const sample : batches.make(Clock{t}).samples) {
        for (std::uint32_t const row : graph.rows_of(sample)) rows.insert(row);
      }
      for (std::uint32_t const row : rows) {
        by_part += mine.contains(Key{row}) ? 0 : 1;
        by_chance += random_bits(7, row) % 2;
      }
    }
  }
  EXPECT_LT(by_part, by_chance / 5);
}

// A vocabulary of 40 entities, and a batch of three microbatches of 16 triples. Part 1 has no entities.
struct LocalDraws {
  LocalDraws() {
    for (std::uint64_t e = 0; e < 40; ++e) vocabulary.entities.push_back(Key{e});
    for (std::uint32_t i = 0; i < 48; ++i) {
      batch.triples.push_back({i % 40, 0, (i + 1) % 40});
      batch.sample_numbers.push_back(i);
    }
  }
  // Returns the keys of the entity table, with and without parts.
  std::vector<std::uint64_t> draw(GraphModelOptions const& options, bool parts) const {
    Vocabulary all = vocabulary;
    if (parts) all.by_part = all.entities, all.part_offsets = {0, 10, 10, 40};
    Stream stream(Device::host());
    std::vector<std::uint64_t> keys;
    for (Key const key : make_graph_model(options, all)->prepare(stream, batch).parts[0].keys.view()) {
      keys.push_back(number(key));
    }
    return keys;
  }

  Vocabulary vocabulary{.entities = {}, .relations = {Key{1000}}};
  TripleBatch batch{.clock = Clock{3},
                    .triples = {},
                    .sample_numbers = {},
                    .microbatches = {{0, 0, 16}, {1, 16, 16}, {2, 32, 16}},
                    .batch_triples = 48};
};

TEST(Placement, SharedLocalNegativesAreOfTheMicrobatchsPart) {
  LocalDraws const draws;
  GraphModelOptions const options{.dim = 4, .negatives = 20, .sampling = "shared", .local_negatives = 0.75F};
  auto const plain = draws.draw(options, false), local = draws.draw(options, true);
  for (std::size_t m = 0; m < 3; ++m) {
    for (std::size_t draw = 0; draw < 40; ++draw) {
      std::size_t const entry = 96 + m * 40 + draw;
      if (draw % 20 >= 15 || m == 1) {
        EXPECT_EQ(local[entry], plain[entry]);
      } else {
        EXPECT_EQ(local[entry] < 10, m == 0) << local[entry];
      }
    }
  }
}

TEST(Placement, LocalNegativesOfTriplesAreOfTheMicrobatchsPart) {
  LocalDraws const draws;
  GraphModelOptions const options{.dim = 4, .negatives = 5, .sampling = "triple", .local_negatives = 1};
  auto const plain = draws.draw(options, false), local = draws.draw(options, true);
  for (std::size_t i = 0; i < 48; ++i) {
    for (std::size_t entry = 12 * i; entry < 12 * (i + 1); ++entry) {
      if (entry < 12 * i + 2 || i / 16 == 1) {
        EXPECT_EQ(local[entry], plain[entry]) << i;
      } else {
        EXPECT_EQ(local[entry] < 10, i / 16 == 0) << i << ", " << local[entry];
      }
    }
  }
}

// Where microbatches meet, each has a hand of its own part, so a batch of small ones reads more entities.
TEST(Placement, PlannedRowsHaveLocalNegativesOfAllMicrobatches) {
  constexpr std::uint32_t kManyParts = 8, kTriples = 12, kEntities = 800;  // of a part
  Vocabulary vocabulary{.entities = {}, .relations = {Key{1}}, .by_part = {}, .part_offsets = {0}};
  TripleBatch batch{.clock = Clock{3}, .triples = {}, .sample_numbers = {}, .microbatches = {}, .batch_triples = 0};
  for (std::uint32_t part = 0; part < kManyParts; ++part) {
    for (std::uint32_t e = 0; e < kEntities; ++e) vocabulary.entities.push_back(Key{part * kEntities + e});
    vocabulary.part_offsets.push_back(vocabulary.entities.size());
    batch.microbatches.push_back({part, part * kTriples, kTriples});
    for (std::uint32_t i = 0; i < kTriples; ++i) batch.sample_numbers.push_back(batch.batch_triples++);
    batch.triples.insert(batch.triples.end(), kTriples, {0, 0, 1});
  }
  vocabulary.by_part = vocabulary.entities;
  auto const model =
      make_graph_model({.dim = 4, .negatives = 50, .sampling = "triple", .local_negatives = 1}, vocabulary);
  Stream stream(Device::host());
  auto const entries = model->prepare(stream, batch);
  auto const keys = entries.parts[0].keys.view();
  std::set<Key> const distinct(keys.begin(), keys.end());
  EXPECT_LE(distinct.size(), model->sizes_of(kManyParts * kTriples, kManyParts).rows);
  EXPECT_GT(distinct.size(), model->sizes_of(kManyParts * kTriples, 0).rows) << "the batch shows no difference";
}

}  // namespace
}  // namespace gpups::trainer::placement_test
