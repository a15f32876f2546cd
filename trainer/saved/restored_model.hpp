// SPDX-License-Identifier: Apache-2.0
// A trained model with its rows on this rank alone, for what other programs and users get from it.
#pragma once

#include <string>

#include "gpups/gpups.hpp"
#include "trainer/config/task_kind.hpp"
#include "trainer/saved/saved_model.hpp"
#include "trainer/step/session.hpp"

namespace gpups::trainer {

class RestoredModel {
 public:
  // Creates the task and the store, and loads the checkpoint. `data` must outlive this object. Throws Error if the data
  // is not that of the run. Blocks.
  RestoredModel(SavedModel const& model, Data const& data);

  Store& store() { return session_.store; }

 private:
  Session session_;
};

// Returns whether a file of this format has vectors and names, and nothing else.
bool is_word2vec(ModelFormat format);
// Returns the format of arrays. REQUIRES: !is_word2vec(format).
ExportFormat array_format(ModelFormat format);
// Returns the text of model.json: what the rows belong to, and the whole configuration.
std::string description_of(SavedModel const& model);

}  // namespace gpups::trainer
