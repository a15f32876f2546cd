// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/interactions/interaction_kind.hpp"

#include <fmt/format.h>

#include "kernels/base/check.hpp"
#include "trainer/tasks/common/named_vectors.hpp"
#include "trainer/tasks/interactions/interaction_data.hpp"
#include "trainer/tasks/interactions/interaction_settings.hpp"
#include "trainer/tasks/interactions/recommend.hpp"

namespace gpups::trainer {
namespace {

using I = InteractionSettings;

Constraint const kBpr{[](Config const& c) { return c.model.name == "bpr"; }, "only model.name = \"bpr\" uses it"};
Constraint const kIals{[](Config const& c) { return c.model.name == "ials"; }, "only model.name = \"ials\" uses it"};
Constraint const kOptimized{[](Config const& c) { return c.model.name != "ials"; },
                            "model.name = \"ials\" solves for its rows"};

class InteractionKind : public TaskKind {
 public:
  std::vector<std::string> readers() const override { return {"interactions"}; }
  std::vector<std::string> models() const override { return {"bpr", "ials"}; }

  Config defaults() const override {
    Config config;
    config.data.train = config.data.valid = config.data.test = "";
    config.data.valid_share = 0;
    config.data.test_share = 0.1;
    config.model.name = "bpr";
    config.model.dim = 64;
    config.optimizer.l2 = 1e-5;
    config.eval.hits = {20};
    config.task.values = InteractionSettings{};
    return config;
  }

  std::vector<Field> fields() const override {
    return joined(
        {{train_file(), valid_file(), test_file(), valid_share().only_if(kValidIsCut), test_share().only_if(kTestIsCut),
          split_seed().only_if(kAnyIsCut)},
         row_fields(),
         {FieldBuilder("model", "negatives", in_task<&I::negatives>, "negatives for each interaction")
              .range(1, 1 << 20)
              .only_if(kBpr)
              .fixed_on_resume(),
          FieldBuilder("model", "l2", in_task<&I::l2>, "weight of the squared norm of a row, for each interaction")
              .range(0, 1e6)
              .only_if(kIals)
              .fixed_on_resume(),
          FieldBuilder("model", "unobserved_weight", in_task<&I::unobserved_weight>,
                       "weight of a pair of a user and an item; an interaction has 1 in addition")
              .range(0, 1e6)
              .only_if(kIals)
              .fixed_on_resume()},
         only_if(kOptimized, joined({optimizer_fields(), schedule_fields()})),
         {initial_placement().only_if(kBpr), ranking_cutoffs()}});
  }

  void check(Config const& config, std::string const& name) const override {
    require_train_file(config, name);
    CompressionConfig const& gradients = config.gradient_compression;
    bool const compressed = gradients.codec != "lossless" || gradients.top_k > 0 || gradients.age_max > 0;
    GPUPS_REQUIRE(
        config.model.name != "ials" || (config.placement.staleness == 0 && !compressed),
        "{}: model.name is \"ials\" with placement.staleness or [gradient_compression] (the change of a row would "
        "arrive late, when the row may have been solved again): remove them",
        name);
  }

  std::unique_ptr<Data const> read(Config const& config) const override { return read_interaction_data(config); }

  bool export_model(SavedModel const& model, std::filesystem::path const& folder, ModelFormat format) const override {
    auto const data = read_interaction_data(model.saved.config);
    export_named_vectors(model, *data, data->set().items, &data->set().users, folder, format);
    return true;
  }
  std::optional<std::string> recommend(SavedModel const& model, std::vector<std::string> const& users,
                                       std::size_t count) const override {
    return recommend_items(model, *read_interaction_data(model.saved.config), users, count);
  }
};

}  // namespace

TaskKind const& interaction_kind() {
  static InteractionKind const kind;
  return kind;
}

}  // namespace gpups::trainer
