// SPDX-License-Identifier: Apache-2.0
// Reads a network from files of edges, and holds edges out.
#pragma once

#include <string>
#include <vector>

#include "trainer/config/config.hpp"
#include "trainer/tasks/nodes/network.hpp"
#include "trainer/tasks/words/held_out_pairs.hpp"

namespace gpups::trainer {

// A network, and edges that it does not have.
struct SplitNetwork {
  Network network;
  std::vector<HeldOutPair> valid, test;  // each pair of nodes once, in the order of the file
};

// Reads the edges of config.train: two names and perhaps a weight. The network has weights if a line has one; lines
// without then have weight 1. valid and test are the edges of config.valid and config.test or, without a file, a random
// share of the pairs of nodes that have edges, which the network then does not have. Held-out edges of nodes that have
// no edges in the network are left out, with a notice. Throws Error if a file cannot be read, has too many bad lines or
// no edges.
SplitNetwork read_network(DataConfig const& config, bool directed, std::vector<std::string>& notices);

}  // namespace gpups::trainer
