// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/nodes/random_walks.hpp"

#include <algorithm>

namespace gpups::trainer {
namespace {

// The purposes of random bits.
constexpr std::uint64_t kSteps = 1, kReaches = 2, kWalkNegatives = 3;

// One walk. A step of node2vec draws a neighbour by weight and accepts it with a probability in proportion to its
// factor, until one is accepted (Yang et al. 2019, KnightKing), so nothing is stored for pairs of edges.
class Walk {
 public:
  Walk(Network const& network, WalkOptions const& options, RandomBits const& random)
      : network_(network),
        options_(options),
        random_(random),
        is_first_order_(options.p == 1 && options.q == 1),
        factor_max_(std::max({1.0, 1 / options.p, 1 / options.q})) {}

  std::vector<std::uint32_t> from(std::uint32_t node) {
    std::vector<std::uint32_t> nodes{node};
    while (nodes.size() < options_.length) {
      std::uint32_t const at = nodes.back();
      if (network_.neighbours(at).empty()) break;
      nodes.push_back(nodes.size() == 1 || is_first_order_ ? draw(at) : draw_after(nodes[nodes.size() - 2], at));
    }
    return nodes;
  }

 private:
  std::uint32_t draw(std::uint32_t at) { return network_.draw_neighbour(at, random_(draws_++)); }

  std::uint32_t draw_after(std::uint32_t before, std::uint32_t at) {
    if (network_.neighbours(at).size() == 1) return network_.neighbours(at).front();
    while (true) {
      std::uint32_t const to = draw(at);
      double const limit = static_cast<double>(random_(draws_++) >> 11) * 0x1p-53 * factor_max_;
      if (limit < factor(before, to)) return to;
    }
  }
  double factor(std::uint32_t before, std::uint32_t to) const {
    if (to == before) return 1 / options_.p;
    return network_.has_edge(before, to) ? 1 : 1 / options_.q;
  }

  Network const& network_;
  WalkOptions const& options_;
  RandomBits random_;
  bool is_first_order_;
  double factor_max_;
  std::uint64_t draws_ = 0;
};

}  // namespace

WalkSampler::WalkSampler(Network const& network, WalkOptions const& walks, SkipGramOptions const& options)
    : network_(network),
      walks_(walks),
      options_(options),
      maker_(network.nodes().keys(), network.weights_of_nodes(), options) {}

std::vector<std::uint32_t> WalkSampler::walk(std::int64_t epoch, std::uint64_t sample) const {
  Walk walk(network_, walks_, RandomBits(options_.seed, kSteps, epoch, sample));
  return walk.from(static_cast<std::uint32_t>(sample % network_.nodes().size()));
}

SkipGramGroups WalkSampler::groups(Batch const& batch) const {
  SkipGramGroups groups;
  std::vector<ListedWord> listed;
  for (std::uint64_t const sample : batch.samples) {
    RandomBits const of_reach(options_.seed, kReaches, batch.epoch, sample);
    listed.clear();
    for (std::uint32_t const node : walk(batch.epoch, sample)) {
      listed.push_back({node, 1 + static_cast<std::uint32_t>(below(options_.window, of_reach(listed.size())))});
    }
    for (std::size_t first = 0; first < listed.size(); first += kGroupPositions) {
      std::size_t const end = std::min(first + kGroupPositions, listed.size());
      std::size_t const around = std::min(end + options_.window, listed.size());
      std::size_t const before = std::min<std::size_t>(first, options_.window);
      maker_.add(std::span(listed).subspan(first - before, around - first + before), before, before + end - first,
                 RandomBits(options_.seed, kWalkNegatives, batch.epoch, sample, first), groups);
    }
  }
  return groups;
}

}  // namespace gpups::trainer
