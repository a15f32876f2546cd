// SPDX-License-Identifier: Apache-2.0
// The keys of [model].
#include "trainer/config/config_constraints.hpp"
#include "trainer/config/config_fields.hpp"
#include "trainer/tasks/task.hpp"

namespace gpups::trainer {
namespace {

template <auto Member>
constexpr FieldAccessor kModel = at<&Config::model, Member>;

}  // namespace

std::vector<Field> model_fields() {
  using namespace constraints;
  using M = ModelConfig;
  return {
      FieldBuilder("model", "name", kModel<&M::name>, "the model").one_of(all_model_names()).fixed_on_resume(),
      FieldBuilder("model", "dim", kModel<&M::dim>, "number of values in a row")
          .range(1, 65536)
          .only_if(kRows)
          .fixed_on_resume(),
      FieldBuilder("model", "loss", kModel<&M::loss>, "loss of a positive and its negatives")
          .one_of({"logistic", "softmax", "self_adversarial"})
          .only_if(kGraphs)
          .fixed_on_resume(),
      FieldBuilder("model", "temperature", kModel<&M::temperature>,
                   "factor of scores in the softmax that weights negatives; 0: equal weights")
          .range(0, 1e6)
          .only_if(kWeighted)
          .fixed_on_resume(),
      FieldBuilder(
          "model", "negatives", kModel<&M::negatives>,
          "negatives for the subject, and the same number for the object; in texts and walks: for each word; of "
          "interactions: for each")
          .range(1, 1 << 20)
          .only_if(kDrawsNegatives)
          .fixed_on_resume(),
      FieldBuilder(
          "model", "sampling", kModel<&M::sampling>,
          "triple: negatives for each triple; shared: for each microbatch; all: all entities (1vsAll); kvsall: the "
          "same, and a sample is a query with all of its answers")
          .one_of({"triple", "shared", "all", "kvsall"})
          .only_if(kGraphs)
          .fixed_on_resume(),
      FieldBuilder("model", "reciprocal", kModel<&M::reciprocal>,
                   "true: each relation has a second row, with which objects ask for subjects")
          .only_if(kGraphs)
          .fixed_on_resume(),
      FieldBuilder("model", "label_smoothing", kModel<&M::label_smoothing>,
                   "share of a query's target that is spread over all entities")
          .range(0, 0.99)
          .only_if(kLabelled)
          .fixed_on_resume(),
      FieldBuilder("model", "entity_dropout", kModel<&M::entity_dropout>,
                   "dropout rate of the elements of entities' rows")
          .range(0, 0.99)
          .only_if(kSharedNegatives)
          .fixed_on_resume(),
      FieldBuilder("model", "relation_dropout", kModel<&M::relation_dropout>,
                   "dropout rate of the elements of relations' rows")
          .range(0, 0.99)
          .only_if(kRelationDropout)
          .fixed_on_resume(),
      FieldBuilder("model", "negative_reuse", kModel<&M::negative_reuse>,
                   "how many of 16 consecutive triples, or of 32 words, use the same negative")
          .range(1, 32)
          .only_if(kOwnNegatives)
          .fixed_on_resume(),
      FieldBuilder("model", "local_negatives", kModel<&M::local_negatives>,
                   "share of negatives that are entities of the microbatch's own part")
          .range(0, 1)
          .only_if(kLocalNegatives)
          .fixed_on_resume(),
      FieldBuilder("model", "l2", kModel<&M::l2>,
                   "weight of the squared norm of a positive's rows; of ials: of a row, for each interaction")
          .range(0, 1e6)
          .only_if(kNormed)
          .fixed_on_resume(),
      FieldBuilder("model", "unobserved_weight", kModel<&M::unobserved_weight>,
                   "weight of a pair of a user and an item; an interaction has 1 in addition")
          .range(0, 1e6)
          .only_if(kIals)
          .fixed_on_resume(),
      FieldBuilder("model", "n3", kModel<&M::n3>, "weight of the cubed moduli of a positive's rows")
          .range(0, 1e6)
          .only_if(kGraphs)
          .fixed_on_resume(),
      FieldBuilder("model", "norm", kModel<&M::norm>, "norm of the distance: 1, or 2 for Euclidean")
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
      FieldBuilder("model", "init_scale", kModel<&M::init_scale>, "standard deviation, half width, or the constant")
          .range(0, 1e6)
          .only_if(kRows)
          .fixed_on_resume(),
      FieldBuilder("model", "biases", kModel<&M::biases>,
                   "true: predictions add the mean rating, and a bias of the row and of the column")
          .only_if(kRatings)
          .fixed_on_resume(),
      FieldBuilder("model", "window", kModel<&M::window>, "largest number of words on each side that a word predicts")
          .range(1, 1024)
          .only_if(kSkipGram)
          .fixed_on_resume(),
      FieldBuilder("model", "subsample", kModel<&M::subsample>,
                   "share of the text above which occurrences of a word are dropped at random; 0: none are")
          .range(0, 1)
          .only_if(kTexts)
          .fixed_on_resume(),
      FieldBuilder("model", "walks", kModel<&M::walks>, "random walks from each node in an epoch")
          .range(1, 1 << 20)
          .only_if(kNetworks)
          .fixed_on_resume(),
      FieldBuilder("model", "walk_length", kModel<&M::walk_length>, "nodes of a walk")
          .range(2, 1 << 16)
          .only_if(kNetworks)
          .fixed_on_resume(),
      FieldBuilder("model", "p", kModel<&M::p>, "node2vec's return parameter: above 1, walks rarely go back")
          .range(0.01, 100)
          .only_if(kNetworks)
          .fixed_on_resume(),
      FieldBuilder("model", "q", kModel<&M::q>, "node2vec's in-out parameter: above 1, walks stay near their start")
          .range(0.01, 100)
          .only_if(kNetworks)
          .fixed_on_resume(),
      FieldBuilder("model", "value_type", kModel<&M::value_type>, "data type of rows (in graphs: of entities)")
          .one_of({"float32", "bfloat16", "float16"})
          .only_if(kRows)
          .fixed_on_resume(),
  };
}

std::vector<Field> click_model_fields() {
  using namespace constraints;
  using M = ModelConfig;
  return {
      FieldBuilder("model", "numeric_features", kModel<&M::numeric_features>,
                   "inputs that are made from numeric columns")
          .one_of({"log", "buckets", "both", "none"})
          .only_if(kClicks)
          .fixed_on_resume(),
      FieldBuilder("model", "buckets", kModel<&M::buckets>, "buckets for each factor of two of a number")
          .range(1, 64)
          .only_if(kBuckets)
          .fixed_on_resume(),
      FieldBuilder("model", "pooling", kModel<&M::pooling>, "pooling of the rows of several values")
          .one_of({"sum", "mean"})
          .only_if(kPooled)
          .fixed_on_resume(),
      FieldBuilder("model", "dims", kModel<&M::dims>, "categories whose rows have another dim, for example \"C3:32\"")
          .only_if(kCross)
          .fixed_on_resume(),
      FieldBuilder("model", "shared", kModel<&M::shared>,
                   "categories that share the rows of equal values, for example \"C1,C2\"")
          .only_if(kClicks)
          .fixed_on_resume(),
      FieldBuilder("model", "admission_count", kModel<&M::admission_count>,
                   "occurrence of a value at which its row is created")
          .range(1, 1 << 30)
          .only_if(kClickRows)
          .fixed_on_resume(),
      FieldBuilder(
          "model", "min_count", kModel<&M::min_count>,
          "values with fewer training samples share the row of unknown values; 0: each value has a row; in texts: "
          "rarer words are left out")
          .range(0, 255)
          .only_if(kCounted)
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
      FieldBuilder("model", "wide", kModel<&M::wide>, "true: adds a linear part, one weight for each value and number")
          .only_if(kMayBeWide)
          .fixed_on_resume(),
      FieldBuilder("model", "row_dropout", kModel<&M::row_dropout>, "share of a sample's categories that a step drops")
          .range(0, 0.99)
          .only_if(kClickRows)
          .fixed_on_resume(),
      FieldBuilder("model", "cross_layers", kModel<&M::cross_layers>, "number of cross layers")
          .range(1, 64)
          .only_if(kCross)
          .fixed_on_resume(),
      FieldBuilder("model", "dropout", kModel<&M::dropout>, "share of hidden units that a step drops")
          .range(0, 0.99)
          .only_if(kDeep)
          .fixed_on_resume(),
  };
}

}  // namespace gpups::trainer
