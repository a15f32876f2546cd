// SPDX-License-Identifier: Apache-2.0
// The conditions under which settings have an effect, and the reasons in error messages when they have none. Included
// by config_consistency.cpp, config_fields*.cpp and model_shape.cpp only.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "trainer/config/config_fields.hpp"
#include "trainer/tasks/graph/model.hpp"

namespace gpups::trainer::constraints {

inline bool is(std::string const& word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
inline bool has_rows(Config const& c) { return c.model.name != "logistic"; }
inline bool has_deep(Config const& c) { return is(c.model.name, {"deepfm", "dlrm", "dcnv2"}); }
inline bool is_wide(ModelConfig const& m) { return m.wide || is(m.name, {"logistic", "fm", "deepfm"}); }
// Readers that hold out samples of data.train if data.valid or data.test is empty.
inline bool is_cut(Config const& c) { return is(c.data.reader, {"clicks", "ratings", "interactions"}); }
inline bool is_graph(Config const& c) { return is(c.data.reader, {"triples", "wordnet"}); }
inline bool has_dense(Config const& c) { return c.data.reader == "clicks"; }

inline Constraint const kLines{[](Config const& c) {
                                 return !is(c.data.reader, {"wordnet", "text", "interactions"});
                               },
                               "data.reader = \"wordnet\", \"text\" and \"interactions\" have no bad lines"};
inline Constraint const kFiles{[](Config const& c) { return c.data.reader != "wordnet"; },
                               "data.reader is \"wordnet\""};
inline Constraint const kValidShare{
    [](Config const& c) { return c.data.reader == "wordnet" || (is_cut(c) && c.data.valid.empty()); },
    "data.valid has the samples, or data.reader holds none out"};
inline Constraint const kTestShare{
    [](Config const& c) { return c.data.reader == "wordnet" || (is_cut(c) && c.data.test.empty()); },
    "data.test has the samples, or data.reader holds none out"};
inline Constraint const kDrawn{
    [](Config const& c) {
      bool const cut = c.data.valid.empty() || c.data.test.empty();
      return c.data.reader == "wordnet" || (is(c.data.reader, {"ratings", "interactions"}) && cut);
    },
    "no samples are held out at random"};
inline Constraint const kClicks{[](Config const& c) { return c.data.reader == "clicks"; },
                                "only data.reader = \"clicks\" uses it"};
inline Constraint const kGraphs{is_graph, "only knowledge graphs use it: data.reader = \"triples\" or \"wordnet\""};
inline Constraint const kLabelled{
    [](Config const& c) { return is_graph(c) && takes_all(c.model.sampling) && c.model.loss != "self_adversarial"; },
    "only knowledge graphs with model.sampling = \"all\" or \"kvsall\" and loss \"softmax\" or \"logistic\" use it"};
inline Constraint const kSharedNegatives{[](Config const& c) { return is_graph(c) && c.model.sampling != "triple"; },
                                         "only knowledge graphs with model.sampling other than \"triple\" use it"};
inline Constraint const kRelationDropout{
    [](Config const& c) { return kSharedNegatives.in(c) && c.model.name != "rotate"; },
    "only knowledge graphs with model.sampling other than \"triple\" use it, and relations of \"rotate\" are angles"};
inline bool is_text(Config const& c) { return c.data.reader == "text"; }
inline Constraint const kTexts{is_text, "only data.reader = \"text\" uses it"};
inline bool is_network(Config const& c) { return c.data.reader == "edges"; }
inline Constraint const kNetworks{is_network, "only data.reader = \"edges\" uses it"};
inline bool has_interactions(Config const& c) { return c.data.reader == "interactions"; }
inline Constraint const kRanked{[](Config const& c) { return is_graph(c) || has_interactions(c); },
                                "only knowledge graphs and interactions are ranked"};
inline bool is_ials(Config const& c) { return c.model.name == "ials"; }
inline Constraint const kIals{is_ials, "only model.name = \"ials\" uses it"};
inline Constraint const kNormed{[](Config const& c) { return is_graph(c) || is_ials(c); },
                                "only knowledge graphs and model.name = \"ials\" use it"};
inline Constraint const kSkipGram{[](Config const& c) { return is_text(c) || is_network(c); },
                                  "only model.name = \"skip_gram\" uses it"};
inline Constraint const kHeldOut{[](Config const& c) {
                                   return !is(c.data.reader, {"wordnet", "edges"});
                                 },
                                 "data.reader = \"wordnet\" and \"edges\" have one file"};
inline Constraint const kAnalogies{
    [](Config const& c) { return is_text(c) && !(c.data.valid.empty() && c.data.test.empty()); },
    "only data.reader = \"text\" with data.valid or data.test uses it"};
inline Constraint const kDrawsNegatives{
    [](Config const& c) {
      return (is_graph(c) && !takes_all(c.model.sampling)) || is_text(c) || is_network(c) || c.model.name == "bpr";
    },
    "only knowledge graphs that draw negatives, texts, networks and model.name = \"bpr\" use it"};
inline Constraint const kCounted{[](Config const& c) { return c.data.reader == "clicks" || is_text(c); },
                                 "only click data and texts use it"};
inline Constraint const kOwnNegatives{
    [](Config const& c) { return kSkipGram.in(c) || (is_graph(c) && c.model.sampling == "triple"); },
    "only knowledge graphs with model.sampling = \"triple\", texts and networks use it"};
inline Constraint const kTranslations{[](Config const& c) { return c.model.name == "transe"; },
                                      "only model.name = \"transe\" uses it"};
inline Constraint const kMargins{
    [](Config const& c) {
      return is(c.model.name, {"transe", "rotate"}) && c.model.loss != "softmax";
    },
    "only model.name = \"transe\" or \"rotate\" uses it, and model.loss = \"softmax\" does not depend on it"};
inline Constraint const kWeighted{[](Config const& c) { return is_graph(c) && c.model.loss == "self_adversarial"; },
                                  "only model.loss = \"self_adversarial\" uses it"};
inline Constraint const kPlaced{[](Config const& c) {
                                  return (is_graph(c) && !takes_all(c.model.sampling)) || c.data.reader == "ratings" ||
                                         c.model.name == "bpr";
                                },
                                "click data, texts, networks, model.name = \"ials\", and knowledge graphs where each "
                                "step reads all entities have no "
                                "placement by a partition"};
inline Constraint const kLocalNegatives{
    [](Config const& c) { return is_graph(c) && kDrawsNegatives.in(c) && c.placement.initial == "graph"; },
    "only knowledge graphs that draw negatives, with placement.initial = "
    "\"graph\", use it"};
inline Constraint const kRatings{[](Config const& c) { return c.data.reader == "ratings"; },
                                 "only data.reader = \"ratings\" uses it"};
inline Constraint const kGradientFilter{[](Config const& c) { return c.gradient_compression.age_max > 0; },
                                        "all gradients are sent at once: set gradient_compression.age_max"};
inline Constraint const kRefreshFilter{[](Config const& c) { return c.refresh_compression.age_max > 0; },
                                       "all changes are sent at once: set refresh_compression.age_max"};
inline bool compresses(CompressionConfig const& t) { return t.codec != "lossless" || t.top_k > 0 || t.age_max > 0; }
inline Constraint const kGradientsCompressed{
    [](Config const& c) { return compresses(c.gradient_compression); },
    "gradients are not compressed: set gradient_compression.codec, top_k or age_max"};
inline Constraint const kRefreshesCompressed{[](Config const& c) { return compresses(c.refresh_compression); },
                                             "refreshes are not compressed: set refresh_compression.codec or age_max"};
// ials solves for its rows.
inline bool has_optimizer(Config const& c) { return has_rows(c) && c.model.name != "ials"; }
inline Constraint const kOptimized{
    has_optimizer, "model.name = \"logistic\" has a linear part only, and \"ials\" solves for its rows"};
inline Constraint const kRows{has_rows, "model.name = \"logistic\" has a linear part only"};
inline Constraint const kBuckets{
    [](Config const& c) {
      return c.data.reader == "clicks" && is(c.model.numeric_features, {"buckets", "both"});
    },
    "only click models with model.numeric_features = \"buckets\" or \"both\" use it"};
inline Constraint const kMayBeWide{
    [](Config const& c) {
      return is(c.model.name, {"dlrm", "dcnv2"});
    },
    "only model.name = \"dlrm\" or \"dcnv2\" uses it: the other click models always have a linear part"};
inline Constraint const kWide{[](Config const& c) { return c.data.reader == "clicks" && is_wide(c.model); },
                              "the model has no linear part: set model.wide"};
inline Constraint const kClickRows{[](Config const& c) { return c.data.reader == "clicks" && has_rows(c); },
                                   "the model has a linear part only"};
inline Constraint const kBottom{[](Config const& c) { return c.model.name == "dlrm"; },
                                "only model.name = \"dlrm\" uses it"};
inline Constraint const kCross{[](Config const& c) { return c.model.name == "dcnv2"; },
                               "only model.name = \"dcnv2\" uses it"};
inline Constraint const kDeep{has_deep, "only model.name = \"deepfm\", \"dlrm\" or \"dcnv2\" uses it"};
inline Constraint const kMomentum{[](Config const& c) { return has_dense(c) && c.dense.optimizer == "sgd"; },
                                  "only dense.optimizer = \"sgd\" uses it"};
inline Constraint const kDenseMoments{[](Config const& c) {
                                        return has_dense(c) && is(c.dense.optimizer, {"adam", "lamb"});
                                      },
                                      "only dense.optimizer = \"adam\" or \"lamb\" uses it"};
inline Constraint const kDenseAccumulates{[](Config const& c) {
                                            return has_dense(c) && is(c.dense.optimizer, {"adagrad", "ftrl"});
                                          },
                                          "only dense.optimizer = \"adagrad\" or \"ftrl\" uses it"};
inline Constraint const kDenseDivides{[](Config const& c) {
                                        return has_dense(c) && !is(c.dense.optimizer, {"sgd", "ftrl"});
                                      },
                                      "dense.optimizer = \"sgd\" and \"ftrl\" do not use it"};
inline Constraint const kDenseDecays{
    [](Config const& c) { return has_dense(c) && c.dense.optimizer != "ftrl"; },
    "dense.optimizer = \"ftrl\" computes the weights from sums of gradients in each step: set dense.l2"};
inline Constraint const kDenseProximal{[](Config const& c) { return has_dense(c) && c.dense.optimizer == "ftrl"; },
                                       "only dense.optimizer = \"ftrl\" uses it"};
inline bool sends_top_k(Config const& c) { return has_dense(c) && c.dense.compression == "top_k"; }
inline Constraint const kTopK{sends_top_k, "only dense.compression = \"top_k\" uses it"};
inline Constraint const kTopKWarmsUp{[](Config const& c) { return sends_top_k(c) && c.dense.warmup_steps > 0; },
                                     "there is no warm-up: set dense.compression = \"top_k\" and dense.warmup_steps"};
inline Constraint const kTopKMomentum{
    [](Config const& c) { return sends_top_k(c) && c.dense.optimizer == "sgd" && c.dense.momentum > 0; },
    "only dense.compression = \"top_k\" with dense.optimizer = \"sgd\" and dense.momentum > 0 uses it"};
inline Constraint const kAccumulates{
    [](Config const& c) {
      return has_optimizer(c) && is(c.optimizer.kind, {"adagrad", "rowwise_adagrad", "ftrl"});
    },
    "only optimizer.kind = \"adagrad\", \"rowwise_adagrad\" or \"ftrl\" uses it, model.name = \"logistic\" has a "
    "linear "
    "part only, and \"ials\" solves for its rows"};
inline Constraint const kDivides{[](Config const& c) {
                                   return has_optimizer(c) && !is(c.optimizer.kind, {"sgd", "ftrl"});
                                 },
                                 "optimizer.kind = \"sgd\" and \"ftrl\" do not use it, model.name = \"logistic\" has a "
                                 "linear part only, and \"ials\" "
                                 "solves for its rows"};
inline Constraint const kMoments{[](Config const& c) {
                                   return has_optimizer(c) && is(c.optimizer.kind, {"adam", "lamb"});
                                 },
                                 "only optimizer.kind = \"adam\" or \"lamb\" uses it"};
inline Constraint const kProximal{[](Config const& c) { return has_optimizer(c) && c.optimizer.kind == "ftrl"; },
                                  "only optimizer.kind = \"ftrl\" uses it"};
inline Constraint const kWideStateful{
    [](Config const& c) { return c.data.reader == "clicks" && is_wide(c.model) && c.linear.kind != "sgd"; },
    "linear.kind = \"sgd\" keeps no state, or the model has no linear part"};
inline Constraint const kWideProximal{
    [](Config const& c) { return c.data.reader == "clicks" && is_wide(c.model) && c.linear.kind == "ftrl"; },
    "only linear.kind = \"ftrl\" in a model with a linear part uses it"};
inline Constraint const kPooled{[](Config const& c) {
                                  return c.data.reader == "clicks" &&
                                         (!c.data.multi_hot.empty() || !c.data.weighted.empty());
                                },
                                "no category has several values: see data.multi_hot and data.weighted"};
inline Constraint const kDecaying{
    [](Config const& c) { return c.model.name != "ials" && c.optimizer.schedule != "constant"; },
    "optimizer.schedule is \"constant\", or model.name is \"ials\""};
inline Constraint const kScheduled{[](Config const& c) { return c.model.name != "ials"; },
                                   "model.name = \"ials\" solves for its rows"};
inline Constraint const kByEpochs{[](Config const& c) { return c.train.steps == 0; }, "train.steps is set"};
inline Constraint const kSampled{[](Config const& c) { return c.eval.samples_max > 0; },
                                 "eval.samples_max is 0, so all triples are ranked"};
inline Constraint const kValidated{[](Config const& c) { return c.train.validate_every > 0; },
                                   "train.validate_every is 0"};

}  // namespace gpups::trainer::constraints
