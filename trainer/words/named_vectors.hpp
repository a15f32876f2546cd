// SPDX-License-Identifier: Apache-2.0
// Data whose model is a vector for each name, in table 0: the words of a text, or the nodes of a network.
#pragma once

#include "trainer/graph/dictionary.hpp"
#include "trainer/task.hpp"

namespace gpups::trainer {

class NamedVectors : public Data {
 public:
  virtual Dictionary const& names() const = 0;
};

}  // namespace gpups::trainer
