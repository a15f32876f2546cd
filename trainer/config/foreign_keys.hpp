// SPDX-License-Identifier: Apache-2.0
// Names of settings in other projects, for error messages with the name here.
#pragma once

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/check.hpp"

namespace gpups::trainer {

// A name that another project gives to a setting, and what to write here.
struct ForeignKey {
  std::string_view there, here;
};

// LibKGE, DGL-KE, PyKEEN, Surprise, implicit, gensim, word2vec, FuxiCTR, RecBole and Keras; in small letters, without
// '_' and '-'.
inline constexpr ForeignKey kForeignKeys[] = {
    {"1vsall", "model.sampling = \"all\""},
    {"alpha", "optimizer.learning_rate"},
    {"batch", "train.batch_size"},
    {"bias", "model.biases"},
    {"biased", "model.biases"},
    {"createinversetriples", "model.reciprocal"},
    {"dimension", "model.dim"},
    {"dimensions", "model.dim"},
    {"earlystopping", "train.patience"},
    {"earlystoppatience", "train.patience"},
    {"embeddingdim", "model.dim"},
    {"embeddingsize", "model.dim"},
    {"embsize", "model.dim"},
    {"evalstep", "train.validate_every"},
    {"factors", "model.dim"},
    {"gamma", "model.margin"},
    {"hiddendim", "model.dim"},
    {"inverse", "model.reciprocal"},
    {"inverserelations", "model.reciprocal"},
    {"iterations", "train.epochs"},
    {"kvsall", "model.sampling = \"kvsall\""},
    {"labelsmoothing", "model.label_smoothing"},
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
    {"numepochs", "train.epochs"},
    {"numfactors", "model.dim"},
    {"numnegatives", "model.negatives"},
    {"numnegs", "model.negatives"},
    {"numnegsperpos", "model.negatives"},
    {"numwalks", "model.walks"},
    {"reciprocalrelations", "model.reciprocal"},
    {"regall", "optimizer.l2"},
    {"regularization", "optimizer.l2"},
    {"regularizationcoef", "model.n3"},
    {"regularizeweight", "model.n3"},
    {"sample", "model.subsample"},
    {"shuffle", "data.order"},
    {"size", "model.dim"},
    {"validevery", "train.validate_every"},
    {"vectorsize", "model.dim"},
    {"walknumber", "model.walks"},
    {"weightdecay", "optimizer.l2"},
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

// Returns a name in small letters, without '_' and '-'.
inline std::string bare_name(std::string_view name) {
  std::string bare;
  for (char letter : name) {
    if (letter != '_' && letter != '-') bare += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return bare;
}

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
