// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/config_defaults.hpp"

#include <algorithm>
#include <cmath>

namespace gpups::trainer {
namespace {

Config click_defaults() {
  Config defaults;
  defaults.data.train = defaults.data.valid = defaults.data.test = "";
  defaults.data.valid_share = 0;
  defaults.data.test_share = 0.1;
  defaults.model.name = "dlrm";
  defaults.model.dim = 16;
  defaults.model.init_scale = 0.01;
  return defaults;
}

Config rating_defaults() {
  Config defaults;
  defaults.data.train = defaults.data.valid = defaults.data.test = "";
  defaults.data.valid_share = 0;
  defaults.data.test_share = 0.1;
  defaults.model.name = "factorization";
  defaults.model.dim = 32;
  defaults.model.biases = true;
  defaults.optimizer.l2 = 4e-4;  // for ratings of one to five, and some hundred ratings of a row or a column
  return defaults;
}

Config interaction_defaults() {
  Config defaults = rating_defaults();
  defaults.model.name = "bpr";
  defaults.model.dim = 64;
  defaults.model.negatives = 8;
  defaults.optimizer.l2 = 1e-5;
  defaults.eval.hits = {20};
  return defaults;
}

// The settings of word2vec, except that a group of words shares its negatives.
Config text_defaults() {
  Config defaults;
  defaults.data.train = defaults.data.valid = defaults.data.test = "";
  defaults.model.name = "skip_gram";
  defaults.model.negatives = 15;
  defaults.model.min_count = 5;
  defaults.optimizer.learning_rate = 0.2;
  defaults.train.batch_size = 256;  // groups of 32 words
  defaults.train.epochs = 5;
  return defaults;
}

// The settings of DeepWalk.
Config network_defaults() {
  Config defaults = text_defaults();
  defaults.data.train = "edges.txt";
  defaults.model.dim = 128;
  defaults.model.window = 10;
  defaults.train.batch_size = 64;  // walks of 80 nodes
  return defaults;
}

}  // namespace

Config defaults_for(std::string const& reader) {
  if (reader == "clicks") return click_defaults();
  if (reader == "ratings") return rating_defaults();
  if (reader == "interactions") return interaction_defaults();
  if (reader == "text") return text_defaults();
  if (reader == "edges") return network_defaults();
  return {};
}

// Chooses a range in which the distances of untrained triples are near the margin: for much smaller or larger distances
// the gradient of the loss vanishes for positives or for negatives. Sun et al. 2019 use the same range. A softmax loss
// depends on differences of scores only and keeps the general default.
void set_model_defaults(ModelConfig const& model, ModelConfig& defaults) {
  if (model.name == "ials") defaults.l2 = 0.003;
  if (model.name == "skip_gram") {  // as word2vec
    defaults.init = "uniform";
    defaults.init_scale = 0.5 / static_cast<double>(model.dim);
  }
  if ((model.name != "transe" && model.name != "rotate") || model.loss == "softmax") return;
  auto const dim = static_cast<double>(model.dim);
  double const summands = model.name == "rotate" ? dim / 2 : model.norm == 2 ? std::sqrt(dim) : dim;
  defaults.init = "uniform";
  defaults.init_scale = std::min((model.margin + 2) / summands, 1e6);  // the upper limit of model.init_scale
}

}  // namespace gpups::trainer
