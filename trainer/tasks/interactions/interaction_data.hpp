// SPDX-License-Identifier: Apache-2.0
// The data of recommenders that learn from implicit feedback: users, and the items that they chose.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/step/task.hpp"
#include "trainer/tasks/interactions/interaction_set.hpp"

namespace gpups::trainer {

// Interactions as Data, for any model.
class InteractionData : public Data {
 public:
  explicit InteractionData(InteractionSet set) : set_(std::move(set)), digest_(set_.digest()) {}

  InteractionSet const& set() const { return set_; }

  NamedRows named_rows() const override { return {&set_.items, set_.known_items}; }

  bool has(std::string_view split) const override { return set_.split(split).size() > 0; }
  std::uint64_t digest() const override { return digest_; }
  std::vector<std::string> notices() const override { return set_.notices; }
  std::string summary() const override;
  nlohmann::json counts() const override;

 protected:
  // Returns the memory of the data, and of an evaluation.
  MemoryPlan plan_of_set(Config const& config) const;

 private:
  InteractionSet set_;
  std::uint64_t digest_;
};

// Reads the interactions of a configuration; see read_interactions().
std::unique_ptr<InteractionData const> read_interaction_data(Config const& config);

}  // namespace gpups::trainer
