// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/ratings/rating_scale.hpp"

#include <algorithm>
#include <cstring>

namespace gpups::trainer {
namespace {

constexpr char kScaleBlob[] = "gpu_train/rating_scale";

}  // namespace

RatingScale scale_of(std::span<Rating const> ratings) {
  double sum = 0;
  RatingScale scale{.mean = 0, .lowest = ratings[0].value, .highest = ratings[0].value};
  for (Rating const& rating : ratings) {
    sum += rating.value;
    scale.lowest = std::min(scale.lowest, rating.value);
    scale.highest = std::max(scale.highest, rating.value);
  }
  scale.mean = static_cast<float>(sum / static_cast<double>(ratings.size()));
  return scale;
}

Blob to_blob(RatingScale const& scale) {
  return {kScaleBlob, std::string(reinterpret_cast<char const*>(&scale), sizeof scale)};
}

RatingScale rating_scale(std::span<Blob const> blobs) {
  for (Blob const& blob : blobs) {
    RatingScale scale;
    if (blob.name != kScaleBlob || blob.bytes.size() != sizeof scale) continue;
    std::memcpy(&scale, blob.bytes.data(), sizeof scale);
    return scale;
  }
  throw Error(
      "the checkpoint has no range of ratings (it was not saved by a run on ratings, so it cannot predict any): "
      "give the folder of a run on ratings");
}

}  // namespace gpups::trainer
