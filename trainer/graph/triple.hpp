// SPDX-License-Identifier: Apache-2.0
// A fact of a knowledge graph.
#pragma once

#include <cstdint>

namespace gpups::trainer {

// Numbers of a dictionary's names: entities and relations are numbered from 0.
struct Triple {
  std::uint32_t subject, relation, object;
  bool operator==(Triple const&) const = default;
};

}  // namespace gpups::trainer
