// SPDX-License-Identifier: Apache-2.0
// The keys of models: of all, and of those that learn from clicks.
#include "trainer/config_constraints.hpp"
#include "trainer/config_fields.hpp"
#include "trainer/task.hpp"

namespace gpups::trainer {
namespace {

template <auto Member>
constexpr FieldAccessor kModel = at<&Config::model, Member>;

}  // namespace

std::vector<Field> model_fields() {
  using namespace constraints;
  using M = ModelConfig;
  return {
      FieldBuilder("model", "name", kModel<&M::name>, "how a sample is scored")
          .one_of(all_model_names())
          .fixed_on_resume(),
      FieldBuilder("model", "dim", kModel<&M::dim>, "numbers in a row")
          .range(1, 65536)
          .only_if(kRows)
          .fixed_on_resume(),
      FieldBuilder("model", "loss", kModel<&M::loss>, "of a positive against its negatives")
          .one_of({"logistic", "softmax", "self_adversarial"})
          .only_if(kGraphs)
          .fixed_on_resume(),
      FieldBuilder("model", "temperature", kModel<&M::temperature>,
                   "weights negatives by the softmax of so many times their scores; 0: alike")
          .range(0, 1e6)
          .only_if(kWeighted)
          .fixed_on_resume(),
      FieldBuilder("model", "negatives", kModel<&M::negatives>, "drawn for the subject, and as many for the object")
          .range(1, 1 << 20)
          .only_if(kGraphs)
          .fixed_on_resume(),
      FieldBuilder("model", "sampling", kModel<&M::sampling>,
                   "triple: negatives of its own for each; shared: by a microbatch")
          .one_of({"triple", "shared"})
          .only_if(kGraphs)
          .fixed_on_resume(),
      FieldBuilder("model", "negative_reuse", kModel<&M::negative_reuse>,
                   "of 16 triples side by side, those that use a negative")
          .range(1, 16)
          .only_if(kOwnNegatives)
          .fixed_on_resume(),
      FieldBuilder("model", "l2", kModel<&M::l2>, "weight of the squared norm of a positive's rows")
          .range(0, 1e6)
          .only_if(kGraphs)
          .fixed_on_resume(),
      FieldBuilder("model", "n3", kModel<&M::n3>, "weight of the cubed moduli of a positive's rows")
          .range(0, 1e6)
          .only_if(kGraphs)
          .fixed_on_resume(),
      FieldBuilder("model", "norm", kModel<&M::norm>, "of the distance: 1, or 2 for the Euclidean")
          .range(1, 2)
          .only_if(kTranslations)
          .fixed_on_resume(),
      FieldBuilder("model", "margin", kModel<&M::margin>, "score of distance 0")
          .range(0, 1e6)
          .only_if(kMargins)
          .fixed_on_resume(),
      FieldBuilder("model", "init", kModel<&M::init>, "distribution of initial values")
          .one_of({"normal", "uniform", "constant"})
          .only_if(kRows)
          .fixed_on_resume(),
      FieldBuilder("model", "init_scale", kModel<&M::init_scale>, "its deviation, its half width, or its value")
          .range(0, 1e6)
          .only_if(kRows)
          .fixed_on_resume(),
      FieldBuilder("model", "value_type", kModel<&M::value_type>,
                   "what numbers of rows are kept as (graphs: of entities)")
          .one_of({"float32", "bfloat16", "float16"})
          .only_if(kRows)
          .fixed_on_resume(),
  };
}

std::vector<Field> click_model_fields() {
  using namespace constraints;
  using M = ModelConfig;
  return {
      FieldBuilder("model", "numeric_features", kModel<&M::numeric_features>, "how they are learnt from")
          .one_of({"log", "buckets", "both", "none"})
          .only_if(kClicks)
          .fixed_on_resume(),
      FieldBuilder("model", "buckets", kModel<&M::buckets>, "of a number, from each to its double")
          .range(1, 64)
          .only_if(kBuckets)
          .fixed_on_resume(),
      FieldBuilder("model", "pooling", kModel<&M::pooling>, "of the rows of many values")
          .one_of({"sum", "mean"})
          .only_if(kPooled)
          .fixed_on_resume(),
      FieldBuilder("model", "dims", kModel<&M::dims>, "categories whose rows have another dim, as in \"C3:32\"")
          .only_if(kCross)
          .fixed_on_resume(),
      FieldBuilder("model", "shared", kModel<&M::shared>, "categories whose equal values have one row, as in \"C1,C2\"")
          .only_if(kClicks)
          .fixed_on_resume(),
      FieldBuilder("model", "admission_count", kModel<&M::admission_count>,
                   "occurrences of a value before its row is learnt")
          .range(1, 1 << 30)
          .only_if(kClickRows)
          .fixed_on_resume(),
      FieldBuilder("model", "min_count", kModel<&M::min_count>,
                   "values that the training data has less often share a row with the unknown; 0: each has its own")
          .range(0, 255)
          .only_if(kClicks)
          .fixed_on_resume(),
      FieldBuilder("model", "bottom", kModel<&M::bottom>, "widths of the layers below the interaction")
          .range(1, 65536)
          .keeps_order()
          .only_if(kBottom)
          .fixed_on_resume(),
      FieldBuilder("model", "top", kModel<&M::top>, "widths of the layers before the last one")
          .range(1, 65536)
          .keeps_order()
          .only_if(kDeep)
          .fixed_on_resume(),
      FieldBuilder("model", "wide", kModel<&M::wide>,
                   "a weight for each value and number too, summed as in a regression")
          .only_if(kMayBeWide)
          .fixed_on_resume(),
      FieldBuilder("model", "row_dropout", kModel<&M::row_dropout>,
                   "share of a sample's categories that a step leaves out")
          .range(0, 0.99)
          .only_if(kClickRows)
          .fixed_on_resume(),
      FieldBuilder("model", "cross_layers", kModel<&M::cross_layers>, "layers of crosses")
          .range(1, 64)
          .only_if(kCross)
          .fixed_on_resume(),
      FieldBuilder("model", "dropout", kModel<&M::dropout>, "share of the hidden units that a step leaves out")
          .range(0, 0.99)
          .only_if(kDeep)
          .fixed_on_resume(),
  };
}

}  // namespace gpups::trainer
