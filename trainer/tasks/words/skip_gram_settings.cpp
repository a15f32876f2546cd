// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/words/skip_gram_settings.hpp"

namespace gpups::trainer {

Config skip_gram_defaults() {
  Config config;
  config.data.train = config.data.valid = config.data.test = "";
  config.model.name = "skip_gram";
  config.optimizer.learning_rate = 0.2;
  config.train.batch_size = 256;  // groups of 32 words
  config.train.epochs = 5;
  return config;
}

void set_skip_gram_defaults(Config& config, std::set<std::string> const& given) {
  if (!given.contains("model.init")) config.model.init = "uniform";
  if (!given.contains("model.init_scale")) config.model.init_scale = 0.5 / static_cast<double>(config.model.dim);
}

}  // namespace gpups::trainer
