// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/model/click_models.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"
#include "kernels/base/nvtx.hpp"

namespace gpups::trainer {
namespace {

std::vector<ClickModelEntry> const& entries() {
  static std::vector<ClickModelEntry> const all{
      {"logistic", {.rows = false, .weights = true}, {make_wide_term, make_numbers_term}, false},
      // Rendle: "Factorization machines", ICDM 2010.
      {"fm", {.weights = true}, {make_wide_term, make_numbers_term, make_factorization_term}, true},
      // Guo et al.: "DeepFM", IJCAI 2017.
      {"deepfm", {.weights = true}, {make_wide_term, make_numbers_term, make_deep_term, make_factorization_term}, true},
      // Naumov et al.: "Deep learning recommendation model", 2019.
      {"dlrm", {.head_of_rows = true}, {make_interaction_term}, true},
      // Wang et al.: "DCN V2", WWW 2021, with both networks in parallel.
      {"dcnv2", {}, {make_deep_term, make_cross_term}, false},
  };
  return all;
}

FeatureNeeds needs_of(Config const& config) {
  FeatureNeeds needs = click_model(config.model.name).needs;
  needs.weights = needs.weights || config.settings<ClickSettings>().wide;
  return needs;
}

}  // namespace

std::vector<std::string> click_model_names() {
  std::vector<std::string> names;
  for (ClickModelEntry const& entry : entries()) names.emplace_back(entry.name);
  return names;
}

ClickModelEntry const& click_model(std::string const& name) {
  auto const entry = std::find_if(entries().begin(), entries().end(), [&](auto const& e) { return e.name == name; });
  GPUPS_ASSERT(entry != entries().end());
  return *entry;
}

namespace {

kernels::ProductPrecision precision_of(std::string const& name) {
  if (name == "tf32") return kernels::ProductPrecision::kTf32;
  return name == "bfloat16" ? kernels::ProductPrecision::kBFloat16 : kernels::ProductPrecision::kFp32;
}

}  // namespace

ClickModel::ClickModel(Layout const& layout, Config const& config, SampleStatistics const& statistics)
    : features_(layout, config, needs_of(config), statistics), precision_(precision_of(config.dense.precision)) {
  ClickModelEntry const& entry = click_model(config.model.name);
  GPUPS_REQUIRE(!entry.even || features_.even(),
                "model {} needs categories whose rows have one dim (it multiplies rows with each other): set "
                "data.categorical_columns, and the same dim for all in model.dims",
                config.model.name);
  float base_logit = statistics.base_logit();
  ClickSettings const& settings = config.settings<ClickSettings>();
  auto const seed = static_cast<std::uint64_t>(config.train.seed);
  TermContext const context{features_, settings, seed, parameters_, plan_, base_logit};
  std::vector<MakeTerm> makers = entry.terms;
  if (settings.wide) makers.insert(makers.begin(), {make_wide_term, make_numbers_term});
  for (MakeTerm make : makers) {
    if (auto term = make(context)) terms_.push_back(std::move(term));
  }
  terms_buffer_ = plan_.add(terms_.size());
  gradient_buffer_ = plan_.add(1);
}

void ClickModel::forward(Stream& stream, ClickMicrobatch const& batch, View<float const> values, Scratch const& scratch,
                         MatrixView<float> terms) const {
  kernels::NvtxRange const range("forward");
  for (std::size_t t = 0; t < terms_.size(); ++t) {
    terms_[t]->forward(stream, batch, values, scratch,
                       {terms.data() + t, terms.rows(), 1, terms.stride(), terms.device()});
  }
}

void ClickModel::backward(Stream& stream, ClickMicrobatch const& batch, View<float const> values,
                          Scratch const& scratch, MatrixView<float> logit_gradient, LayerGradients const& gradients,
                          MatrixView<float> block_gradients) const {
  kernels::NvtxRange const range("backward");
  bool first = true;
  for (auto const& term : terms_) {
    term->backward(stream, batch, values, scratch, logit_gradient, gradients, block_gradients, !first);
    first = first && !term->reads_blocks();
  }
}

}  // namespace gpups::trainer
