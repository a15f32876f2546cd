// SPDX-License-Identifier: Apache-2.0
// The keys of models: of all, and of those that learn from clicks.
#include "trainer/config_make.hpp"
#include "trainer/config_uses.hpp"
#include "trainer/tasks.hpp"

namespace gpups::trainer {
namespace {

template <auto Member>
constexpr Read kModel = at<&Config::model, Member>;

}  // namespace

std::vector<Field> model_fields() {
  using namespace uses;
  using M = ModelConfig;
  return {
      Make("model", "name", kModel<&M::name>, "how a sample is scored").one_of(all_model_names()).kept(),
      Make("model", "dim", kModel<&M::dim>, "numbers in a row").range(1, 65536).with(kRows).kept(),
      Make("model", "loss", kModel<&M::loss>, "of a positive against its negatives")
          .one_of({"logistic", "softmax", "self_adversarial"})
          .with(kGraphs)
          .kept(),
      Make("model", "temperature", kModel<&M::temperature>,
           "weights negatives by the softmax of so many times their scores; 0: alike")
          .range(0, 1e6)
          .with(kWeighted)
          .kept(),
      Make("model", "negatives", kModel<&M::negatives>, "drawn for the subject, and as many for the object")
          .range(1, 1 << 20)
          .with(kGraphs)
          .kept(),
      Make("model", "sampling", kModel<&M::sampling>, "triple: negatives of its own for each; shared: by a microbatch")
          .one_of({"triple", "shared"})
          .with(kGraphs)
          .kept(),
      Make("model", "negative_reuse", kModel<&M::negative_reuse>,
           "of 16 triples side by side, those that use a negative")
          .range(1, 16)
          .with(kOwnNegatives)
          .kept(),
      Make("model", "l2", kModel<&M::l2>, "weight of the squared norm of a positive's rows")
          .range(0, 1e6)
          .with(kGraphs)
          .kept(),
      Make("model", "n3", kModel<&M::n3>, "weight of the cubed moduli of a positive's rows")
          .range(0, 1e6)
          .with(kGraphs)
          .kept(),
      Make("model", "norm", kModel<&M::norm>, "of the distance: 1, or 2 for the Euclidean")
          .range(1, 2)
          .with(kTranslations)
          .kept(),
      Make("model", "margin", kModel<&M::margin>, "score of distance 0").range(0, 1e6).with(kMargins).kept(),
      Make("model", "init", kModel<&M::init>, "distribution of initial values")
          .one_of({"normal", "uniform", "constant"})
          .with(kRows)
          .kept(),
      Make("model", "init_scale", kModel<&M::init_scale>, "its deviation, its half width, or its value")
          .range(0, 1e6)
          .with(kRows)
          .kept(),
      Make("model", "values", kModel<&M::values>, "what numbers of rows are kept as (graphs: of entities)")
          .one_of({"float32", "bfloat16", "float16"})
          .with(kRows)
          .kept(),
  };
}

std::vector<Field> click_model_fields() {
  using namespace uses;
  using M = ModelConfig;
  return {
      Make("model", "numbers", kModel<&M::numbers>, "how they are learnt from")
          .one_of({"log", "buckets", "both", "none"})
          .with(kClicks)
          .kept(),
      Make("model", "buckets", kModel<&M::buckets>, "of a number, from each to its double")
          .range(1, 64)
          .with(kBuckets)
          .kept(),
      Make("model", "pooling", kModel<&M::pooling>, "of the rows of many values")
          .one_of({"sum", "mean"})
          .with(kPooled)
          .kept(),
      Make("model", "dims", kModel<&M::dims>, "categories whose rows have another dim, as in \"C3:32\"")
          .with(kCross)
          .kept(),
      Make("model", "shared", kModel<&M::shared>, "categories whose equal values have one row, as in \"C1,C2\"")
          .with(kClicks)
          .kept(),
      Make("model", "admit_at", kModel<&M::admit_at>, "occurrences of a value before its row is learnt")
          .range(1, 1 << 30)
          .with(kClickRows)
          .kept(),
      Make("model", "rare_below", kModel<&M::rare_below>,
           "values that the training data has less often share a row with the unknown; 0: each has its own")
          .range(0, 255)
          .with(kClicks)
          .kept(),
      Make("model", "bottom", kModel<&M::bottom>, "widths of the layers below the interaction")
          .range(1, 65536)
          .in_order()
          .with(kBottom)
          .kept(),
      Make("model", "top", kModel<&M::top>, "widths of the layers before the last one")
          .range(1, 65536)
          .in_order()
          .with(kDeep)
          .kept(),
      Make("model", "wide", kModel<&M::wide>, "a weight for each value and number too, summed as in a regression")
          .with(kMayBeWide)
          .kept(),
      Make("model", "row_dropout", kModel<&M::row_dropout>, "share of a sample's categories that a step leaves out")
          .range(0, 0.99)
          .with(kClickRows)
          .kept(),
      Make("model", "cross_layers", kModel<&M::cross_layers>, "layers of crosses").range(1, 64).with(kCross).kept(),
      Make("model", "dropout", kModel<&M::dropout>, "share of the hidden units that a step leaves out")
          .range(0, 0.99)
          .with(kDeep)
          .kept(),
  };
}

}  // namespace gpups::trainer
