// SPDX-License-Identifier: Apache-2.0
#include "trainer/config_usual.hpp"

#include <algorithm>
#include <cmath>

namespace gpups::trainer {
namespace {

Config usual_for_clicks() {
  Config usual;
  usual.data.train = usual.data.valid = usual.data.test = "";
  usual.data.valid_share = 0;
  usual.data.test_share = 0.1;
  usual.model.name = "dlrm";
  usual.model.dim = 16;
  usual.model.init_scale = 0.01;
  return usual;
}

Config usual_for_ratings() {
  Config usual;
  usual.data.train = usual.data.valid = usual.data.test = "";
  usual.data.valid_share = 0;
  usual.data.test_share = 0.1;
  usual.model.name = "factorization";
  usual.model.dim = 32;
  return usual;
}

}  // namespace

Config usual_for(std::string const& reader) {
  if (reader == "clicks") return usual_for_clicks();
  if (reader == "ratings") return usual_for_ratings();
  return {};
}

// Entities begin where distances of untrained triples are about the margin: for much nearer or further ones, the loss
// has no slope left for positives or for negatives. (Sun et al. 2019 take the same range.) A softmax sees differences
// of scores alone.
void set_usual_range(ModelConfig const& model, ModelConfig& usual) {
  if ((model.name != "transe" && model.name != "rotate") || model.loss == "softmax") return;
  auto const dim = static_cast<double>(model.dim);
  double const summands = model.name == "rotate" ? dim / 2 : model.norm == 2 ? std::sqrt(dim) : dim;
  usual.init = "uniform";
  usual.init_scale = std::min((model.margin + 2) / summands, 1e6);  // the most that may be set
}

}  // namespace gpups::trainer
