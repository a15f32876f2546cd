// SPDX-License-Identifier: Apache-2.0
// The list of all models. To add one, add an entry here and a file to this folder.
#include <cmath>
#include <string_view>

#include "kernels/base/check.hpp"
#include "trainer/tasks/graph/model.hpp"
#include "trainer/tasks/graph/model/bilinear.hpp"

namespace gpups::trainer {

namespace {

std::unique_ptr<GraphModel> make_complex(GraphModelOptions const& options, Vocabulary const& vocabulary) {
  GPUPS_REQUIRE(
      options.dim % 2 == 0,
      "dim is {} (a row of complex has real parts and the same number of imaginary parts): use an even number",
      options.dim);
  return std::make_unique<Bilinear>(kernels::Algebra::kComplex, options, vocabulary);
}

std::unique_ptr<GraphModel> make_distmult(GraphModelOptions const& options, Vocabulary const& vocabulary) {
  return std::make_unique<Bilinear>(kernels::Algebra::kReal, options, vocabulary);
}

std::unique_ptr<GraphModel> make_rescal(GraphModelOptions const& options, Vocabulary const& vocabulary) {
  GPUPS_REQUIRE(options.dim <= 256,
                "dim is {} (a relation of rescal is a matrix of dim * dim values, and a row has at most 65536): "
                "use 256 or less",
                options.dim);
  return std::make_unique<Bilinear>(kernels::Algebra::kMatrix, options, vocabulary);
}

void require_margin(GraphModelOptions const& options) {
  GPUPS_REQUIRE(std::isfinite(options.margin) && options.margin >= 0,
                "margin is {} (a score is the margin minus a distance, so all scores would be below 0): use 9, or "
                "another number that is not negative",
                options.margin);
}

std::unique_ptr<GraphModel> make_transe(GraphModelOptions const& options, Vocabulary const& vocabulary) {
  GPUPS_REQUIRE(options.norm == 1 || options.norm == 2,
                "norm is {} (the distance of transe is a sum of absolute differences, or Euclidean): use 1 or 2",
                options.norm);
  require_margin(options);
  return std::make_unique<Bilinear>(
      options.norm == 1 ? kernels::Algebra::kTranslationL1 : kernels::Algebra::kTranslationL2, options, vocabulary);
}

std::unique_ptr<GraphModel> make_rotate(GraphModelOptions const& options, Vocabulary const& vocabulary) {
  GPUPS_REQUIRE(options.dim % 2 == 0,
                "dim is {} (an entity's row of rotate has real parts and the same number of imaginary parts): use an "
                "even number",
                options.dim);
  require_margin(options);
  GPUPS_REQUIRE(
      options.relation_dropout == 0,
      "relation_dropout is {} (relations of rotate are angles, and without an angle there is no rotation): use "
      "0",
      options.relation_dropout);
  return std::make_unique<Bilinear>(kernels::Algebra::kRotation, options, vocabulary);
}

struct ModelEntry {
  char const* name;
  std::unique_ptr<GraphModel> (*make)(GraphModelOptions const&, Vocabulary const&);
};
constexpr ModelEntry kModels[] = {{"complex", make_complex},
                                  {"distmult", make_distmult},
                                  {"rescal", make_rescal},
                                  {"transe", make_transe},
                                  {"rotate", make_rotate}};

// Returns "a, b or c".
std::string any_of(std::span<std::string const> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  return text;
}

void require_known(char const* option, std::string const& value, std::vector<std::string> const& known) {
  for (std::string const& name : known) {
    if (name == value) return;
  }
  GPUPS_REQUIRE(false, "{} '{}' is unknown (a run needs an existing one): use {}", option, value, any_of(known));
}

void require_weight(char const* option, float weight) {
  GPUPS_REQUIRE(std::isfinite(weight) && weight >= 0,
                "{} is {} (it is the weight of a penalty in the loss): "
                "use 0 or a small positive number",
                option, weight);
}

void require_share(char const* option, float share) {
  GPUPS_REQUIRE(share >= 0 && share < 1, "{} is {} (it is a share): use 0, or a number below 1", option, share);
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (ModelEntry const& entry : kModels) names.emplace_back(entry.name);
  return names;
}

std::unique_ptr<GraphModel> make_graph_model(GraphModelOptions const& options, Vocabulary const& vocabulary) {
  require_known("model", options.name, model_names());
  require_known("loss", options.loss, {"logistic", "softmax", "self_adversarial"});
  require_known("sampling", options.sampling, {"triple", "shared", "all", "kvsall"});
  GPUPS_REQUIRE(
      options.sampling != "kvsall" || options.loss != "self_adversarial",
      "sampling is kvsall and loss is self_adversarial (which is for one answer of a query): use loss softmax "
      "or logistic");
  GPUPS_REQUIRE(options.sampling != "kvsall" || options.objects_only,
                "sampling is kvsall and the model has no reciprocal relations (with which queries ask for subjects): "
                "set reciprocal to true");
  GPUPS_REQUIRE(
      options.sampling != "triple" || !options.objects_only,
      "the model has reciprocal relations and sampling is triple (negatives of each triple are for its object "
      "and its subject): use sampling shared, all or kvsall");
  GPUPS_REQUIRE(options.dim >= 1 && options.dim <= 65536,
                "dim is {} (a row has 1 to 65536 values): use 50 to 1000 for most graphs", options.dim);
  GPUPS_REQUIRE(options.negatives >= 1 && options.negatives <= 1U << 20,
                "negatives is {} (a positive has 1 to 1048576 negatives on each side): use 6 for each triple, or 500 "
                "shared negatives",
                options.negatives);
  GPUPS_REQUIRE(options.negative_reuse >= 1 && options.negative_reuse <= 16,
                "negative_reuse is {} (it is the number of triples, of 16 consecutive ones, that use the same "
                "negative): use 8, or 1 for the most entities in a batch",
                options.negative_reuse);
  GPUPS_REQUIRE(
      std::isfinite(options.temperature) && options.temperature >= 0,
      "temperature is {} (it multiplies the scores whose softmax weights negatives): use 0 for equal weights, "
      "or a number near 1",
      options.temperature);
  require_share("label_smoothing", options.label_smoothing);
  require_share("entity_dropout", options.entity_dropout);
  require_share("relation_dropout", options.relation_dropout);
  require_weight("l2", options.l2);
  require_weight("n3", options.n3);
  GPUPS_REQUIRE(!vocabulary.entities.empty() && !vocabulary.relations.empty(),
                "the vocabulary has {} entities and {} relations (negatives are drawn from the entities): read it "
                "from data with at least one triple",
                vocabulary.entities.size(), vocabulary.relations.size());
  for (ModelEntry const& entry : kModels) {
    if (entry.name == options.name) return entry.make(options, vocabulary);
  }
  throw Error("model '" + options.name + "' is not implemented");
}

std::vector<TableBatch> GraphEntries::tables() const {
  std::vector<TableBatch> tables;
  for (EntryList const& part : parts) tables.push_back({.table = part.table, .keys = part.keys});
  return tables;
}

std::vector<TableGradients> GraphGradients::tables(GraphEntries const& work) const {
  std::vector<TableGradients> tables;
  for (std::size_t part = 0; part < coefficients.size(); ++part) {
    bool const own = part == 1 && relation_sources.columns() > 0;
    tables.push_back({.sources = own ? relation_sources.view() : sources.view(),
                      .source_indices = work.parts[part].sources,
                      .coefficients = coefficients[part].view().slice(0, entries[part]),
                      .source_max_abs = source_max_abs});
  }
  return tables;
}

}  // namespace gpups::trainer
