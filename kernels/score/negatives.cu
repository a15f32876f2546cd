// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/negatives.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/base/assert.hpp"
#include "kernels/base/philox.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// A key that no other random numbers of this seed use.
inline constexpr std::uint64_t kNegativesKey = 0x6e65676174697665;  // "negative"

template <Space S>
void run(Exec<S> ex, DrawNegatives const& g) {
  std::size_t const draws = g.sides * g.negatives;
  std::size_t const calls = (draws + 3) / 4;
  each(ex, g.groups.size() * calls, [g, draws, calls] GPUPS_FN(std::size_t i) {
    std::size_t const group = i / calls, call = i % calls;
    auto const clock = static_cast<std::uint64_t>(number(g.clock));
    Philox4 const random = philox(philox_key(g.seed ^ kNegativesKey),
                                  {{static_cast<std::uint32_t>(call), g.groups[group],
                                    static_cast<std::uint32_t>(clock), static_cast<std::uint32_t>(clock >> 32)}});
    for (std::size_t k = 0; k < 4 && 4 * call + k < draws; ++k) {
      std::size_t const draw = 4 * call + k;
      std::size_t const entry = g.first + group * draws + draw;
      bool const local = draw % g.negatives < g.local;
      std::uint64_t const first = local ? g.part_offsets[g.groups[group]] : 0;
      std::uint64_t const count = local ? g.part_offsets[g.groups[group] + 1] - first : 0;
      g.keys[entry] = g.all       ? g.entities[draw % g.negatives]
                      : count > 0 ? g.by_part[first + (random.word[k] * count >> 32)]
                                  : g.entities[random.word[k] * std::uint64_t{g.entities.size()} >> 32];
      g.sources[entry] = static_cast<std::uint32_t>(g.first_source + group * draws + draw);
    }
  });
}

GPUPS_KERNEL(draw_negatives, DrawNegatives)

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

// Returns the smallest prime above n, at most 2 * n.
inline std::uint64_t prime_above(std::uint64_t n) {
  for (std::uint64_t prime = n + 1;; ++prime) {
    std::uint64_t divisor = 2;
    while (divisor * divisor <= prime && prime % divisor != 0) ++divisor;
    if (divisor * divisor > prime) return prime;
  }
}

// `size` consecutive entities of a shuffle, from `first`.
struct Hand {
  Key const* entities;
  Shuffle shuffle;
  std::uint64_t first, size;
};

// The local hands of a step.
struct LocalHands {
  std::uint64_t share;    // of all hands, in units of 2^-16
  std::uint64_t offset;   // below 2^16: which hands are local differs by step
  std::uint64_t factor;   // of the shuffles of all parts: a prime that is no divisor of the size of a part
  std::uint64_t shift;    // of them
  std::uint64_t triples;  // at most as many draw from one part

  // Returns how many of the first `hands` hands are local.
  GPUPS_FN std::uint64_t among(std::uint64_t hands) const { return (hands * share + offset) >> 16; }
};

inline LocalHands local_hands(DealNegatives const& g) {
  if (g.parts.empty()) return {};
  auto const step = static_cast<std::uint64_t>(number(g.clock));
  Philox4 const random = philox(philox_key(g.seed ^ kDealKey),
                                {{static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32), 1}});
  auto const share = static_cast<std::uint64_t>(std::lround(g.local * 0x1p16F));
  // Large enough that its remainders by the sizes of small parts are random.
  std::uint64_t const least = std::max(std::uint64_t{g.entities.size()}, std::uint64_t{1} << 20);
  // The first and the last hand of a part can have triples of other parts, too, and the share is of all parts.
  std::uint64_t const of_part = g.batch_triples * share / (g.part_offsets.size() - 1) >> 16;
  return {.share = share,
          .offset = random.word[3] & 0xFFFF,
          .factor = prime_above(least + (random.word[0] * least >> 32)),
          .shift = std::uint64_t{random.word[1]} << 32 | random.word[2],
          .triples = of_part + 2 * kHandTriples};
}

// Returns the hand of triple i if it draws from its part, and `hand`, of all entities, if not.
GPUPS_FN inline Hand local_hand(DealNegatives const& g, LocalHands const& local, std::size_t i, Hand const& hand) {
  std::uint64_t const index = g.numbers[i] / kHandTriples, before = local.among(index);
  if (local.among(index + 1) == before) return hand;
  std::uint64_t const begin = g.part_offsets[g.parts[i]], size = g.part_offsets[g.parts[i] + 1] - begin;
  if (size == 0) return hand;
  std::uint64_t const cards = hand_size(size, local.triples, 2 * std::uint64_t{g.negatives}, g.reuse);
  return {g.by_part.data() + begin, {local.factor % size, local.shift % size, size}, before * cards, cards};
}

template <Space S>
void run(Exec<S> ex, DealNegatives const& g) {
  GPUPS_ASSERT(g.reuse > 0 && g.reuse <= kHandTriples);
  GPUPS_ASSERT(g.negatives > 0 && !g.entities.empty() && g.entities.size() <= std::size_t{1} << 32);
  GPUPS_ASSERT(g.parts.empty() || (g.parts.size() == g.numbers.size() && g.part_offsets.size() > 1));
  std::uint64_t const draws = 2 * std::uint64_t{g.negatives};
  std::uint64_t const size = hand_size(g.entities.size(), g.batch_triples, draws, g.reuse);
  Shuffle const shuffle = shuffle_of(g.seed, g.clock, g.entities.size());
  LocalHands const local = local_hands(g);
  each(ex, g.numbers.size(), [g, shuffle, local, draws, size] GPUPS_FN(std::size_t i) {
    std::uint32_t const number = g.numbers[i];
    Hand hand{g.entities.data(), shuffle, number / kHandTriples * size, size};
    if (local.share > 0) hand = local_hand(g, local, i, hand);
    std::uint64_t within = number % kHandTriples * hand.size / kHandTriples, at = hand.shuffle(hand.first + within);
    Key* const keys = g.keys.data() + g.first + i * g.step;
    std::uint32_t* const sources = g.sources.empty() ? nullptr : g.sources.data() + g.first + i * g.step;
    for (std::size_t draw = 0; draw < draws; ++draw) {
      keys[draw] = hand.entities[at];
      if (sources != nullptr) {
        sources[draw] =
            static_cast<std::uint32_t>(kSourcesPerTriple * i + (draw < g.negatives ? kObjectQuery : kSubjectQuery));
      }
      if (++within == hand.size) {
        within = 0;
        at = hand.shuffle(hand.first);
      } else {
        at = hand.shuffle.after(at);
      }
    }
  });
}

GPUPS_KERNEL(deal_negatives, DealNegatives)

}  // namespace gpups::kernels
