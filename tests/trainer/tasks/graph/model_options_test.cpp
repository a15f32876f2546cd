// SPDX-License-Identifier: Apache-2.0
// Options that make_graph_model() accepts, the tables of a model, and the distribution of negatives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "tests/support/model_fixture.hpp"

namespace gpups::test::model_options_test {
namespace {

std::string error_of(GraphModelOptions const& options, Vocabulary const& vocabulary = make_vocabulary(5, 2)) {
  try {
    (void)trainer::make_graph_model(options, vocabulary);
  } catch (Error const& error) {
    return error.what();
  }
  return "";
}

TEST(GraphModelOptions, ErrorsNameTheOption) {
  using testing::HasSubstr;
  GraphModelOptions const good;
  EXPECT_EQ(error_of(good), "");
  auto const with = [&](auto change) {
    GraphModelOptions options = good;
    change(options);
    return error_of(options);
  };
  EXPECT_THAT(with([](auto& o) { o.name = "transh"; }), HasSubstr("model 'transh' is unknown"));
  EXPECT_THAT(with([](auto& o) { o.name = "transh"; }), HasSubstr("use complex, distmult, rescal, transe or rotate"));
  EXPECT_THAT(with([](auto& o) { o.loss = "hinge"; }), HasSubstr("loss 'hinge' is unknown"));
  EXPECT_THAT(with([](auto& o) { o.sampling = "each"; }), HasSubstr("sampling 'each' is unknown"));
  EXPECT_EQ(with([](auto& o) { o.sampling = "all"; }), "");
  EXPECT_THAT(with([](auto& o) { o.sampling = "kvsall"; }), HasSubstr("set reciprocal to true"));
  EXPECT_THAT(with([](auto& o) { o.sampling = "kvsall", o.objects_only = true, o.loss = "self_adversarial"; }),
              HasSubstr("use loss softmax or logistic"));
  EXPECT_EQ(with([](auto& o) { o.sampling = "kvsall", o.objects_only = true; }), "");
  EXPECT_THAT(with([](auto& o) { o.label_smoothing = 1; }), HasSubstr("label_smoothing is 1"));
  EXPECT_THAT(with([](auto& o) { o.entity_dropout = -1; }), HasSubstr("entity_dropout is -1"));
  EXPECT_THAT(with([](auto& o) { o.name = "rotate", o.sampling = "shared", o.relation_dropout = .1F; }),
              HasSubstr("relations of rotate are angles"));
  EXPECT_THAT(with([](auto& o) { o.relation_dropout = std::nanf(""); }), HasSubstr("relation_dropout is nan"));
  EXPECT_EQ(with([](auto& o) { o.sampling = "all", o.loss = "softmax", o.objects_only = true; }), "");
  EXPECT_THAT(with([](auto& o) { o.objects_only = true; }), HasSubstr("use sampling shared, all or kvsall"));
  EXPECT_THAT(with([](auto& o) { o.dim = 7; }), HasSubstr("dim is 7"));
  EXPECT_EQ(with([](auto& o) { o.dim = 7, o.name = "distmult"; }), "");
  EXPECT_THAT(with([](auto& o) { o.dim = 257, o.name = "rescal"; }), HasSubstr("dim is 257"));
  EXPECT_EQ(with([](auto& o) { o.dim = 256, o.name = "rescal"; }), "");
  EXPECT_THAT(with([](auto& o) { o.dim = 0; }), HasSubstr("dim is 0"));
  EXPECT_THAT(with([](auto& o) { o.dim = 65538; }), HasSubstr("dim is 65538"));
  EXPECT_THAT(with([](auto& o) { o.negatives = 0; }), HasSubstr("negatives is 0"));
  EXPECT_THAT(with([](auto& o) { o.negative_reuse = 0; }), HasSubstr("negative_reuse is 0"));
  EXPECT_THAT(with([](auto& o) { o.negative_reuse = 17; }), HasSubstr("negative_reuse is 17"));
  EXPECT_THAT(with([](auto& o) { o.temperature = -1; }), HasSubstr("temperature is -1"));
  EXPECT_THAT(with([](auto& o) { o.l2 = -1; }), HasSubstr("l2 is -1"));
  EXPECT_THAT(with([](auto& o) { o.n3 = std::numeric_limits<float>::infinity(); }), HasSubstr("n3 is inf"));
  EXPECT_THAT(with([](auto& o) { o.n3 = std::nanf(""); }), HasSubstr("n3 is nan"));
  EXPECT_THAT(error_of(good, {}), HasSubstr("0 entities"));
}

TEST(GraphModelOptions, TablesAreEntitiesThenRelations) {
  GraphModelOptions options;
  options.dim = 20;
  options.optimizer.learning_rate = 0.25F;
  auto const tables = trainer::make_graph_model(options, make_vocabulary(5, 2))->tables();
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].name, "entities");
  EXPECT_EQ(tables[1].name, "relations");
  EXPECT_EQ(tables[0].expected_rows, 5U);
  EXPECT_EQ(tables[1].expected_rows, 2U);
  for (auto const& table : tables) {
    EXPECT_EQ(table.dim, 20U);
    EXPECT_EQ(table.optimizer.learning_rate, 0.25F);
  }
}

TEST(GraphModelOptions, DistanceModelErrorsNameTheOption) {
  using testing::HasSubstr;
  auto const with = [](char const* name, auto change) {
    GraphModelOptions options;
    options.name = name;
    change(options);
    return error_of(options);
  };
  EXPECT_EQ(with("transe", [](auto& o) { o.dim = 7, o.norm = 2, o.margin = 0; }), "");
  EXPECT_THAT(with("transe", [](auto& o) { o.norm = 0; }), HasSubstr("norm is 0"));
  EXPECT_THAT(with("transe", [](auto& o) { o.norm = 3; }), HasSubstr("norm is 3"));
  EXPECT_THAT(with("transe", [](auto& o) { o.margin = -1; }), HasSubstr("margin is -1"));
  EXPECT_THAT(with("rotate", [](auto& o) { o.margin = std::nanf(""); }), HasSubstr("margin is nan"));
  EXPECT_THAT(with("rotate", [](auto& o) { o.dim = 7; }), HasSubstr("dim is 7"));
}

TEST(GraphModelOptions, RotateInitializesAnglesUniformly) {
  GraphModelOptions options;
  options.name = "rotate", options.dim = 20;
  auto const tables = trainer::make_graph_model(options, make_vocabulary(5, 2))->tables();
  EXPECT_EQ(tables[0].dim, 20U);
  EXPECT_EQ(tables[0].initializer.scale, options.initializer.scale);
  EXPECT_EQ(tables[1].dim, 10U);
  EXPECT_EQ(tables[1].initializer.kind, Initializer::Kind::kUniform);
  EXPECT_FLOAT_EQ(tables[1].initializer.scale, 3.14159265F);
}

TEST(GraphModelOptions, EntitiesMayHave16Bits) {
  GraphModelOptions options;
  options.value_type = DataType::kBFloat16;
  auto const tables = trainer::make_graph_model(options, make_vocabulary(5, 2))->tables();
  EXPECT_EQ(tables[0].value_type, DataType::kBFloat16);
  EXPECT_EQ(tables[1].value_type, DataType::kFloat);
}

TEST(GraphModelOptions, RescalRelationsAreMatrices) {
  GraphModelOptions options;
  options.name = "rescal", options.dim = 20;
  auto const tables = trainer::make_graph_model(options, make_vocabulary(5, 2))->tables();
  EXPECT_EQ(tables[0].dim, 20U);
  EXPECT_EQ(tables[1].dim, 400U);
}

// Returns the keys of all entries of the entity table.
std::vector<std::uint64_t> drawn(GraphModelOptions const& options, Batch const& batch, std::size_t entities = 1000) {
  Stream stream(Device::host(), 2);
  GraphEntries const work = trainer::make_graph_model(options, make_vocabulary(entities, 4))->prepare(stream, batch);
  std::vector<std::uint64_t> keys;
  for (Key key : work.parts[0].keys.view()) keys.push_back(number(key));
  return keys;
}

class Negatives : public testing::TestWithParam<char const*> {};
INSTANTIATE_TEST_SUITE_P(All, Negatives, testing::Values("triple", "shared"));

TEST_P(Negatives, DependOnlyOnSeedClockAndNumber) {
  GraphModelOptions options;
  options.sampling = GetParam();
  Batch const batch = make_batch(20, 2, 1000, 4);
  auto const keys = drawn(options, batch);
  EXPECT_EQ(keys, drawn(options, batch));

  GraphModelOptions other_seed = options;
  other_seed.seed = 2;
  EXPECT_NE(keys, drawn(other_seed, batch));
  Batch changed = batch;
  changed.clock = Clock{4};
  EXPECT_NE(keys, drawn(options, changed));
  changed = batch;
  for (auto& sample : changed.sample_numbers) sample += 100;
  for (auto& microbatch : changed.microbatches) microbatch.number += 100;
  EXPECT_NE(keys, drawn(options, changed));
  changed = batch;
  changed.epoch = 5;
  EXPECT_EQ(keys, drawn(options, changed));
}

TEST(SharedNegatives, AreUniformAndIndependentForEachSide) {
  GraphModelOptions options;
  options.sampling = "shared";
  options.negatives = 999;
  std::size_t const entities = 10;
  Batch batch = make_batch(1, 1, entities, 4);
  auto const keys = drawn(options, batch, entities);
  ASSERT_EQ(keys.size(), 2 + 2 * 999U);
  std::map<std::uint64_t, int> objects, subjects;
  int equal = 0;
  for (std::size_t i = 0; i < 999; ++i) {
    ++objects[keys[2 + i]];
    ++subjects[keys[2 + 999 + i]];
    equal += keys[2 + i] == keys[2 + 999 + i] ? 1 : 0;
  }
  EXPECT_EQ(objects.size(), entities);
  for (auto const& side : {objects, subjects}) {
    for (auto const& [key, count] : side) EXPECT_NEAR(count, 99.9, 50) << key;  // five standard deviations
  }
  EXPECT_NEAR(equal, 99.9, 50);
}

// Returns the negatives of each triple of a batch.
std::vector<std::vector<std::uint64_t>> dealt(GraphModelOptions const& options, Batch const& batch,
                                              std::size_t entities) {
  auto const keys = drawn(options, batch, entities);
  std::size_t const draws = 2 * options.negatives;
  std::vector<std::vector<std::uint64_t>> triples;
  for (auto first = keys.begin(); first != keys.end(); first += static_cast<std::ptrdiff_t>(2 + draws)) {
    triples.emplace_back(first + 2, first + 2 + static_cast<std::ptrdiff_t>(draws));
  }
  return triples;
}

TEST(TripleNegatives, AreDistinctAndEvenlySpreadOverEntities) {
  GraphModelOptions options;
  options.negatives = 3;
  options.negative_reuse = 1;
  for (std::size_t const entities : {6, 7, 50, 96, 1000, 100000}) {
    SCOPED_TRACE(entities);
    std::size_t const samples = 400;
    std::map<std::uint64_t, std::size_t> count;
    for (auto const& triple : dealt(options, make_batch(samples, 4, entities, 4), entities)) {
      EXPECT_EQ(std::set<std::uint64_t>(triple.begin(), triple.end()).size(), 6U);
      for (std::uint64_t const key : triple) ++count[key];
    }
    double const even = 6.0 * samples / static_cast<double>(entities);
    for (auto const& [key, times] : count) EXPECT_LE(static_cast<double>(times), 2 * even + 2) << key;
    EXPECT_GE(count.size(), std::min<std::size_t>(entities, 6 * samples) * 9 / 10);
  }
}

TEST(TripleNegatives, AreReusedByTheRequestedNumberOfTriples) {
  for (std::uint32_t const reuse : {1, 2, 3, 7, 8, 16}) {
    SCOPED_TRACE(reuse);
    GraphModelOptions options;
    options.negatives = 3;
    options.negative_reuse = reuse;
    auto const triples = dealt(options, make_batch(160, 4, 1000, 4), 1000);
    std::set<std::uint64_t> all;
    std::set<std::vector<std::uint64_t>> different;
    for (std::size_t hand = 0; hand < 10; ++hand) {
      std::map<std::uint64_t, std::uint32_t> count;
      for (std::size_t i = 16 * hand; i < 16 * (hand + 1); ++i) {
        EXPECT_EQ(std::set<std::uint64_t>(triples[i].begin(), triples[i].end()).size(), 6U);
        different.insert(triples[i]);
        for (std::uint64_t const key : triples[i]) ++count[key];
      }
      for (auto const& [key, times] : count) {
        EXPECT_LE(times, reuse + 1) << key;
        EXPECT_GE(times + 1, reuse) << key;
        EXPECT_TRUE(all.insert(key).second) << key;  // used by one group of 16 triples only
      }
    }
    EXPECT_GE(different.size(), 10 * std::min<std::size_t>(16, (6 * 16 + reuse - 1) / reuse));
  }
}

TEST(TripleNegatives, AreUniformInEachPosition) {
  GraphModelOptions options;
  options.negatives = 2;
  std::size_t const entities = 11, steps = 4000;
  std::map<std::uint64_t, int> in_place[4], in_pair;
  Batch batch = make_batch(40, 4, entities, 4);
  for (std::size_t step = 0; step < steps; ++step) {
    batch.clock = Clock{static_cast<std::int64_t>(step)};
    auto const triple = dealt(options, batch, entities)[17];
    for (std::size_t place = 0; place < 4; ++place) ++in_place[place][triple[place]];
    ++in_pair[std::min(triple[0], triple[2]) * 1000 + std::max(triple[0], triple[2])];
  }
  for (auto const& place : in_place) {
    for (auto const& [key, times] : place) EXPECT_NEAR(times, 363.6, 91) << key;  // five standard deviations
    EXPECT_EQ(place.size(), entities);
  }
  EXPECT_EQ(in_pair.size(), 55U);
  for (auto const& [pair, times] : in_pair) EXPECT_NEAR(times, 72.7, 42) << pair;
}

}  // namespace
}  // namespace gpups::test::model_options_test
