// SPDX-License-Identifier: Apache-2.0
// Random walks on a network, drawn when a batch needs them (DeepWalk, Perozzi et al. 2014; node2vec, Grover and
// Leskovec 2016). A sample is a walk.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/step/batch_sampler.hpp"
#include "trainer/tasks/nodes/network.hpp"
#include "trainer/tasks/words/skip_gram_groups.hpp"

namespace gpups::trainer {

// See docs/nodes.md.
struct WalkOptions {
  std::uint32_t walks = 10;   // from each node, in an epoch
  std::uint32_t length = 80;  // nodes of a walk
  double p = 1, q = 1;        // of node2vec; 1 and 1: a walk does not depend on the node before
};

// Draws the walks of batches. Any thread.
class WalkSampler {
 public:
  // `network` must outlive this object. options.subsample is not used.
  WalkSampler(Network const& network, WalkOptions const& walks, SkipGramOptions const& options);

  // Returns the nodes of a walk: sample s begins at node s % nodes. It ends early at a node without edges. The walk
  // depends on network, options, epoch and sample only.
  std::vector<std::uint32_t> walk(std::int64_t epoch, std::uint64_t sample) const;
  // Returns groups of 32 neighbouring nodes of the batch's walks.
  SkipGramGroups groups(Batch const& batch) const;
  // Draws nodes in proportion to weights^.75.
  AliasTable const& negatives() const { return maker_.negatives(); }

 private:
  Network const& network_;
  WalkOptions walks_;
  SkipGramOptions options_;
  GroupMaker maker_;
};

}  // namespace gpups::trainer
