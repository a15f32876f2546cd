// SPDX-License-Identifier: Apache-2.0
// When a setting has an effect, and what a user is told where it has none. Only for config.cpp and
// config_fields*.cpp.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "trainer/config_fields.hpp"

namespace gpups::trainer::uses {

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

inline Use const kFiles{[](Config const& c) { return c.data.reader != "wordnet"; }, "data.reader is \"wordnet\""};
inline Use const kValidShare{
    [](Config const& c) { return c.data.reader == "wordnet" || (is_cut(c) && c.data.valid.empty()); },
    "the samples are those of data.valid"};
inline Use const kTestShare{
    [](Config const& c) { return c.data.reader == "wordnet" || (is_cut(c) && c.data.test.empty()); },
    "the samples are those of data.test"};
inline Use const kDrawn{[](Config const& c) {
                          bool const cut = c.data.valid.empty() || c.data.test.empty();
                          return c.data.reader == "wordnet" || (c.data.reader == "ratings" && cut);
                        },
                        "no samples are held out at random"};
inline Use const kClicks{[](Config const& c) { return c.data.reader == "clicks"; },
                         "it is for data.reader = \"clicks\""};
inline Use const kGraphs{is_graph, "it is for knowledge graphs: data.reader = \"triples\" or \"wordnet\""};
inline Use const kOwnNegatives{[](Config const& c) { return is_graph(c) && c.model.sampling == "triple"; },
                               "it is for knowledge graphs with model.sampling = \"triple\""};
inline Use const kTranslations{[](Config const& c) { return c.model.name == "transe"; },
                               "it is for model.name = \"transe\""};
inline Use const kMargins{
    [](Config const& c) {
      return is(c.model.name, {"transe", "rotate"}) && c.model.loss != "softmax";
    },
    "it is for model.name = \"transe\" or \"rotate\"; model.loss = \"softmax\" is the same with any"};
inline Use const kWeighted{[](Config const& c) { return is_graph(c) && c.model.loss == "self_adversarial"; },
                           "it is for model.loss = \"self_adversarial\""};
inline Use const kRatings{[](Config const& c) { return c.data.reader == "ratings"; },
                          "it is for data.reader = \"ratings\""};
inline Use const kGradientsFiltered{[](Config const& c) { return c.gradients.age_max > 0; },
                                    "nothing is held back: set gradients.age_max"};
inline Use const kRefreshesFiltered{[](Config const& c) { return c.refreshes.age_max > 0; },
                                    "nothing is held back: set refreshes.age_max"};
inline bool holds_back(TransferConfig const& t) { return t.codec != "lossless" || t.top_k > 0 || t.age_max > 0; }
inline Use const kGradientsHeld{[](Config const& c) { return holds_back(c.gradients); },
                                "gradients are sent whole: set gradients.codec, top_k or age_max"};
inline Use const kRefreshesHeld{[](Config const& c) { return holds_back(c.refreshes); },
                                "rows are sent whole: set refreshes.codec or age_max"};
inline Use const kRows{has_rows, "model.name = \"logistic\" has rows of one number only"};
inline Use const kBuckets{[](Config const& c) {
                            return c.data.reader == "clicks" && is(c.model.numbers, {"buckets", "both"});
                          },
                          "it is for click models with model.numbers = \"buckets\" or \"both\""};
inline Use const kMayBeWide{[](Config const& c) {
                              return is(c.model.name, {"dlrm", "dcnv2"});
                            },
                            "it is for model.name = \"dlrm\" or \"dcnv2\": the others have it, or no other part"};
inline Use const kWide{[](Config const& c) { return c.data.reader == "clicks" && is_wide(c.model); },
                       "the model has no rows of one number: set model.wide"};
inline Use const kClickRows{[](Config const& c) { return c.data.reader == "clicks" && has_rows(c); },
                            "the model has no rows of many numbers"};
inline Use const kBottom{[](Config const& c) { return c.model.name == "dlrm"; }, "it is for model.name = \"dlrm\""};
inline Use const kCross{[](Config const& c) { return c.model.name == "dcnv2"; }, "it is for model.name = \"dcnv2\""};
inline Use const kDeep{has_deep, "it is for model.name = \"deepfm\", \"dlrm\" or \"dcnv2\""};
inline Use const kMomentum{[](Config const& c) { return has_dense(c) && c.dense.optimizer == "sgd"; },
                           "it is for dense.optimizer = \"sgd\""};
inline Use const kDenseMoments{[](Config const& c) {
                                 return has_dense(c) && is(c.dense.optimizer, {"adam", "lamb"});
                               },
                               "it is for dense.optimizer = \"adam\" or \"lamb\""};
inline Use const kDenseAccumulates{[](Config const& c) {
                                     return has_dense(c) && is(c.dense.optimizer, {"adagrad", "ftrl"});
                                   },
                                   "it is for dense.optimizer = \"adagrad\" or \"ftrl\""};
inline Use const kDenseDivides{[](Config const& c) {
                                 return has_dense(c) && !is(c.dense.optimizer, {"sgd", "ftrl"});
                               },
                               "dense.optimizer = \"sgd\" and \"ftrl\" have none"};
inline Use const kDenseDecays{[](Config const& c) { return has_dense(c) && c.dense.optimizer != "ftrl"; },
                              "dense.optimizer = \"ftrl\" makes weights anew in each step: set dense.l2"};
inline Use const kDenseProximal{[](Config const& c) { return has_dense(c) && c.dense.optimizer == "ftrl"; },
                                "it is for dense.optimizer = \"ftrl\""};
inline bool sends_top_k(Config const& c) { return has_dense(c) && c.dense.exchange == "top_k"; }
inline Use const kTopK{sends_top_k, "it is for dense.exchange = \"top_k\""};
inline Use const kTopKWarmsUp{[](Config const& c) { return sends_top_k(c) && c.dense.warmup_steps > 0; },
                              "there is no warm-up: set dense.exchange = \"top_k\" and dense.warmup_steps"};
inline Use const kTopKMomentum{
    [](Config const& c) { return sends_top_k(c) && c.dense.optimizer == "sgd" && c.dense.momentum > 0; },
    "it is for dense.exchange = \"top_k\", dense.optimizer = \"sgd\" and a momentum"};
// Settings of some kinds of optimizer.
inline Use const kAccumulates{[](Config const& c) {
                                return has_rows(c) && is(c.optimizer.kind, {"adagrad", "rowwise_adagrad", "ftrl"});
                              },
                              "it is for optimizer.kind = \"adagrad\", \"rowwise_adagrad\" or \"ftrl\"; model.name = "
                              "\"logistic\" has rows of one "
                              "number only"};
inline Use const kDivides{
    [](Config const& c) {
      return has_rows(c) && !is(c.optimizer.kind, {"sgd", "ftrl"});
    },
    "optimizer.kind = \"sgd\" and \"ftrl\" have none, and model.name = \"logistic\" has rows of one "
    "number only"};
inline Use const kMoments{[](Config const& c) {
                            return has_rows(c) && is(c.optimizer.kind, {"adam", "lamb"});
                          },
                          "it is for optimizer.kind = \"adam\" or \"lamb\""};
inline Use const kProximal{[](Config const& c) { return has_rows(c) && c.optimizer.kind == "ftrl"; },
                           "it is for optimizer.kind = \"ftrl\""};
inline Use const kWideStateful{
    [](Config const& c) { return c.data.reader == "clicks" && is_wide(c.model) && c.weights.kind != "sgd"; },
    "weights.kind = \"sgd\" keeps no state, or the model has no rows of one number"};
inline Use const kWideProximal{
    [](Config const& c) { return c.data.reader == "clicks" && is_wide(c.model) && c.weights.kind == "ftrl"; },
    "it is for weights.kind = \"ftrl\", and models that have rows of one number"};
inline Use const kPooled{
    [](Config const& c) { return c.data.reader == "clicks" && (!c.data.many.empty() || !c.data.weighted.empty()); },
    "no category has many values: see data.many and data.weighted"};
inline Use const kDecaying{[](Config const& c) { return c.optimizer.schedule != "constant"; },
                           "optimizer.schedule is \"constant\""};
inline Use const kByEpochs{[](Config const& c) { return c.train.steps == 0; }, "train.steps is set"};
inline Use const kSampled{[](Config const& c) { return c.eval.samples_max > 0; },
                          "eval.samples_max is 0: all are ranked"};
inline Use const kValidated{[](Config const& c) { return c.train.valid_every > 0; }, "train.valid_every is 0"};

}  // namespace gpups::trainer::uses
