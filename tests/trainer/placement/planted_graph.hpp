// SPDX-License-Identifier: Apache-2.0
// A bigraph with planted communities: most samples read rows of one community only.
#pragma once

#include "trainer/base/random.hpp"
#include "trainer/placement/placement.hpp"

namespace gpups::test {

struct PlantedGraph {
  std::uint32_t communities = 4, rows_each = 100;
  std::uint32_t samples = 4000;
  std::uint32_t mixed = 10;  // percentage of samples that read two rows of any communities
  std::uint64_t seed = 1;

  std::uint32_t rows() const { return communities * rows_each; }
  // Returns the row with this number in a community. Rows of a community are not neighbours.
  std::uint32_t row(std::uint64_t community, std::uint64_t number) const {
    return static_cast<std::uint32_t>(number * communities + community);
  }
  std::uint32_t community(std::uint32_t row) const { return row % communities; }

  trainer::Bigraph make() const {
    trainer::Bigraph graph{.rows = rows()};
    for (std::uint64_t i = 0; i < samples; ++i) {
      auto const draw = [&](std::uint64_t end, std::uint64_t which) {
        return trainer::below(end, trainer::random_bits(seed, i, which));
      };
      bool const any = draw(100, 0) < mixed;
      std::uint64_t const first = draw(communities, 1), second = any ? draw(communities, 2) : first;
      std::uint32_t const read[] = {row(first, draw(rows_each, 3)), row(second, draw(rows_each, 4))};
      graph.add(read);
    }
    return graph;
  }
  // Returns the same with row r having key r of table 0.
  trainer::SampleRows with_keys() const {
    trainer::SampleRows all{.graph = make(), .tables = {{TableId{0}, {}}}};
    for (std::uint32_t r = 0; r < rows(); ++r) all.tables[0].keys.push_back(Key{r});
    return all;
  }
};

}  // namespace gpups::test
