// SPDX-License-Identifier: Apache-2.0
// When a setting has an effect, and what a user is told where it has none. Only for config.cpp and
// config_fields*.cpp.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "trainer/config_fields.hpp"

namespace gpups::trainer::constraints {

inline bool is(std::string const& word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
inline bool has_rows(Config const& c) { return c.model.name != "logistic"; }
inline bool has_deep(Config const& c) { return is(c.model.name, {"deepfm", "dlrm", "dcnv2"}); }
inline bool is_wide(ModelConfig const& m) { return m.wide || is(m.name, {"logistic", "fm", "deepfm"}); }
// Samples are held out from one file where there is no other.
inline bool is_cut(Config const& c) { return is(c.data.reader, {"clicks", "ratings"}); }
inline bool is_graph(Config const& c) { return is(c.data.reader, {"triples", "wordnet"}); }
inline bool has_dense(Config const& c) { return c.data.reader == "clicks"; }

inline Constraint const kFiles{[](Config const& c) { return c.data.reader != "wordnet"; },
                               "data.reader is \"wordnet\""};
inline Constraint const kValidShare{
    [](Config const& c) { return c.data.reader == "wordnet" || (is_cut(c) && c.data.valid.empty()); },
    "the samples are those of data.valid"};
inline Constraint const kTestShare{
    [](Config const& c) { return c.data.reader == "wordnet" || (is_cut(c) && c.data.test.empty()); },
    "the samples are those of data.test"};
inline Constraint const kDrawn{[](Config const& c) {
                                 bool const cut = c.data.valid.empty() || c.data.test.empty();
                                 return c.data.reader == "wordnet" || (c.data.reader == "ratings" && cut);
                               },
                               "no samples are held out at random"};
inline Constraint const kClicks{[](Config const& c) { return c.data.reader == "clicks"; },
                                "it is for data.reader = \"clicks\""};
inline Constraint const kGraphs{is_graph, "it is for knowledge graphs: data.reader = \"triples\" or \"wordnet\""};
inline Constraint const kOwnNegatives{[](Config const& c) { return is_graph(c) && c.model.sampling == "triple"; },
                                      "it is for knowledge graphs with model.sampling = \"triple\""};
inline Constraint const kTranslations{[](Config const& c) { return c.model.name == "transe"; },
                                      "it is for model.name = \"transe\""};
inline Constraint const kMargins{
    [](Config const& c) {
      return is(c.model.name, {"transe", "rotate"}) && c.model.loss != "softmax";
    },
    "it is for model.name = \"transe\" or \"rotate\"; model.loss = \"softmax\" is the same with any"};
inline Constraint const kWeighted{[](Config const& c) { return is_graph(c) && c.model.loss == "self_adversarial"; },
                                  "it is for model.loss = \"self_adversarial\""};
inline Constraint const kRatings{[](Config const& c) { return c.data.reader == "ratings"; },
                                 "it is for data.reader = \"ratings\""};
inline Constraint const kGradientFilter{[](Config const& c) { return c.gradient_compression.age_max > 0; },
                                        "nothing is held back: set gradient_compression.age_max"};
inline Constraint const kRefreshFilter{[](Config const& c) { return c.refresh_compression.age_max > 0; },
                                       "nothing is held back: set refresh_compression.age_max"};
inline bool compresses(CompressionConfig const& t) { return t.codec != "lossless" || t.top_k > 0 || t.age_max > 0; }
inline Constraint const kGradientsCompressed{
    [](Config const& c) { return compresses(c.gradient_compression); },
    "gradients are sent whole: set gradient_compression.codec, top_k or age_max"};
inline Constraint const kRefreshesCompressed{[](Config const& c) { return compresses(c.refresh_compression); },
                                             "rows are sent whole: set refresh_compression.codec or age_max"};
inline Constraint const kRows{has_rows, "model.name = \"logistic\" has rows of one number only"};
inline Constraint const kBuckets{
    [](Config const& c) {
      return c.data.reader == "clicks" && is(c.model.numeric_features, {"buckets", "both"});
    },
    "it is for click models with model.numeric_features = \"buckets\" or \"both\""};
inline Constraint const kMayBeWide{
    [](Config const& c) {
      return is(c.model.name, {"dlrm", "dcnv2"});
    },
    "it is for model.name = \"dlrm\" or \"dcnv2\": the others have it, or no other part"};
inline Constraint const kWide{[](Config const& c) { return c.data.reader == "clicks" && is_wide(c.model); },
                              "the model has no rows of one number: set model.wide"};
inline Constraint const kClickRows{[](Config const& c) { return c.data.reader == "clicks" && has_rows(c); },
                                   "the model has no rows of many numbers"};
inline Constraint const kBottom{[](Config const& c) { return c.model.name == "dlrm"; },
                                "it is for model.name = \"dlrm\""};
inline Constraint const kCross{[](Config const& c) { return c.model.name == "dcnv2"; },
                               "it is for model.name = \"dcnv2\""};
inline Constraint const kDeep{has_deep, "it is for model.name = \"deepfm\", \"dlrm\" or \"dcnv2\""};
inline Constraint const kMomentum{[](Config const& c) { return has_dense(c) && c.dense.optimizer == "sgd"; },
                                  "it is for dense.optimizer = \"sgd\""};
inline Constraint const kDenseMoments{[](Config const& c) {
                                        return has_dense(c) && is(c.dense.optimizer, {"adam", "lamb"});
                                      },
                                      "it is for dense.optimizer = \"adam\" or \"lamb\""};
inline Constraint const kDenseAccumulates{[](Config const& c) {
                                            return has_dense(c) && is(c.dense.optimizer, {"adagrad", "ftrl"});
                                          },
                                          "it is for dense.optimizer = \"adagrad\" or \"ftrl\""};
inline Constraint const kDenseDivides{[](Config const& c) {
                                        return has_dense(c) && !is(c.dense.optimizer, {"sgd", "ftrl"});
                                      },
                                      "dense.optimizer = \"sgd\" and \"ftrl\" have none"};
inline Constraint const kDenseDecays{[](Config const& c) { return has_dense(c) && c.dense.optimizer != "ftrl"; },
                                     "dense.optimizer = \"ftrl\" makes weights anew in each step: set dense.l2"};
inline Constraint const kDenseProximal{[](Config const& c) { return has_dense(c) && c.dense.optimizer == "ftrl"; },
                                       "it is for dense.optimizer = \"ftrl\""};
inline bool sends_top_k(Config const& c) { return has_dense(c) && c.dense.compression == "top_k"; }
inline Constraint const kTopK{sends_top_k, "it is for dense.compression = \"top_k\""};
inline Constraint const kTopKWarmsUp{[](Config const& c) { return sends_top_k(c) && c.dense.warmup_steps > 0; },
                                     "there is no warm-up: set dense.compression = \"top_k\" and dense.warmup_steps"};
inline Constraint const kTopKMomentum{
    [](Config const& c) { return sends_top_k(c) && c.dense.optimizer == "sgd" && c.dense.momentum > 0; },
    "it is for dense.compression = \"top_k\", dense.optimizer = \"sgd\" and a momentum"};
// Settings of some kinds of optimizer.
inline Constraint const kAccumulates{
    [](Config const& c) {
      return has_rows(c) && is(c.optimizer.kind, {"adagrad", "rowwise_adagrad", "ftrl"});
    },
    "it is for optimizer.kind = \"adagrad\", \"rowwise_adagrad\" or \"ftrl\"; model.name = "
    "\"logistic\" has rows of one "
    "number only"};
inline Constraint const kDivides{
    [](Config const& c) {
      return has_rows(c) && !is(c.optimizer.kind, {"sgd", "ftrl"});
    },
    "optimizer.kind = \"sgd\" and \"ftrl\" have none, and model.name = \"logistic\" has rows of one "
    "number only"};
inline Constraint const kMoments{[](Config const& c) {
                                   return has_rows(c) && is(c.optimizer.kind, {"adam", "lamb"});
                                 },
                                 "it is for optimizer.kind = \"adam\" or \"lamb\""};
inline Constraint const kProximal{[](Config const& c) { return has_rows(c) && c.optimizer.kind == "ftrl"; },
                                  "it is for optimizer.kind = \"ftrl\""};
inline Constraint const kWideStateful{
    [](Config const& c) { return c.data.reader == "clicks" && is_wide(c.model) && c.linear.kind != "sgd"; },
    "linear.kind = \"sgd\" keeps no state, or the model has no rows of one number"};
inline Constraint const kWideProximal{
    [](Config const& c) { return c.data.reader == "clicks" && is_wide(c.model) && c.linear.kind == "ftrl"; },
    "it is for linear.kind = \"ftrl\", and models that have rows of one number"};
inline Constraint const kPooled{[](Config const& c) {
                                  return c.data.reader == "clicks" &&
                                         (!c.data.multi_hot.empty() || !c.data.weighted.empty());
                                },
                                "no category has many values: see data.multi_hot and data.weighted"};
inline Constraint const kDecaying{[](Config const& c) { return c.optimizer.schedule != "constant"; },
                                  "optimizer.schedule is \"constant\""};
inline Constraint const kByEpochs{[](Config const& c) { return c.train.steps == 0; }, "train.steps is set"};
inline Constraint const kSampled{[](Config const& c) { return c.eval.samples_max > 0; },
                                 "eval.samples_max is 0: all are ranked"};
inline Constraint const kValidated{[](Config const& c) { return c.train.validate_every > 0; },
                                   "train.validate_every is 0"};

}  // namespace gpups::trainer::constraints
