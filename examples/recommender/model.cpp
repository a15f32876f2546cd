// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

using namespace gpups;

namespace {

constexpr float kLearningRate = 0.03F;
constexpr double kGrid = 0x1p-30;     // sums of gradients are multiples of it, as in tables
constexpr double kGradientMax = 1e6;  // of a microbatch: sums of thousands are far below 2^63 kGrid

float dot(float const* a, float const* b, std::size_t size) { return std::inner_product(a, a + size, b, 0.0F); }

}  // namespace

Model::Model() : values_(size()), squares_(size()) {
  std::mt19937_64 random(1);  // the same on every rank
  float const scale = 1 / std::sqrt(static_cast<float>(kInputs));
  for (std::size_t i = 0; i < kOutput + kUnits; ++i) {
    if (i >= kHiddenBias && i < kOutput) continue;  // biases begin with 0
    values_[i] = scale * (2 * static_cast<float>(random() >> 40) * 0x1p-24F - 1);
  }
}

float Model::forward(SampleRows<float const> const& rows, Inputs& inputs, Units& units) const {
  float* end = std::copy_n(rows.liked, kDim, inputs.data());
  end = std::copy_n(rows.item, kDim, end);
  std::copy_n(rows.context, kContextDim, end);
  for (std::size_t u = 0; u < kUnits; ++u) {
    float const sum = dot(inputs.data(), &values_[kHidden + u * kInputs], kInputs) + values_[kHiddenBias + u];
    units[u] = std::max(0.0F, sum);
  }
  return *rows.habit + dot(rows.liked, rows.item, kDim) + dot(units.data(), &values_[kOutput], kUnits) +
         values_[kOutputBias];
}

float Model::score(SampleRows<float const> const& rows) const {
  Inputs inputs;
  Units units;
  return forward(rows, inputs, units);
}

float Model::learn(SampleRows<float const> const& rows, bool clicked, SampleRows<float> const& gradients,
                   std::span<float> dense_gradients) const {
  Inputs inputs, input_gradients{};
  Units units;
  float const logit = forward(rows, inputs, units);
  float const error = 1 / (1 + std::exp(-logit)) - (clicked ? 1.0F : 0.0F);  // d loss / d logit

  dense_gradients[kOutputBias] += error;
  for (std::size_t u = 0; u < kUnits; ++u) {
    dense_gradients[kOutput + u] += error * units[u];
    if (units[u] <= 0) continue;
    float const unit_gradient = error * values_[kOutput + u];
    dense_gradients[kHiddenBias + u] += unit_gradient;
    for (std::size_t i = 0; i < kInputs; ++i) {
      dense_gradients[kHidden + u * kInputs + i] += unit_gradient * inputs[i];
      input_gradients[i] += unit_gradient * values_[kHidden + u * kInputs + i];
    }
  }
  *gradients.habit = error;
  for (std::size_t i = 0; i < kDim; ++i) {
    gradients.liked[i] = input_gradients[i] + error * rows.item[i];
    gradients.item[i] = input_gradients[kDim + i] + error * rows.liked[i];
  }
  std::copy_n(&input_gradients[2 * kDim], kContextDim, gradients.context);
  return logit;
}

void Model::add_to_sums(std::span<float const> dense_gradients, View<std::int64_t> sums) {
  for (std::size_t i = 0; i < dense_gradients.size(); ++i) {
    double const gradient = dense_gradients[i];
    if (!(std::abs(gradient) < kGradientMax))
      throw Error(
          "a dense gradient is not finite or too large (the sums would be wrong): train with lower learning rates");
    sums[i] += std::llround(gradient / kGrid);
  }
}

void Model::update(View<std::int64_t const> sums, std::size_t samples) {
  for (std::size_t i = 0; i < size(); ++i) {
    auto const gradient = static_cast<float>(static_cast<double>(sums[i]) * kGrid / static_cast<double>(samples));
    squares_[i] += gradient * gradient;
    values_[i] -= kLearningRate * gradient / (std::sqrt(squares_[i]) + 1e-8F);
  }
}

std::uint64_t Model::hash() const {
  std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
  for (char const byte : save().bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3U;
  return hash;
}

Blob Model::save() const {
  std::string bytes(2 * size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values_.data(), bytes.size() / 2);
  std::memcpy(bytes.data() + bytes.size() / 2, squares_.data(), bytes.size() / 2);
  return {"dense", std::move(bytes)};
}

void Model::restore(std::span<Blob const> blobs) {
  auto const blob = std::find_if(blobs.begin(), blobs.end(), [](Blob const& b) { return b.name == "dense"; });
  if (blob == blobs.end() || blob->bytes.size() != 2 * size() * sizeof(float)) {
    throw Error("the checkpoint has no dense layer of this model's size (it is of another model): give another folder");
  }
  std::memcpy(values_.data(), blob->bytes.data(), blob->bytes.size() / 2);
  std::memcpy(squares_.data(), blob->bytes.data() + blob->bytes.size() / 2, blob->bytes.size() / 2);
}
