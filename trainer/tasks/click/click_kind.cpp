// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/click_kind.hpp"

#include <algorithm>

#include "trainer/saved/restored_model.hpp"
#include "trainer/tasks/click/click_data.hpp"
#include "trainer/tasks/click/click_settings.hpp"
#include "trainer/tasks/click/model/click_models.hpp"
#include "trainer/tasks/click/saved_clicks.hpp"

namespace gpups::trainer {
namespace {

class ClickKind : public TaskKind {
 public:
  std::vector<std::string> readers() const override { return {"clicks"}; }
  std::vector<std::string> models() const override { return click_model_names(); }

  Config defaults() const override {
    Config config;
    config.data.train = config.data.valid = config.data.test = "";
    config.data.valid_share = 0;
    config.data.test_share = 0.1;
    config.model.name = "dlrm";
    config.model.dim = 16;
    config.model.init_scale = 0.01;
    config.task.values = ClickSettings{};
    return config;
  }
  std::vector<Field> fields() const override { return click_fields(); }
  void check(Config const& config, std::string const& name) const override { check_click_settings(config, name); }

  std::unique_ptr<Data const> read(Config const& config) const override { return std::make_unique<ClickData>(config); }

  ModelShape shape(Config const& config) const override {
    ClickModel const model(layout_of(config), config);
    ModelShape shape;
    for (Features::FeatureTable const& table : model.features().tables()) {
      shape.widest_row = std::max(shape.widest_row, table.dim);
    }
    for (Parameter const& layer : model.parameters().all()) {
      shape.largest_layer = std::max(shape.largest_layer, layer.size());
    }
    return shape;
  }

  bool export_model(SavedModel const& model, std::filesystem::path const& folder, ModelFormat format) const override {
    if (is_word2vec(format)) return false;
    SavedClicks(model).write(folder, array_format(format));
    return true;
  }
  bool predict(SavedModel const& model, std::filesystem::path const& file, std::vector<std::string>& notices,
               std::function<void(std::span<float const>)> const& take) const override {
    SavedClicks(model).predict(file, notices, take);
    return true;
  }
};

}  // namespace

TaskKind const& click_kind() {
  static ClickKind const kind;
  return kind;
}

}  // namespace gpups::trainer
