// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/click_kind.hpp"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>

#include "kernels/base/check.hpp"
#include "trainer/config/table_settings.hpp"
#include "trainer/saved/saved_model.hpp"
#include "trainer/tasks/click/click_data.hpp"
#include "trainer/tasks/click/model/click_models.hpp"
#include "trainer/tasks/click/saved_clicks.hpp"

namespace gpups::trainer {
namespace {

using C = ClickSettings;

bool is(std::string const& word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
ClickSettings const& click(Config const& c) { return c.settings<ClickSettings>(); }

bool has_linear_part(Config const& c) { return click(c).wide || is(c.model.name, {"logistic", "fm", "deepfm"}); }

Constraint const kRows{[](Config const& c) { return c.model.name != "logistic"; },
                       "model.name = \"logistic\" has a linear part only"};
Constraint const kBuckets{[](Config const& c) {
                            return is(click(c).numeric_features, {"buckets", "both"});
                          },
                          "only model.numeric_features = \"buckets\" or \"both\" uses it"};
Constraint const kPooled{[](Config const& c) { return !click(c).multi_hot.empty() || !click(c).weighted.empty(); },
                         "no category has several values: see data.multi_hot and data.weighted"};
Constraint const kMayBeWide{
    [](Config const& c) {
      return is(c.model.name, {"dlrm", "dcnv2"});
    },
    "only model.name = \"dlrm\" or \"dcnv2\" uses it: the other click models always have a linear part"};
Constraint const kBottom{[](Config const& c) { return c.model.name == "dlrm"; }, "only model.name = \"dlrm\" uses it"};
Constraint const kCross{[](Config const& c) { return c.model.name == "dcnv2"; }, "only model.name = \"dcnv2\" uses it"};
Constraint const kDeep{[](Config const& c) {
                         return is(c.model.name, {"deepfm", "dlrm", "dcnv2"});
                       },
                       "only model.name = \"deepfm\", \"dlrm\" or \"dcnv2\" uses it"};
Constraint const kLinear{has_linear_part, "the model has no linear part: set model.wide"};
Constraint const kLinearStateful{[](Config const& c) { return click(c).linear.kind != "sgd"; },
                                 "linear.kind = \"sgd\" keeps no state, or the model has no linear part"};
Constraint const kLinearProximal{[](Config const& c) { return has_linear_part(c) && click(c).linear.kind == "ftrl"; },
                                 "only linear.kind = \"ftrl\" in a model with a linear part uses it"};

std::vector<Field> click_data_fields() {
  return {
      train_file(),
      valid_file(),
      test_file(),
      bad_share_max(),
      valid_share().only_if(kValidIsCut),
      test_share().only_if(kTestIsCut),
      FieldBuilder("data", "numeric_columns", in_task<&C::numeric_columns>,
                   "number of numeric columns, which follow the label")
          .range(0, 4095)
          .fixed_on_resume(),
      FieldBuilder("data", "categorical_columns", in_task<&C::categorical_columns>,
                   "number of categorical columns, which follow the numeric ones")
          .range(0, 4095)
          .fixed_on_resume(),
      FieldBuilder("data", "multi_hot", in_task<&C::multi_hot>, "categories with several values, separated by '|'")
          .fixed_on_resume(),
      FieldBuilder("data", "weighted", in_task<&C::weighted>, "the same, and a value may end in ':' and a weight")
          .fixed_on_resume(),
      FieldBuilder("data", "order", in_task<&C::order>, "order of training samples; \"file\": that of the file")
          .one_of({"shuffled", "file"})
          .fixed_on_resume(),
  };
}

std::vector<Field> click_model_fields() {
  return {
      FieldBuilder("model", "numeric_features", in_task<&C::numeric_features>,
                   "inputs that are made from numeric columns")
          .one_of({"log", "buckets", "both", "none"})
          .fixed_on_resume(),
      FieldBuilder("model", "buckets", in_task<&C::buckets>, "buckets for each factor of two of a number")
          .range(1, 64)
          .only_if(kBuckets)
          .fixed_on_resume(),
      FieldBuilder("model", "pooling", in_task<&C::pooling>, "pooling of the rows of several values")
          .one_of({"sum", "mean"})
          .only_if(kPooled)
          .fixed_on_resume(),
      FieldBuilder("model", "dims", in_task<&C::dims>, "categories whose rows have another dim, for example \"C3:32\"")
          .only_if(kCross)
          .fixed_on_resume(),
      FieldBuilder("model", "shared", in_task<&C::shared>,
                   "categories that share the rows of equal values, for example \"C1,C2\"")
          .fixed_on_resume(),
      FieldBuilder("model", "admission_count", in_task<&C::admission_count>,
                   "occurrence of a value at which its row is created")
          .range(1, 1 << 30)
          .only_if(kRows)
          .fixed_on_resume(),
      FieldBuilder("model", "min_count", in_task<&C::min_count>,
                   "values with fewer training samples share the row of unknown values; 0: each value has a row")
          .range(0, 255)
          .fixed_on_resume()
          .same_in_trials(),
      FieldBuilder("model", "bottom", in_task<&C::bottom>, "widths of the layers below the interaction")
          .range(1, 65536)
          .keeps_order()
          .only_if(kBottom)
          .fixed_on_resume(),
      FieldBuilder("model", "top", in_task<&C::top>, "widths of the layers before the last one")
          .range(1, 65536)
          .keeps_order()
          .only_if(kDeep)
          .fixed_on_resume(),
      FieldBuilder("model", "wide", in_task<&C::wide>, "true: adds a linear part, one weight for each value and number")
          .only_if(kMayBeWide)
          .fixed_on_resume(),
      FieldBuilder("model", "row_dropout", in_task<&C::row_dropout>, "share of a sample's categories that a step drops")
          .range(0, 0.99)
          .only_if(kRows)
          .fixed_on_resume(),
      FieldBuilder("model", "cross_layers", in_task<&C::cross_layers>, "number of cross layers")
          .range(1, 64)
          .only_if(kCross)
          .fixed_on_resume(),
      FieldBuilder("model", "dropout", in_task<&C::dropout>, "share of hidden units that a step drops")
          .range(0, 0.99)
          .only_if(kDeep)
          .fixed_on_resume(),
  };
}

template <auto Member>
FieldPointer in_linear(Config& config) {
  return &(config.settings<ClickSettings>().linear.*Member);
}

std::vector<Field> click_linear_fields() {
  using L = LinearConfig;
  return {
      FieldBuilder("linear", "kind", in_linear<&L::kind>, "optimizer of the linear part")
          .one_of({"sgd", "adagrad", "rowwise_adagrad", "ftrl"})
          .only_if(kLinear)
          .fixed_on_resume(),
      FieldBuilder("linear", "learning_rate", in_linear<&L::learning_rate>, "")
          .range(0, 1e6)
          .only_if(kLinear)
          .fixed_on_resume(),
      FieldBuilder("linear", "initial_accumulator", in_linear<&L::initial_accumulator>, "accumulator of new rows")
          .range(0, 1e6)
          .only_if(kLinear)
          .only_if(kLinearStateful)
          .fixed_on_resume(),
      FieldBuilder("linear", "l2", in_linear<&L::l2>, "as optimizer.l2")
          .range(0, 1e6)
          .only_if(kLinear)
          .fixed_on_resume(),
      FieldBuilder("linear", "l1", in_linear<&L::l1>, "as optimizer.l1")
          .range(0, 1e6)
          .only_if(kLinearProximal)
          .fixed_on_resume(),
      FieldBuilder("linear", "beta", in_linear<&L::beta>, "as optimizer.beta")
          .range(0, 1e6)
          .only_if(kLinearProximal)
          .fixed_on_resume(),
      FieldBuilder("linear", "admission_count", in_linear<&L::admission_count>, "as model.admission_count")
          .range(1, 1 << 30)
          .only_if(kLinear)
          .fixed_on_resume(),
  };
}

std::vector<Field> click_fields() {
  return joined({click_data_fields(),
                 table_fields(),
                 only_if(kRows, row_fields()),
                 click_model_fields(),
                 only_if(kRows, optimizer_fields()),
                 schedule_fields(),
                 click_linear_fields(),
                 dense_fields(),
                 {expire_after(),
                  FieldBuilder("eval", "progressive", in_task<&C::progressive>,
                               "true: reports metrics of the first epoch: samples are predicted, then trained on"),
                  FieldBuilder("run", "reader_threads", in_task<&C::reader_threads>, "cores that parse text; 0: all")
                      .range(0, 1024)}});
}

void check_click_settings(Config const& config, std::string const& name) {
  require_train_file(config, name);
  if (kLinearProximal.in(config)) require_constant_schedule(config, name);
  GPUPS_REQUIRE(!click(config).progressive || click(config).order == "file",
                "{}: eval.progressive is true and data.order is \"{}\" (samples would be predicted after later ones "
                "were trained on, so the metrics would be too good): set data.order = \"file\" or eval.progressive = "
                "false",
                name, click(config).order);
}

// Throws Error if a factorization machine has no pair of categories to multiply.
void require_pairs(Config const& config, std::string const& name) {
  ClickSettings const& settings = click(config);
  std::int64_t const categories = settings.categorical_columns + (kBuckets.in(config) ? settings.numeric_columns : 0);
  GPUPS_REQUIRE(!is(config.model.name, {"fm", "deepfm"}) || categories != 1,
                "{}: model.name is \"{}\" and there is one category (the model multiplies rows of different "
                "categories, and all values of a cell are pooled into one row, so the products would have no effect): "
                "write the values in two columns or more, or set model.name = \"{}\"",
                name, config.model.name, config.model.name == "fm" ? "logistic" : "dcnv2");
}

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
  void set_defaults(Config& config, std::set<std::string> const& given) const override {
    ClickSettings& settings = config.settings<ClickSettings>();
    if (!given.contains("data.order")) settings.order = settings.progressive ? "file" : "shuffled";
  }
  void check(Config const& config, std::string const& name) const override { check_click_settings(config, name); }

  void check_effect(Config const& config, std::string const& name) const override { require_pairs(config, name); }

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

  bool export_model(SavedModel const& model, std::filesystem::path const& folder, ModelFormat format,
                    std::vector<std::string>&) const override {
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

Optimizer linear_optimizer(LinearConfig const& linear) {
  return {.kind = optimizer_kind(linear.kind),
          .learning_rate = static_cast<float>(linear.learning_rate),
          .initial_accumulator = static_cast<float>(linear.initial_accumulator),
          .l2 = static_cast<float>(linear.l2),
          .l1 = static_cast<float>(linear.l1),
          .beta = static_cast<float>(linear.beta)};
}

TaskKind const& click_kind() {
  static ClickKind const kind;
  return kind;
}

}  // namespace gpups::trainer
