// SPDX-License-Identifier: Apache-2.0
// Data whose model is a vector for each name, in table 0: the words of a text, the nodes of a network, or items.
#pragma once

#include "trainer/tasks/graph/dictionary.hpp"
#include "trainer/tasks/task.hpp"

namespace gpups::trainer {

class NamedVectors : public Data {
 public:
  virtual Dictionary const& names() const = 0;
  // Returns how many names training has seen; they are the first.
  virtual std::size_t seen_names() const { return names().size(); }
  // Returns the names of the keys of table 1, or null if they are those of table 0.
  virtual Dictionary const* other_names() const { return nullptr; }
};

}  // namespace gpups::trainer
