// SPDX-License-Identifier: Apache-2.0
// Every model, with every loss, sampling and regulariser, compared with a simple implementation.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <bit>

#include "tests/support/model_fixture.hpp"

namespace gpups::test::model_test {
namespace {

// Every combination, at widths that use the scalar code and both kinds of ends of vectors.
std::vector<GraphModelOptions> all_options() {
  std::vector<GraphModelOptions> all;
  for (std::string const& name : trainer::model_names()) {
    for (char const* loss : {"logistic", "softmax", "self_adversarial"}) {
      for (char const* sampling : {"triple", "shared"}) {
        for (auto [dim, l2, n3] : {std::tuple{1, 0.0F, 0.0F},
                                   {6, 0.0F, 0.0F},
                                   {7, 0.0F, 0.02F},
                                   {34, 0.01F, 0.02F},
                                   {64, 0.0F, 0.02F},
                                   {100, 0.01F, 0.0F}}) {
          GraphModelOptions options;
          options.name = name, options.loss = loss, options.sampling = sampling;
          options.dim = static_cast<std::size_t>(name == "complex" || name == "rotate" ? dim + dim % 2 : dim);
          if (name == "rescal" && dim > 30) options.dim /= 4;  // the oracle takes dim^4 steps
          options.negatives = dim == 64 ? 9 : 3;
          options.l2 = l2, options.n3 = n3;
          options.temperature = dim == 7 ? 0 : 0.5F;
          bool const is_distance = name == "transe" || name == "rotate";
          options.margin = is_distance ? 0.4F * static_cast<float>(options.dim) : 0;
          all.push_back(options);
          if (name != "transe") continue;
          options.norm = 2, options.margin = 3;
          all.push_back(options);
        }
      }
      GraphModelOptions options;
      options.name = name, options.loss = loss, options.n3 = 0.02F, options.temperature = 0.5F;
      options.dim = name == "rescal" ? 6 : 34;
      options.sampling = "shared", options.objects_only = true, options.negatives = 3;
      all.push_back(options);
      for (float smoothing : {0.0F, 0.1F}) {
        if (smoothing > 0 && options.loss == "self_adversarial") continue;
        options.label_smoothing = smoothing;
        options.sampling = "all", options.objects_only = true;
        all.push_back(options);
        options.objects_only = false;
        all.push_back(options);
        if (options.loss == "self_adversarial") continue;
        options.sampling = "kvsall", options.objects_only = true;
        all.push_back(options);
      }
    }
  }
  return all;
}

std::string name_of(testing::TestParamInfo<GraphModelOptions> const& info) {
  auto const& o = info.param;
  return fmt::format("{}{}_{}_{}{}{}_dim{}_{}_{}", o.name, o.name == "transe" ? std::to_string(o.norm) : "", o.loss,
                     o.sampling, o.objects_only ? "_objects" : "", o.label_smoothing > 0 ? "_smoothed" : "", o.dim,
                     o.l2 > 0 ? (o.n3 > 0 ? "l2_n3" : "l2") : (o.n3 > 0 ? "n3" : "plain"), info.index);
}

constexpr std::size_t kEntities = 9, kRelations = 3;

class Models : public testing::TestWithParam<GraphModelOptions> {};
INSTANTIATE_TEST_SUITE_P(All, Models, testing::ValuesIn(all_options()), name_of);

void expect_near(Rows const& got, Rows const& wanted) {
  for (auto const& [key, row] : wanted) {
    double scale = 1e-2;
    for (double x : row) scale = std::max(scale, std::abs(x));
    auto const at = got.find(key);
    for (std::size_t k = 0; k < row.size(); ++k) {
      double const x = at == got.end() ? 0.0 : at->second[k];
      EXPECT_NEAR(x, row[k], 1e-4 * scale) << "key " << key << ", column " << k;
    }
  }
}

void expect_definition(GraphModelOptions const& options, Device device) {
  Vocabulary const vocabulary = make_vocabulary(kEntities, kRelations);
  Batch const batch = make_batch_for(options, 7, 2, kEntities, kRelations);
  Step const step = run_step(options, vocabulary, batch, 2, {}, {}, device);

  Rows const entities = random_rows(vocabulary.entities, options.dim, 1);
  Rows const relations = random_rows(vocabulary.relations, relation_dim(options), 2);
  auto const triples = oracle_triples(options, vocabulary, batch, step.work);
  double const loss = oracle_reported_loss(options, entities, relations, triples);
  EXPECT_NEAR(step.loss, loss, 1e-5 * loss);
  expect_near(summed(step, 0, options.dim), oracle_gradients(options, entities, relations, triples, false));
  expect_near(summed(step, 1, relation_dim(options)), oracle_gradients(options, entities, relations, triples, true));
}

TEST_P(Models, LossAndGradientsMatchDefinition) { expect_definition(GetParam(), Device::host()); }

// Returns the bits of sources, coefficients and keys of the entries of microbatch m, in a fixed order.
// entities: their number.
std::vector<std::uint64_t> bits_of(Step const& step, std::size_t m, GraphModelOptions const& options,
                                   std::size_t entities = kEntities) {
  std::vector<std::uint64_t> bits;
  auto const tables = step.gradients.tables(step.work);
  auto const entry = [&](std::size_t part, std::size_t i) {
    bits.push_back(number(step.work.parts[part].keys[i]));
    if (!tables[part].coefficients.empty()) bits.push_back(std::bit_cast<std::uint32_t>(tables[part].coefficients[i]));
    float const* const source = source_of(step, part, i);
    for (std::size_t k = 0; k < row_stride(tables[part].sources.columns()); ++k) {
      bits.push_back(std::bit_cast<std::uint32_t>(source[k]));
    }
  };
  bool const shared = options.sampling != "triple", all = trainer::takes_all(options.sampling);
  std::size_t const drawn = (options.objects_only ? 1 : 2) * (all ? entities : options.negatives);
  std::size_t const per_triple = shared ? 2 : 2 + drawn;
  auto const microbatch = step.work.microbatches[m];
  for (std::size_t i = microbatch.first; i < microbatch.first + microbatch.count; ++i) {
    for (std::size_t k = 0; k < per_triple; ++k) entry(0, i * per_triple + k);
    entry(1, i);
  }
  for (std::size_t k = 0; shared && k < drawn; ++k) entry(0, 2 * step.work.samples + m * drawn + k);
  return bits;
}

// Expects that bits depend neither on the number of threads nor on the rank that computes a microbatch.
void expect_bits_of_the_batch_alone(GraphModelOptions const& options, Device device) {
  Vocabulary const vocabulary = make_vocabulary(40, 4);
  Batch const batch = make_batch_for(options, 301, 3, 40, 4);
  auto const run = [&](Batch const& part, int threads) {
    return run_step(options, vocabulary, part, threads, {}, {}, device);
  };
  Step const one = run(batch, 1), two = run(batch, 2);
  Step const first = run(slice_or_empty(batch, 0, 1), 2), rest = run(slice_or_empty(batch, 1, 2), 2);
  for (std::size_t m = 0; m < 3; ++m) {
    auto const bits = bits_of(one, m, options, 40);
    EXPECT_TRUE(bits == bits_of(two, m, options, 40)) << m;
    EXPECT_TRUE(bits == (m == 0 ? bits_of(first, 0, options, 40) : bits_of(rest, m - 1, options, 40))) << m;
  }
  EXPECT_EQ(one.loss_units, two.loss_units);
  EXPECT_EQ(one.loss_units, first.loss_units + rest.loss_units);
}

TEST_P(Models, BitsAreIndependentOfThreadsAndRanks) { expect_bits_of_the_batch_alone(GetParam(), Device::host()); }

// Each test takes some of the options: few tests are skipped without a GPU, and several processes can share them.
constexpr std::size_t kParts = 6;
class ModelsOnCuda : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  }
  static void each_options(void (*expect)(GraphModelOptions const&, Device)) {
    auto const options = all_options();
    for (std::size_t index = GetParam(); index < options.size(); index += kParts) {
      SCOPED_TRACE(name_of({options[index], index}));
      expect(options[index], Device::cuda(0));
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Parts, ModelsOnCuda, testing::Range<std::size_t>(0, kParts));

TEST_P(ModelsOnCuda, LossAndGradientsMatchDefinition) { each_options(expect_definition); }
TEST_P(ModelsOnCuda, BitsAreIndependentOfRanks) { each_options(expect_bits_of_the_batch_alone); }

TEST_P(Models, PaddingOfSourcesIsZero) {
  GraphModelOptions const& options = GetParam();
  Step const step = run_step(options, make_vocabulary(kEntities, kRelations),
                             make_batch_for(options, 5, 1, kEntities, kRelations), 1);
  auto const tables = step.gradients.tables(step.work);
  for (std::size_t part = 0; part < 2; ++part) {
    for (std::size_t i = 0; i < step.work.parts[part].keys.size(); ++i) {
      std::size_t const dim = part == 0 ? options.dim : relation_dim(options);
      for (std::size_t k = dim; k < row_stride(tables[part].sources.columns()); ++k) {
        ASSERT_EQ(source_of(step, part, i)[k], 0.0F);
      }
    }
  }
}

void expect_scores(GraphModelOptions const& options, Device device) {
  std::size_t const entities_count = 71, queries = 37;
  Vocabulary const vocabulary = make_vocabulary(entities_count, queries);
  auto const model = trainer::make_graph_model(options, vocabulary);
  Rows const entities = random_rows(vocabulary.entities, options.dim, 1);
  Rows const relations = random_rows(vocabulary.relations, relation_dim(options), 2);
  std::vector<std::uint64_t> entity_keys, relation_keys;
  for (Key key : vocabulary.entities) entity_keys.push_back(number(key));
  for (Key key : vocabulary.relations) relation_keys.push_back(number(key));
  Matrix<float> const all = to_matrix(entities, entity_keys, options.dim);
  Matrix<float> const relation_rows = to_matrix(relations, relation_keys, relation_dim(options));
  Stream stream(device, 2);
  auto const all_there = moved(stream, device, all.view()),
             relations_there = moved(stream, device, relation_rows.view());
  Matrix<float> const scores_there(device, queries, entities_count);
  for (bool objects : {true, false}) {
    model->score_all(stream, objects, all_there.view().slice(0, queries), relations_there, all_there, scores_there);
    auto const scores = moved(stream, Device::host(), scores_there.view());
    for (std::size_t i = 0; i < queries; ++i) {
      Row const &known = entities.at(entity_keys[i]), &relation = relations.at(relation_keys[i]);
      for (std::size_t e = 0; e < entities_count; ++e) {
        Row const& other = entities.at(entity_keys[e]);
        double const wanted =
            objects ? oracle_score(options, known, relation, other) : oracle_score(options, other, relation, known);
        ASSERT_NEAR(scores.row(i)[e], wanted, 1e-4) << i << ", " << e;
      }
    }
  }
}

class ModelScores : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(All, ModelScores, kDevices, device_name);

TEST_P(ModelScores, MatchDefinition) {
  for (std::string const& name : trainer::model_names()) {
    for (std::size_t dim : {2, 14, 50, 64, 100}) {
      GraphModelOptions options;
      options.name = name, options.dim = dim;
      expect_scores(options, GetParam());
      options.norm = 2;
      if (name == "transe") expect_scores(options, GetParam());
    }
  }
}

TEST_P(Models, GradientMemoryIsReusedByBatchesOfOtherSizes) {
  GraphModelOptions const& options = GetParam();
  Vocabulary const vocabulary = make_vocabulary(kEntities, kRelations);
  GraphGradients reused;
  for (std::size_t samples : {3, 9, 0, 4}) {
    Batch const batch = make_batch_for(options, samples, 2, kEntities, kRelations);
    Step fresh = run_step(options, vocabulary, batch, 1);
    auto const bits = std::pair{bits_of(fresh, 0, options), bits_of(fresh, 1, options)};
    Step again = run_step(options, vocabulary, batch, 1, std::move(reused));
    EXPECT_EQ(again.loss_units, fresh.loss_units);
    EXPECT_TRUE((bits == std::pair{bits_of(again, 0, options), bits_of(again, 1, options)})) << samples;
    EXPECT_EQ(again.loss_units == 0, samples == 0);
    reused = std::move(again.gradients);
  }
}

// The model gives the store the largest magnitude of sources, except for shared negatives.
TEST_P(Models, ReportsLargestSource) {
  GraphModelOptions const& options = GetParam();
  Vocabulary const vocabulary = make_vocabulary(kEntities, kRelations);
  Batch const batch = make_batch_for(options, 7, 1, kEntities, kRelations);
  Step const step = run_step(options, vocabulary, batch, 2);
  EXPECT_EQ(step.gradients.source_max_abs.has_value(), options.sampling == "triple");
  if (options.sampling != "triple") return;
  float most = 0;
  for (auto const* sources : {&step.gradients.sources, &step.gradients.relation_sources}) {
    for (float x : sources->view().flat()) most = std::max(most, std::abs(x));
  }
  EXPECT_GT(most, 0.0F);
  EXPECT_EQ(step.gradients.source_max_abs, most);
  GraphGradients used = run_step(options, vocabulary, batch, 2).gradients;  // old values must not matter
  for (auto* sources : {&used.sources, &used.relation_sources}) {
    for (float& x : sources->view().flat()) x = std::nanf("");
  }
  EXPECT_EQ(run_step(options, vocabulary, batch, 2, std::move(used)).gradients.source_max_abs, most);
  Step const bad = run_step(options, vocabulary, batch, 2, {}, std::nan(""));
  EXPECT_EQ(bad.gradients.source_max_abs, std::numeric_limits<float>::infinity());
}

// A distance has no derivative at 0, and training moves positives to distance 0.
TEST(DistanceModels, GradientsAreFiniteAtDistanceZero) {
  Vocabulary const vocabulary = make_vocabulary(kEntities, kRelations);
  for (auto const& [name, norm] : {std::pair{"transe", 1}, {"transe", 2}, {"rotate", 1}}) {
    for (std::size_t dim : {6, 64}) {
      GraphModelOptions options;
      options.name = name, options.norm = norm, options.dim = dim;
      for (double value : {0.0, 1e-30, 1e-20}) {
        SCOPED_TRACE(fmt::format("{}{}, dim {}, values {}", name, norm, dim, value));
        // All rows are equal, and so small that all distances are 0 or nearly 0.
        Step const step = run_step(options, vocabulary, make_batch(5, 1, kEntities, kRelations), 1, {}, value);
        for (std::size_t part : {0, 1}) {
          for (auto const& [key, row] : summed(step, part, part == 0 ? dim : relation_dim(options))) {
            for (double x : row) {
              EXPECT_TRUE(std::isfinite(x));
              EXPECT_LE(std::abs(x), value == 0 ? 0 : 100);
            }
          }
        }
      }
    }
  }
}

TEST_P(Models, LargeScoresGiveFiniteLosses) {
  GraphModelOptions const& options = GetParam();
  Vocabulary const vocabulary = make_vocabulary(kEntities, kRelations);
  Batch const batch = make_batch_for(options, 5, 1, kEntities, kRelations);
  for (double value : {1e3, -1e3, std::nan("")}) {
    Step const step = run_step(options, vocabulary, batch, 1, {}, value);
    EXPECT_GE(step.loss_units, 0);
    EXPECT_LE(step.loss, 2 * 5 * 0x1p20);
    bool is_number = true;
    for (auto const& [key, row] : summed(step, 0, options.dim)) {
      for (double x : row) is_number = is_number && !std::isnan(x);
    }
    EXPECT_EQ(is_number, !std::isnan(value));
  }
}

}  // namespace
}  // namespace gpups::test::model_test
