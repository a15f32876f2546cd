// SPDX-License-Identifier: Apache-2.0
// What a configuration asks for, made: a model, and a store with the model's tables.
#pragma once

#include <cstdint>
#include <memory>

#include "gpups/gpups.hpp"
#include "trainer/config.hpp"
#include "trainer/dataset.hpp"
#include "trainer/model.hpp"

namespace gpups::trainer {

// schedule_steps: where the schedule of the learning rate ends, unless the configuration says.
ModelOptions model_options(Config const& config, std::int64_t schedule_steps);

struct Session {
  std::unique_ptr<Model> model;
  Store store;
};

// Throws Error for options that do not fit each other, and for a device that is not there. Allocates no rows.
Session open_session(Config const& config, Dataset const& data, Group const& group, std::int64_t schedule_steps);

// Throws Error where a rank has another configuration, cut or data than rank 0, naming it. Collective.
void wait_require_agreement(Store& store, Config const& config, std::uint64_t data_digest);

}  // namespace gpups::trainer
