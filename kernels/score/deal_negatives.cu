// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/deal_negatives.hpp"

#include <numeric>

#include "kernels/assert.hpp"
#include "kernels/launch.hpp"
#include "kernels/philox.hpp"

namespace gpups::kernels {

// A key that no other random numbers of this seed use.
inline constexpr std::uint64_t kDealKey = 0x6465616c;  // "deal"

// The shuffle of a step: a one-to-one map of position x to entity (factor * x + shift) mod size.
struct Shuffle {
  std::uint64_t factor, shift, size;

  GPUPS_FN std::uint64_t operator()(std::uint64_t place) const { return (factor * (place % size) + shift) % size; }
  // Returns the entity of the next position.
  GPUPS_FN std::uint64_t after(std::uint64_t entity) const {
    std::uint64_t const next = entity + factor;
    return next < size ? next : next - size;
  }
};

inline Shuffle shuffle_of(std::uint64_t seed, Clock clock, std::uint64_t size) {
  auto const step = static_cast<std::uint64_t>(number(clock));
  Philox4 const random =
      philox(philox_key(seed ^ kDealKey), {{static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32)}});
  std::uint64_t factor = 1 + (random.word[0] * (size - 1) >> 32);
  while (std::gcd(factor, size) != 1) factor = factor + 1 < size ? factor + 1 : 1;
  return {factor, random.word[1] * size >> 32, size};
}

template <Space S>
void run(Exec<S> ex, DealNegatives const& g) {
  GPUPS_ASSERT(g.reuse > 0 && g.reuse <= kHandTriples);
  GPUPS_ASSERT(g.negatives > 0 && !g.entities.empty() && g.entities.size() <= std::size_t{1} << 32);
  std::uint64_t const draws = 2 * std::uint64_t{g.negatives};
  std::uint64_t const hand = hand_size(g.entities.size(), g.batch_triples, draws, g.reuse);
  Shuffle const shuffle = shuffle_of(g.seed, g.clock, g.entities.size());
  each(ex, g.numbers.size(), [g, shuffle, draws, hand] GPUPS_FN(std::size_t i) {
    std::uint32_t const number = g.numbers[i];
    std::uint64_t const first = number / kHandTriples * hand;
    std::uint64_t within = number % kHandTriples * hand / kHandTriples, at = shuffle(first + within);
    Key* const keys = g.keys.data() + g.first + i * g.step;
    std::uint32_t* const sources = g.sources.empty() ? nullptr : g.sources.data() + g.first + i * g.step;
    for (std::size_t draw = 0; draw < draws; ++draw) {
      keys[draw] = g.entities[at];
      if (sources != nullptr) {
        sources[draw] =
            static_cast<std::uint32_t>(kSourcesPerTriple * i + (draw < g.negatives ? kObjectQuery : kSubjectQuery));
      }
      if (++within == hand) {
        within = 0;
        at = shuffle(first);
      } else {
        at = shuffle.after(at);
      }
    }
  });
}

GPUPS_KERNEL(deal_negatives, DealNegatives)

}  // namespace gpups::kernels
