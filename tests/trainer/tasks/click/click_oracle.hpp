// SPDX-License-Identifier: Apache-2.0
// A simple implementation of click-through models: rows in maps, one sample after the other, in double.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/dense/dropout.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/trainer/tasks/click/click_fixture.hpp"
#include "trainer/base/random.hpp"
#include "trainer/tasks/click/click_kind.hpp"
#include "trainer/tasks/click/features.hpp"

namespace gpups::test {

// A row's table and key.
using RowName = std::pair<std::string, std::uint64_t>;

// The inputs of random decisions in a step.
struct OracleStep {
  bool training = false;
  std::uint64_t seed = 1;
  Clock clock{};
  std::vector<std::uint32_t> sample_numbers{};
};

// A category, or a number's bucket.
struct OracleField {
  std::string space;  // the name that its keys are salted with
  std::size_t dim = 0;
  std::size_t column = 0;  // number of the category or of the number column
  bool bucket = false;
  std::size_t place = 0;  // the position of its row's first element in the block
};

class ClickOracle {
 public:
  std::string model;  // its name
  trainer::ClickSettings config;
  std::vector<OracleField> fields;
  std::size_t head = 0, width = 0;  // the position of the first row in the block; the size of the block
  std::map<RowName, std::vector<double>> rows;
  std::map<std::string, Dense> parameters;

  double logit(OracleSample const& sample, std::size_t i, OracleStep const& step) {
    numbers_ = numbers_of(sample);
    collect(sample, i, step);
    bool const always_wide = model == "logistic" || model == "fm" || model == "deepfm";
    double logit = 0;
    if (always_wide || config.wide) logit += wide(sample);
    if (model == "fm" || model == "deepfm") logit += pairs();
    if (model == "deepfm" || model == "dcnv2") logit += layers("top", config.top, block(), i, step).at(0);
    if (model == "dcnv2") logit += crosses();
    if (model == "dlrm") logit += interaction(i, step);
    return logit;
  }

  static double loss(double logit, double label) {
    return -label * std::log(1 / (1 + std::exp(-logit))) - (1 - label) * std::log(1 / (1 + std::exp(logit)));
  }
  double loss(std::vector<OracleSample> const& samples, OracleStep const& step) {
    double sum = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) sum += loss(logit(samples[i], i, step), samples[i].label);
    return sum;
  }

  // Returns the keys of a field's values with their coefficients. A number below 1 is in the bucket of its floor, any
  // other number in that of its power of two.
  std::vector<std::pair<std::uint64_t, double>> entries(OracleField const& field, OracleSample const& sample) const {
    std::vector<std::pair<std::uint64_t, double>> named;
    if (field.bucket) {
      double x = sample.numbers[field.column];
      std::uint64_t id = 0;
      if (x >= 1) {
        for (id = 1; x >= 2; ++id) x /= 2;
      } else if (!std::isnan(x)) {
        id = (std::uint64_t{1} << 32) + static_cast<std::uint32_t>(static_cast<std::int64_t>(std::floor(x)));
      }
      named.emplace_back(id, 1);
    } else {
      auto const& values = sample.values[field.column];
      for (auto const& [id, weight] : values) {
        named.emplace_back(id, config.pooling == "mean" ? weight / static_cast<double>(values.size()) : weight);
      }
    }
    for (auto& [id, count] : named) id = number(trainer::click_key(field.space, id));
    return named;
  }

 private:
  bool has_floats() const { return config.numeric_features == "log" || config.numeric_features == "both"; }

  std::vector<double> numbers_of(OracleSample const& sample) const {
    std::vector<double> numbers;
    for (double x : sample.numbers) {
      if (has_floats()) numbers.push_back(std::isnan(x) ? 0 : (x < 0 ? -1 : 1) * std::log(1 + std::abs(x)));
    }
    return numbers;
  }

  // Pools the rows of every field.
  void collect(OracleSample const& sample, std::size_t i, OracleStep const& step) {
    pooled_.clear();
    if (model == "logistic") return;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      OracleField const& field = fields[f];
      double kept = 1;
      if (step.training && config.row_dropout > 0) {
        auto const bits = trainer::random_bits(step.seed, number(step.clock), step.sample_numbers[i], f);
        kept = static_cast<double>(bits >> 11) / 9007199254740992.0 < config.row_dropout ? 0
                                                                                         : 1 / (1 - config.row_dropout);
      }
      std::vector<double> sum(field.dim);
      for (auto const& [key, count] : entries(field, sample)) {
        auto const& row = rows.at({"rows_" + std::to_string(field.dim), key});
        for (std::size_t k = 0; k < field.dim; ++k) sum[k] += kept * count * row[k];
      }
      pooled_.push_back(sum);
    }
  }

  double wide(OracleSample const& sample) const {
    double sum = parameters.at("numbers.bias").at(0, 0);
    for (std::size_t j = 0; j < numbers_.size(); ++j) sum += parameters.at("numbers.weights").at(0, j) * numbers_[j];
    for (OracleField const& field : fields) {
      for (auto const& [key, count] : entries(field, sample)) sum += count * rows.at({"weights", key})[0];
    }
    return sum;
  }

  static double dot(std::vector<double> const& a, std::vector<double> const& b) {
    double sum = 0;
    for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
    return sum;
  }

  double pairs() const {
    double sum = 0;
    for (std::size_t f = 0; f < pooled_.size(); ++f) {
      for (std::size_t g = f + 1; g < pooled_.size(); ++g) sum += dot(pooled_[f], pooled_[g]);
    }
    return sum;
  }

  std::vector<double> block() const {
    std::vector<double> block(width);
    for (std::size_t j = 0; j < numbers_.size(); ++j) block[j] = numbers_[j];
    for (std::size_t f = 0; f < fields.size(); ++f) {
      for (std::size_t k = 0; k < fields[f].dim; ++k) block[fields[f].place + k] = pooled_[f][k];
    }
    return block;
  }

  std::vector<double> linear(std::string const& name, std::vector<double> const& in) const {
    Dense const &weights = parameters.at(name + ".weights"), &bias = parameters.at(name + ".bias");
    std::vector<double> out(weights.rows);
    for (std::size_t j = 0; j < out.size(); ++j) {
      out[j] = bias.at(0, j);
      for (std::size_t k = 0; k < in.size(); ++k) out[j] += weights.at(j, k) * in[k];
    }
    return out;
  }

  // Computes hidden layers and the output layer. Only hidden layers of the top network have dropout.
  std::vector<double> layers(std::string const& name, std::vector<std::int64_t> const& hidden, std::vector<double> x,
                             std::size_t i, OracleStep const& step) const {
    for (std::size_t l = 0; l < hidden.size(); ++l) {
      x = linear(name + "." + std::to_string(l), x);
      std::vector<double> const kept = name == "top" ? kept_units(l, x.size(), i, step) : std::vector(x.size(), 1.0);
      for (std::size_t j = 0; j < x.size(); ++j) x[j] = std::max(0.0, x[j]) * kept[j];
    }
    return linear(name + "." + std::to_string(hidden.size()), x);
  }

  std::vector<double> kept_units(std::size_t layer, std::size_t units, std::size_t i, OracleStep const& step) const {
    if (!step.training || config.dropout == 0) return std::vector(units, 1.0);
    Matrix<float> ones(Device::host(), 1, units);
    for (float& x : ones.view().flat()) x = 1;
    Stream stream(Device::host(), 1);
    std::vector<std::uint32_t> const numbers{step.sample_numbers[i]};
    kernels::dropout(stream, {ones, static_cast<float>(config.dropout), step.seed, static_cast<std::uint32_t>(layer),
                              step.clock, numbers});
    std::vector<double> kept;
    for (float x : ones.row(0)) kept.push_back(x);
    return kept;
  }

  double crosses() const {
    std::vector<double> const x0 = block();
    std::vector<double> x = x0;
    for (std::int64_t l = 0; l < config.cross_layers; ++l) {
      auto const u = linear("cross." + std::to_string(l), x);
      for (std::size_t k = 0; k < x.size(); ++k) x[k] += x0[k] * u[k];
    }
    return linear("cross.last", x).at(0);
  }

  double interaction(std::size_t i, OracleStep const& step) const {
    std::vector<std::vector<double>> vectors = pooled_;
    vectors.insert(vectors.begin(), layers("bottom", config.bottom, numbers_, i, step));
    for (double& x : vectors[0]) x = std::max(0.0, x);
    std::vector<double> in = vectors[0];
    in.resize(row_stride(in.size()));
    for (std::size_t f = 0; f < vectors.size(); ++f) {
      for (std::size_t g = 0; g < f; ++g) in.push_back(dot(vectors[f], vectors[g]));
    }
    return layers("top", config.top, in, i, step).at(0);
  }

  std::vector<double> numbers_;
  std::vector<std::vector<double>> pooled_;
};

}  // namespace gpups::test
