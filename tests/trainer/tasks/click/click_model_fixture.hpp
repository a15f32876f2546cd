// SPDX-License-Identifier: Apache-2.0
// A step of a click-through model without a store: synthetic samples, random rows and parameters, and an oracle with
// the same values.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/trainer/tasks/click/click_oracle.hpp"
#include "trainer/tasks/click/click_data.hpp"
#include "trainer/tasks/click/model/click_computation.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::test {

inline trainer::SampleBatch to_batch(trainer::Layout const& layout, std::vector<OracleSample> const& samples) {
  trainer::SampleBatch batch;
  bool many = false, weighted = false;
  for (auto const& field : layout.categories) {
    many = many || field.kind != trainer::CategoryField::Kind::kOne;
    weighted = weighted || field.kind == trainer::CategoryField::Kind::kWeighted;
  }
  batch.samples = samples.size();
  if (many) batch.offsets.push_back(0);
  for (OracleSample const& sample : samples) {
    batch.labels.push_back(sample.label);
    batch.numbers.insert(batch.numbers.end(), sample.numbers.begin(), sample.numbers.end());
    for (auto const& values : sample.values) {
      for (auto const& [id, weight] : values) {
        batch.values.push_back(id);
        if (weighted) batch.weights.push_back(weight);
      }
      if (many) batch.offsets.push_back(static_cast<std::uint32_t>(batch.values.size()));
    }
  }
  return batch;
}

// The samples have few different values, so they share rows.
inline std::vector<OracleSample> random_samples(trainer::Layout const& layout, std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  auto const pick = [&random](std::vector<float> const& from) { return from[random() % from.size()]; };
  std::vector<OracleSample> samples(count);
  for (OracleSample& sample : samples) {
    sample.label = pick({0, 1, 0, 1, 0.25F});
    for (std::size_t f = 0; f < layout.numbers.size(); ++f) {
      sample.numbers.push_back(pick({NAN, 0, -2, 17, 5000, -0.5F, 3, 1}));
    }
    for (auto const& field : layout.categories) {
      auto& values = sample.values.emplace_back();
      std::size_t const most = field.kind == trainer::CategoryField::Kind::kOne ? 1 : 3;
      for (std::size_t v = 1 + random() % most; v > 0; --v) {
        bool const weighted = field.kind == trainer::CategoryField::Kind::kWeighted;
        values.emplace_back(random() % 4, weighted ? pick({1, 0.5F, -1.5F}) : 1.0F);
      }
    }
  }
  return samples;
}

struct ClickCase {
  std::string name;
  std::vector<std::string> settings;  // beside the reader
};

class ClickStepFixture {
 public:
  static constexpr std::uint64_t kSeed = 7;

  ClickStepFixture(ClickCase const& c, std::size_t samples, int threads = 1)
      : config_(config_of(c)),
        layout_(trainer::layout_of(config_)),
        stream_(Device::host(), threads),
        model_(layout_, config_),
        samples_(random_samples(layout_, samples, 5)),
        batch_(to_batch(layout_, samples_)),
        clock_(Clock{11}) {
    for (std::size_t i = 0; i < samples; ++i) numbers_.push_back(static_cast<std::uint32_t>(100 + i));
    // Microbatches of different sizes.
    for (std::uint32_t first = 0, m = 0; first < samples; ++m) {
      std::uint32_t const count = std::min<std::uint32_t>(m + 2, static_cast<std::uint32_t>(samples) - first);
      cuts_.push_back({m, first, count});
      first += count;
    }
    dense_ = std::make_unique<trainer::DenseLayers>(Group::alone(), Device::host(), model_.parameters(), cuts_.size(),
                                                    trainer::DenseOptions{.seed = kSeed});
    make_oracle();
    set_parameters();
  }

  static trainer::Config config_of(ClickCase const& c) {
    std::vector<trainer::SettingOverride> settings{"data.reader=clicks", "data.train=x", "model.name=" + c.name,
                                                   fmt::format("train.seed={}", kSeed)};
    settings.insert(settings.end(), c.settings.begin(), c.settings.end());
    return trainer::parse_config("", "test", "/", settings);
  }

  // The distinct keys of a step with rows that have the same values in the oracle. The padding of matrices is zero.
  struct Rows {
    std::vector<std::vector<Key>> keys;  // distinct, of each part
    std::vector<Matrix<float>> rows;
    std::vector<std::vector<std::uint32_t>> positions;
  };
  Rows rows_of(trainer::ClickInput const& input) {
    Rows all;
    for (std::size_t p = 0; p < input.parts.size(); ++p) {
      auto const& table = model_.features().tables()[p];
      std::map<std::uint64_t, std::uint32_t> known;
      auto& keys = all.keys.emplace_back();
      auto& positions = all.positions.emplace_back();
      for (Key key : input.parts[p].keys.view()) {
        auto const [at, is_new] = known.try_emplace(number(key), static_cast<std::uint32_t>(keys.size()));
        if (is_new) keys.push_back(key);
        positions.push_back(at->second);
      }
      Matrix<float>& rows = all.rows.emplace_back(Device::host(), keys.size(), table.dim);
      for (float& x : rows.view().flat()) x = 0;
      for (std::size_t i = 0; i < keys.size(); ++i) {
        auto& row = oracle_.rows[{table.name, number(keys[i])}];
        while (row.size() < table.dim) row.push_back(static_cast<double>(normal_(random_)));
        for (std::size_t k = 0; k < table.dim; ++k) rows.row(i)[k] = static_cast<float>(row[k]);
      }
    }
    return all;
  }

  trainer::RowDropout row_dropout() const {
    return {config_.settings<trainer::ClickSettings>().row_dropout, kSeed, clock_, numbers_};
  }
  OracleStep step() const { return {true, kSeed, clock_, numbers_}; }

  // Runs a training step; the results are in computation_ and dense_.
  void run_step() {
    input_ = model_.features().make(stream_, batch_, row_dropout());
    pool();
    computation_.forward_backward(stream_, input_, {clock_, numbers_, cuts_}, *dense_);
  }
  void run_prediction() {
    input_ = model_.features().make(stream_, batch_);
    pool();
    computation_.predict(stream_, input_, dense_->values());
  }

  // Returns the gradient of each row: the sum of coefficient * source over its entries.
  std::map<RowName, std::vector<double>> row_gradients() const {
    std::map<RowName, std::vector<double>> sums;
    auto const gradients = computation_.gradients(input_);
    for (std::size_t p = 0; p < gradients.size(); ++p) {
      auto const& table = model_.features().tables()[p];
      for (std::size_t e = 0; e < input_.parts[p].keys.size(); ++e) {
        auto& sum = sums[{table.name, number(input_.parts[p].keys[e])}];
        sum.resize(table.dim);
        double const factor = gradients[p].coefficients.empty() ? 1.0 : gradients[p].coefficients[e];
        for (std::size_t k = 0; k < table.dim; ++k) {
          sum[k] += factor * gradients[p].sources.row(gradients[p].source_indices[e])[k];
        }
      }
    }
    return sums;
  }

  // Returns the sum of a parameter's gradient over all microbatches.
  Dense dense_gradient(trainer::Parameter const& parameter) const {
    Dense sum(parameter.rows, parameter.columns);
    for (std::size_t m = 0; m < cuts_.size(); ++m) {
      Dense const part(MatrixView<float const>(parameter.matrix(dense_->gradient(m))));
      for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += part.values[i];
    }
    return sum;
  }

  trainer::Config config_;
  trainer::Layout layout_;
  Stream stream_;
  trainer::ClickModel model_;
  std::vector<OracleSample> samples_;
  trainer::SampleBatch batch_;
  Clock clock_;
  std::vector<std::uint32_t> numbers_;
  std::vector<trainer::Microbatch> cuts_;
  std::unique_ptr<trainer::DenseLayers> dense_;
  ClickOracle oracle_;
  trainer::ClickInput input_;
  trainer::ClickComputation computation_{model_};

 private:
  void pool() {
    rows_ = rows_of(input_);
    std::vector<MatrixView<float const>> const views(rows_.rows.begin(), rows_.rows.end());
    std::vector<View<std::uint32_t const>> const positions(rows_.positions.begin(), rows_.positions.end());
    computation_.pool(stream_, input_, views, positions);
  }

  // The oracle has fields in the order of the configuration, at the positions in the block that the entries have.
  void make_oracle() {
    auto const& m = config_.settings<trainer::ClickSettings>();
    auto const model_dim = static_cast<std::size_t>(config_.model.dim);
    oracle_.model = config_.model.name;
    oracle_.config = m;
    oracle_.width = model_.features().width();
    for (std::size_t c = 0; c < layout_.categories.size(); ++c) {
      std::string space = layout_.categories[c].name;
      std::size_t dim = model_dim;
      for (std::string const& set : m.shared) {
        auto const names = split(set, ',');
        if (std::find(names.begin(), names.end(), space) != names.end()) space = names[0];
      }
      for (std::string const& setting : m.dims) {
        if (split(setting, ':')[0] == layout_.categories[c].name) dim = std::stoul(split(setting, ':')[1]);
      }
      oracle_.fields.push_back({space, dim, c, false, 0});
    }
    for (std::size_t i = 0; i < layout_.numbers.size(); ++i) {
      if (m.numeric_features != "buckets" && m.numeric_features != "both") continue;
      oracle_.fields.push_back({layout_.numbers[i], model_dim, i, true, 0});
    }
    trainer::ClickInput const input = model_.features().make(stream_, batch_);
    for (std::size_t p = 0; p < input.parts.size(); ++p) {
      if (input.parts[p].weights) continue;
      std::size_t const dim = model_.features().tables()[p].dim;
      std::size_t bag = 0;
      for (OracleField& field : oracle_.fields) {
        if (field.dim == dim) field.place = input.parts[p].targets[bag++] * row_stride(dim);
      }
    }
  }

  // Makes all parameters random, biases included, so that a term missing in a sum is detected.
  void set_parameters() {
    std::vector<Blob> blobs;
    for (trainer::Parameter const& p : model_.parameters().all()) {
      Dense& values = oracle_.parameters[p.name] = Dense(p.rows, p.columns);
      std::vector<float> numbers;
      float const scale = p.scale > 0 ? p.scale : 0.5F;
      for (double& x : values.values) {
        numbers.push_back(scale * normal_(random_));
        x = numbers.back();
      }
      for (char const* part : {"values", "first", "second"}) {
        blobs.push_back({"dense/" + p.name + "/" + part,
                         std::string(reinterpret_cast<char const*>(numbers.data()), numbers.size() * sizeof(float))});
      }
    }
    dense_->wait_restore(stream_, blobs);
  }

  std::mt19937 random_{3};
  std::normal_distribution<float> normal_{0.0F, 0.5F};
  Rows rows_;
};

}  // namespace gpups::test
