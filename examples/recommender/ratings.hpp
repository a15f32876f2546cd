// SPDX-License-Identifier: Apache-2.0
// Ratings whose truth is known: products of planted factors, plus noise.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

struct Rating {
  std::uint64_t user, item;
  float value;
};

inline constexpr std::size_t kUsers = 1000, kItems = 400, kPlantedFactors = 8;
inline constexpr float kNoise = 0.1F;  // standard deviation: no model can have a smaller error on new ratings

// Ratings have a standard deviation of 1 before the noise. Users and items are drawn independently; ids are any 64-bit
// numbers in gpups, so these are spread out.
inline std::vector<Rating> planted_ratings(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> factor(0, 1 / std::sqrt(std::sqrt(static_cast<float>(kPlantedFactors))));
  std::normal_distribution<float> noise(0, kNoise);
  std::vector<float> users(kUsers * kPlantedFactors), items(kItems * kPlantedFactors);
  for (float& x : users) x = factor(random);
  for (float& x : items) x = factor(random);

  std::vector<Rating> ratings(count);
  for (Rating& rating : ratings) {
    std::size_t const user = random() % kUsers, item = random() % kItems;
    float value = noise(random);
    for (std::size_t j = 0; j < kPlantedFactors; ++j) {
      value += users[user * kPlantedFactors + j] * items[item * kPlantedFactors + j];
    }
    rating = {1'000'000'007 * (user + 1), 998'244'353 * (item + 1), value};
  }
  return ratings;
}
