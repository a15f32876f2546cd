// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/words/held_out_text.hpp"

#include <algorithm>

#include "trainer/tasks/words/skip_gram_groups.hpp"

namespace gpups::trainer {
namespace {

constexpr std::uint64_t kDistances = 5;  // of the words of a pair

// Adds the pairs of the positions first .. end - 1.
void add_pairs(std::vector<std::uint32_t> const& positions, std::size_t first, std::size_t end,
               RandomBits const& of_distances, std::vector<HeldOutPair>& pairs) {
  for (std::size_t i = first; i < end; ++i) {
    std::size_t line_end = i;
    while (line_end < end && positions[line_end] != Corpus::kLineEnd) ++line_end;
    std::uint64_t const words = std::min<std::uint64_t>(kDistances, line_end - std::min(line_end, i + 1));
    if (words == 0) continue;
    std::size_t const other = i + 1 + below(static_cast<std::uint32_t>(words), of_distances(i));
    if (positions[i] != positions[other]) pairs.push_back({positions[i], positions[other]});
  }
}

}  // namespace

std::vector<HeldOutPair> hold_out_blocks(Corpus& corpus, double share, RandomBits const& seed) {
  std::vector<HeldOutPair> pairs;
  if (share <= 0) return pairs;
  RandomBits const of_blocks(seed(0)), of_distances(seed(1));
  std::vector<std::uint32_t>& positions = corpus.positions;
  std::size_t kept = 0;
  for (std::size_t first = 0; first < positions.size(); first += kGroupPositions) {
    std::size_t const last = std::min<std::size_t>(first + kGroupPositions, positions.size());
    double const draw = static_cast<double>(of_blocks(first / kGroupPositions) >> 11) * 0x1p-53;
    if (draw >= share) {
      std::copy(positions.begin() + static_cast<std::ptrdiff_t>(first),
                positions.begin() + static_cast<std::ptrdiff_t>(last),
                positions.begin() + static_cast<std::ptrdiff_t>(kept));
      kept += last - first;
      continue;
    }
    add_pairs(positions, first, last, of_distances, pairs);
    if (kept > 0 && positions[kept - 1] != Corpus::kLineEnd) positions[kept++] = Corpus::kLineEnd;
  }
  positions.resize(kept);
  return pairs;
}

}  // namespace gpups::trainer
