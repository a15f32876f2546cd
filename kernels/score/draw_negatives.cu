// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/draw_negatives.hpp"

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

}  // namespace gpups::kernels
