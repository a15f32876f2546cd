// SPDX-License-Identifier: Apache-2.0
// Compares finding the distinct keys, and the position of each entry's key among them, with sorting.
#include "bench/against/unique_keys.hpp"

#include <algorithm>
#include <cmath>

#include "bench/against/races.hpp"
#include "kernels/index/unique_keys.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::bench {

std::shared_ptr<KeyDraws> draw_keys() {
  constexpr std::size_t kDraws = 1'000'000, kKeys = 10'000'000;
  std::vector<double> up_to(kKeys);
  double sum = 0;
  for (std::size_t k = 0; k < kKeys; ++k) up_to[k] = sum += std::pow(static_cast<double>(k + 1), -1.05);
  test::Random random(1);
  auto draws = std::make_shared<KeyDraws>();
  for (std::size_t i = 0; i < kDraws; ++i) {
    auto const drawn = std::upper_bound(up_to.begin(), up_to.end() - 1, sum * test::uniform(random));
    draws->keys.push_back(test::scrambled(static_cast<std::uint64_t>(drawn - up_to.begin())));
  }
  draws->unique = Array<Key>(Device::host(), kDraws);
  draws->positions = Array<std::uint32_t>(Device::host(), kDraws);
  return draws;
}

Side unique_keys_side(Stream& stream, std::shared_ptr<KeyDraws> draws) {
  return {
      "unique_keys", static_cast<double>(draws->keys.size()), [draws, &stream] {
        std::vector<std::uint32_t> home_offsets(2);
        kernels::KeyPart const part{draws->keys, draws->unique, draws->positions, View<std::uint32_t>(home_offsets)};
        kernels::wait_unique_keys(stream, {{&part, 1}, 1});
      }};
}

Race unique_keys_sort_race(Stream& stream) {
  auto const draws = draw_keys();
  Side const theirs{"sort, unique, lower_bound", static_cast<double>(draws->keys.size()), [draws] {
                      std::vector<Key> unique(draws->keys);
                      std::sort(unique.begin(), unique.end());
                      unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
                      for (std::size_t i = 0; i < draws->keys.size(); ++i) {
                        auto const found = std::lower_bound(unique.begin(), unique.end(), draws->keys[i]);
                        draws->positions[i] = static_cast<std::uint32_t>(found - unique.begin());
                      }
                    }};
  return {"keys", unique_keys_side(stream, draws), theirs};
}

}  // namespace gpups::bench
