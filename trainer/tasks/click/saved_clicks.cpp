// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/saved_clicks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trainer/base/atomic_folder.hpp"
#include "trainer/input/saved_columns.hpp"
#include "trainer/tasks/click/click_data.hpp"
#include "trainer/tasks/click/click_kind.hpp"
#include "trainer/tasks/click/click_tables.hpp"
#include "trainer/tasks/click/model/click_models.hpp"
#include "trainer/tasks/click/unknown_values.hpp"

namespace gpups::trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kAtOnce = 4096;  // samples

}  // namespace

SavedClicks::SavedClicks(SavedModel const& model) : saved_(model.saved) {
  Config const& config = saved_.config;
  Layout const layout = layout_of(config);
  statistics_ = sample_statistics(model.blobs, layout.numbers.size());
  columns_ = saved_columns(model.blobs);
  auto const seed = static_cast<std::uint64_t>(config.train.seed);
  Group const group = Group::alone();
  Device const device = device_from(config.run.device);
  model_ = std::make_unique<ClickModel>(layout, config, statistics_);
  if (config.settings<ClickSettings>().min_count > 0) {
    frequent_ = frequent_values(model.blobs);
    model_->features().merge_rare_values(frequent_);
  }
  dense_ = std::make_unique<DenseLayers>(make_click_layers(
      *model_, config,
      {.group = group, .device = device, .microbatches = 1, .schedule_steps = saved_.state.schedule_steps}));
  store_ = std::make_unique<Store>(
      group, StoreOptions{.device = device, .threads = static_cast<int>(config.run.threads), .seed = seed});
  for (TableOptions const& table : click_tables(*model_, config, saved_.state.schedule_steps)) {
    store_->add_table(table);
  }
  Stream stream = store_->make_stream();
  dense_->wait_restore(stream, store_->restore(model.checkpoint));
}

void SavedClicks::predict(fs::path const& file, std::vector<std::string>& notices,
                          std::function<void(std::span<float const>)> const& take) {
  Config config = saved_.config;
  config.data.bad_share_max = 0;  // each sample needs a probability, so no bad line is left out
  SameColumns trained = columns_;
  Samples const samples = open_click_files(std::span(&file, 1), config, notices, &trained);
  if (columns_.empty() && trained.has_names()) say_no_names("the training data", file.string(), notices);
  ClickPredictor predictor(*model_, *dense_);
  Stream stream = store_->make_stream();
  SampleBatch batch;
  for (std::uint64_t first = 0; first < samples.size(); first += kAtOnce) {
    samples.read(first, std::min(kAtOnce, samples.size() - first), batch);
    if (first == 0) {
      auto const labels = category_labels(samples.layout(), trained);
      say_values_without_rows(stream, *store_, model_->features(), batch, labels, notices);
    }
    take(predictor.wait_predict(stream, *store_, batch).probabilities);
  }
}

nlohmann::ordered_json SavedClicks::description() const {
  Config const& config = saved_.config;
  Layout const layout = layout_of(config);
  nlohmann::ordered_json json{{"model", config.model.name},
                              {"steps", saved_.state.clock},
                              {"numbers", layout.numbers},
                              {"number_means", statistics_.mean},
                              {"number_deviations", statistics_.deviation}};
  Features const& features = model_->features();
  json["categories"] = nlohmann::json::array();
  for (CategoryField const& field : layout.categories) json["categories"].push_back(field.name);
  json["block"] = {{"width", features.width()}, {"columns", nlohmann::json::object()}};
  for (auto const& [name, column] : features.columns()) json["block"]["columns"][name] = column;
  json["tables"] = nlohmann::json::array();
  if (config.settings<ClickSettings>().min_count > 0)
    json["frequent_values"] = {{"file", "frequent_values.bin"}, {"dtype", "uint64"}};
  for (Features::FeatureTable const& table : features.tables()) {
    json["tables"].push_back({{"name", table.name}, {"dim", table.dim}});
  }
  for (Parameter const& p : dense_->parameters().all()) {
    json["dense"].push_back({{"name", p.name}, {"shape", {p.rows, p.columns}}});
  }
  json["configuration"] = resolved(config);
  return json;
}

void SavedClicks::write(fs::path const& folder, ExportFormat format) {
  write_folder(folder, [&](fs::path const& beside) {
    Stream stream = store_->make_stream();
    store_->export_rows(beside / "rows", format);
    fs::create_directory(beside / "dense");
    for (Parameter const& p : dense_->parameters().all()) {
      std::uint64_t const shape[] = {p.rows, p.columns};
      export_array(beside / "dense" / p.name, format, shape, dense_->wait_numbers(stream, p));
    }
    if (saved_.config.settings<ClickSettings>().min_count > 0) {
      write_file(beside / "frequent_values.bin", to_blob(frequent_).bytes);
    }
    write_file(beside / "model.json", description().dump(1) + "\n");
  });
}

}  // namespace gpups::trainer
