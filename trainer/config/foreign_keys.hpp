// SPDX-License-Identifier: Apache-2.0
// Names of settings in other projects, for error messages with the name here.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/check.hpp"
#include "trainer/base/edit_distance.hpp"

namespace gpups::trainer {

// A name that another project gives to a setting, and what to write here.
struct ForeignKey {
  std::string_view there, here;
};

// LibKGE, DGL-KE, PyKEEN, Surprise, implicit, gensim, word2vec, FuxiCTR, RecBole, Keras, scikit-learn and
// pandas; in small letters, without
// '_' and '-'.
inline constexpr ForeignKey kForeignKeys[] = {
    {"1vsall", "model.sampling = \"all\""},
    {"alpha", "optimizer.learning_rate"},
    {"batch", "train.batch_size"},
    {"bias", "model.biases"},
    {"biased", "model.biases"},
    {"colnames", "data.columns"},
    {"columnnames", "data.columns"},
    {"commentchar", "data.comment"},
    {"createinversetriples", "model.reciprocal"},
    {"datadir", "data.folder"},
    {"datapath", "data.folder"},
    {"delim", "data.separator"},
    {"delimiter", "data.separator"},
    {"dimension", "model.dim"},
    {"dimensions", "model.dim"},
    {"earlystoppatience", "train.patience"},
    {"earlystopping", "train.patience"},
    {"embeddingdim", "model.dim"},
    {"embeddingsize", "model.dim"},
    {"embsize", "model.dim"},
    {"evalstep", "train.validate_every"},
    {"factors", "model.dim"},
    {"fieldseparator", "data.separator"},
    {"gamma", "model.margin"},
    {"gpu", "run.device"},
    {"hasheader", "data.heading"},
    {"header", "data.heading"},
    {"headers", "data.heading"},
    {"hiddendim", "model.dim"},
    {"inverse", "model.reciprocal"},
    {"inverserelations", "model.reciprocal"},
    {"iterations", "train.epochs"},
    {"kvsall", "model.sampling = \"kvsall\""},
    {"labelsmoothing", "model.label_smoothing"},
    {"learningrateinit", "optimizer.learning_rate"},
    {"lr", "optimizer.learning_rate"},
    {"lrall", "optimizer.learning_rate"},
    {"lrschedule", "optimizer.schedule"},
    {"lrscheduler", "optimizer.schedule"},
    {"maxepochs", "train.epochs"},
    {"maxstep", "train.steps"},
    {"modelname", "model.name"},
    {"negative", "model.negatives"},
    {"negativesamplesize", "model.negatives"},
    {"negsamplesize", "model.negatives"},
    {"nepochs", "train.epochs"},
    {"nfactors", "model.dim"},
    {"njobs", "run.threads"},
    {"nthreads", "run.threads"},
    {"numepochs", "train.epochs"},
    {"numfactors", "model.dim"},
    {"numnegatives", "model.negatives"},
    {"numnegs", "model.negatives"},
    {"numnegsperpos", "model.negatives"},
    {"numthreads", "run.threads"},
    {"numwalks", "model.walks"},
    {"numworkers", "run.threads"},
    {"optimizer", "optimizer.kind"},
    {"outputdir", "run.folder"},
    {"randomseed", "train.seed"},
    {"randomstate", "train.seed"},
    {"reciprocalrelations", "model.reciprocal"},
    {"regall", "model.l2"},
    {"regularization", "model.l2"},
    {"regularizationcoef", "model.n3"},
    {"regularizeweight", "model.n3"},
    {"sample", "model.subsample"},
    {"savedir", "run.folder"},
    {"sep", "data.separator"},
    {"shuffle", "data.order"},
    {"size", "model.dim"},
    {"skipheader", "data.heading"},
    {"skiprows", "data.heading"},
    {"testfile", "data.test"},
    {"testsize", "data.test_share"},
    {"trainfile", "data.train"},
    {"usecols", "data.columns"},
    {"validevery", "train.validate_every"},
    {"validfile", "data.valid"},
    {"vectorsize", "model.dim"},
    {"walknumber", "model.walks"},
    {"wd", "optimizer.l2"},
    {"weightdecay", "optimizer.l2"},
    {"workers", "run.threads"},
};

// The same for values.
inline constexpr ForeignKey kForeignValues[] = {
    {"1vsall", "all"},
    {"bce", "logistic"},
    {"binarycrossentropy", "logistic"},
    {"ce", "softmax"},
    {"crossentropy", "softmax"},
    {"kl", "softmax"},
    {"negativesampling", "triple"},
    {"nssa", "self_adversarial"},
    {"selfadversarial", "self_adversarial"},
};

// Returns the one of `choices` that means the same as another project's value, or nothing.
inline std::optional<std::string> choice_for(std::string_view value, std::vector<std::string> const& choices) {
  for (auto const& [there, here] : kForeignValues) {
    bool const is_choice = std::find(choices.begin(), choices.end(), here) != choices.end();
    if (is_choice && bare_name(value) == there) return std::string(here);
  }
  return std::nullopt;
}

// Throws Error if other projects have a setting with the name `key`. The error contains the name here. origin: the file
// and line, or the option, that gives the key.
inline void throw_if_foreign(std::string const& section, std::string const& key, std::string const& origin) {
  std::string const bare = bare_name(key);
  for (auto const& [there, here] : kForeignKeys) {
    GPUPS_REQUIRE(bare != there, "{}: there is no key '{}' in [{}] (it would have no effect): did you mean {}?", origin,
                  key, section, here);
  }
}

}  // namespace gpups::trainer
