// SPDX-License-Identifier: Apache-2.0
// Dropout of the numbers of rows, compared with a simple implementation: each use of a row is a row of its own, without
// the numbers that are dropped there.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "kernels/dense/dropout.hpp"
#include "tests/support/model_fixture.hpp"

namespace gpups::test::dropout_test {
namespace {

constexpr std::size_t kEntities = 9, kRelations = 3, kSamples = 7;

// A use of a row: its key, and the factor of each of its numbers, which is 0 if the number is dropped.
struct RowUse {
  std::uint64_t key;
  Row factors;
};

// The same batch where each use of a row has a key of its own.
struct SeparateUses {
  std::map<std::uint64_t, RowUse> entities, relations;
  std::vector<OracleTriple> triples;

  static Rows dropped(std::map<std::uint64_t, RowUse> const& uses, Rows const& rows) {
    Rows of_uses;
    for (auto const& [use, from] : uses) {
      Row row = rows.at(from.key);
      for (std::size_t k = 0; k < row.size(); ++k) row[k] *= from.factors[k];
      of_uses[use] = row;
    }
    return of_uses;
  }
  // Returns the gradients of rows from those of their uses.
  static Rows folded(std::map<std::uint64_t, RowUse> const& uses, Rows const& of_uses) {
    Rows sums;
    for (auto const& [use, gradient] : of_uses) {
      auto const& [key, factors] = uses.at(use);
      Row& sum = sums.try_emplace(key, Row(gradient.size())).first->second;
      for (std::size_t k = 0; k < gradient.size(); ++k) sum[k] += gradient[k] * factors[k];
    }
    return sums;
  }
};

// Returns the factors of a row, by the kernel. layer: of subjects, objects, negatives and
// relations.
Row factors_of(GraphModelOptions const& options, Batch const& batch, std::uint32_t layer, std::uint32_t number) {
  bool const of_relation = layer == 3;
  Matrix<float> const ones(Device::host(), 1, of_relation ? relation_dim(options) : options.dim);
  for (float& x : ones.view().flat()) x = 1;
  std::vector<std::uint32_t> const numbers{number};
  Stream stream(Device::host(), 1);
  kernels::dropout(stream, {.values = ones,
                            .rate = of_relation ? options.relation_dropout : options.entity_dropout,
                            .seed = options.seed,
                            .layer = layer,
                            .clock = batch.clock,
                            .sample_numbers = View<std::uint32_t const>(numbers)});
  stream.wait();
  return {ones.row(0).begin(), ones.row(0).end()};
}

SeparateUses separate_uses(GraphModelOptions const& options, Batch const& batch,
                           std::vector<OracleTriple> const& triples) {
  SeparateUses all;
  std::uint64_t next = 0;
  auto const use = [&](std::map<std::uint64_t, RowUse>& uses, std::uint64_t key, std::uint32_t layer,
                       std::uint32_t number) {
    uses[next] = {key, factors_of(options, batch, layer, number)};
    return next++;
  };
  for (auto const& microbatch : batch.microbatches) {
    std::map<std::size_t, std::uint64_t> candidates;  // by their place
    auto const candidate = [&](std::size_t place, std::uint64_t key) {
      if (!candidates.contains(place)) {
        OracleTriple const& any = triples[microbatch.first];
        std::size_t const drawn = any.objects.size() + any.subjects.size();
        candidates[place] = use(all.entities, key, 2, static_cast<std::uint32_t>(microbatch.number * drawn + place));
      }
      return candidates[place];
    };
    for (std::size_t i = microbatch.first; i < microbatch.first + microbatch.count; ++i) {
      OracleTriple const& t = triples[i];
      OracleTriple separate{.subject = use(all.entities, t.subject, 0, batch.sample_numbers[i]),
                            .relation = use(all.relations, t.relation, 3, batch.sample_numbers[i]),
                            .object = use(all.entities, t.object, 1, batch.sample_numbers[i]),
                            .objects = {},
                            .subjects = {}};
      for (bool of_objects : {true, false}) {
        auto const& from = of_objects ? t.objects : t.subjects;
        auto const& answers = of_objects ? t.object_answers : t.subject_answers;
        for (std::size_t j = 0; j < from.size(); ++j) {
          std::uint64_t const key = candidate(of_objects ? j : t.objects.size() + j, from[j]);
          (of_objects ? separate.objects : separate.subjects).push_back(key);
          if (std::count(answers.begin(), answers.end(), from[j]) > 0) {
            (of_objects ? separate.object_answers : separate.subject_answers).push_back(key);
          }
        }
      }
      all.triples.push_back(separate);
    }
  }
  return all;
}

void expect_near(Rows const& got, Rows const& wanted) {
  for (auto const& [key, row] : wanted) {
    for (std::size_t k = 0; k < row.size(); ++k) EXPECT_NEAR(got.at(key)[k], row[k], 1e-3) << key << ", column " << k;
  }
}

std::vector<GraphModelOptions> dropping_options() {
  std::vector<GraphModelOptions> all;
  for (char const* name : {"complex", "rescal", "transe", "rotate"}) {
    for (auto [sampling, loss, objects_only] :
         {std::tuple{"shared", "logistic", false}, {"all", "softmax", false}, {"kvsall", "logistic", true}}) {
      for (auto [of_entities, of_relations] : {std::pair{0.25F, 0.5F}, {0.5F, 0.0F}, {0.0F, 0.25F}}) {
        if (of_entities == 0 && name == std::string_view("rotate")) continue;  // whose relations are angles
        GraphModelOptions options;
        options.name = name, options.sampling = sampling, options.loss = loss, options.objects_only = objects_only;
        options.dim = options.name == "rescal" ? 6 : 20;
        options.n3 = 0.02F;
        options.entity_dropout = of_entities;
        options.relation_dropout = options.name == "rotate" ? 0 : of_relations;
        all.push_back(options);
      }
    }
  }
  return all;
}

class DropoutOfRows : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(All, DropoutOfRows, kDevices, device_name);

TEST_P(DropoutOfRows, LossAndGradientsMatchDefinition) {
  Vocabulary const vocabulary = make_vocabulary(kEntities, kRelations);
  for (GraphModelOptions const& options : dropping_options()) {
    SCOPED_TRACE(fmt::format("{} {}, rates {} and {}", options.name, options.sampling, options.entity_dropout,
                             options.relation_dropout));
    Batch const batch = make_batch_for(options, kSamples, 2, kEntities, kRelations);
    Step const step = run_step(options, vocabulary, batch, 2, {}, {}, GetParam());
    SeparateUses const uses = separate_uses(options, batch, oracle_triples(options, vocabulary, batch, step.work));
    Rows const entities = SeparateUses::dropped(uses.entities, random_rows(vocabulary.entities, options.dim, 1));
    Rows const relations =
        SeparateUses::dropped(uses.relations, random_rows(vocabulary.relations, relation_dim(options), 2));
    double const loss = oracle_reported_loss(options, entities, relations, uses.triples);
    EXPECT_NEAR(step.loss, loss, 1e-5 * loss);
    for (bool of_relations : {false, true}) {
      Rows const of_uses = oracle_gradients(options, entities, relations, uses.triples, of_relations);
      expect_near(summed(step, of_relations ? 1 : 0, of_relations ? relation_dim(options) : options.dim),
                  SeparateUses::folded(of_relations ? uses.relations : uses.entities, of_uses));
    }
  }
}

TEST_P(DropoutOfRows, DependsOnTheGlobalBatchAlone) {
  Vocabulary const vocabulary = make_vocabulary(kEntities, kRelations);
  for (GraphModelOptions const& options : dropping_options()) {
    Batch const batch = make_batch_for(options, 40, 3, kEntities, kRelations);
    auto const loss = [&](Batch const& part) {
      return run_step(options, vocabulary, part, 2, {}, {}, GetParam()).loss_units;
    };
    EXPECT_EQ(loss(batch), loss(slice_or_empty(batch, 0, 1)) + loss(slice_or_empty(batch, 1, 2)));
    Batch later = batch;
    later.clock = Clock{4};
    if (options.sampling != "shared") {  // shared negatives also depend on the clock
      EXPECT_NE(loss(later), loss(batch));
    }
  }
}

}  // namespace
}  // namespace gpups::test::dropout_test
