// SPDX-License-Identifier: Apache-2.0
#include "trainer/config_fields.hpp"

#include <utility>

#include "trainer/config_make.hpp"
#include "trainer/config_uses.hpp"
#include "trainer/tasks.hpp"

namespace gpups::trainer {
namespace {

using namespace uses;

constexpr double kMost32 = 4294967295.0;
constexpr double kMost53 = 9007199254740992.0;  // what readers of TOML and JSON in any language keep exactly

template <auto Member>
constexpr Read kData = at<&Config::data, Member>;
template <auto Member>
constexpr Read kModel = at<&Config::model, Member>;
template <auto Member>
constexpr Read kOptimizer = at<&Config::optimizer, Member>;
template <auto Member>
constexpr Read kWeights = at<&Config::weights, Member>;
template <auto Member>
constexpr Read kGradients = at<&Config::gradients, Member>;
template <auto Member>
constexpr Read kRefreshes = at<&Config::refreshes, Member>;
template <auto Member>
constexpr Read kTrain = at<&Config::train, Member>;
template <auto Member>
constexpr Read kEval = at<&Config::eval, Member>;
template <auto Member>
constexpr Read kRun = at<&Config::run, Member>;
template <auto Member>
constexpr Read kCluster = at<&Config::cluster, Member>;

std::vector<Field> fields_of_rows() {
  using D = DataConfig;
  using M = ModelConfig;
  using O = OptimizerConfig;
  return {
      Make("data", "reader", kData<&D::reader>, "what the data is").one_of(all_reader_names()).kept(),
      Make("data", "folder", kData<&D::folder>, "where its files are").a_path(),
      Make("data", "train", kData<&D::train>, "file to learn from").with(kFiles),
      Make("data", "valid", kData<&D::valid>, "file to watch progress by; empty: none").with(kFiles),
      Make("data", "test", kData<&D::test>, "file for the final metrics; empty: none").with(kFiles),
      Make("data", "bad_share_max", kData<&D::bad_share_max>, "share of bad lines above which the run stops")
          .range(0, 1)
          .with(kFiles),
      Make("data", "valid_share", kData<&D::valid_share>, "share of samples kept to watch progress by")
          .range(0, 0.45)
          .with(kValidShare),
      Make("data", "test_share", kData<&D::test_share>, "share of samples kept for the final metrics")
          .range(0, 0.45)
          .with(kTestShare),
      Make("data", "split_seed", kData<&D::split_seed>, "decides which samples are kept")
          .range(0, kMost53)
          .with(kDrawn),
      Make("data", "numbers", kData<&D::numbers>, "columns of numbers, which come after the label")
          .range(0, 4095)
          .with(kClicks)
          .kept(),
      Make("data", "categories", kData<&D::categories>, "columns of categories, which come last")
          .range(0, 4095)
          .with(kClicks)
          .kept(),
      Make("data", "many", kData<&D::many>, "categories with many values, '|' between them").with(kClicks).kept(),
      Make("data", "weighted", kData<&D::weighted>, "the same, where a value may end in ':' and a weight")
          .with(kClicks)
          .kept(),

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

      Make("optimizer", "kind", kOptimizer<&O::kind>, "how a gradient changes a row")
          .one_of({"sgd", "adagrad", "rowwise_adagrad", "adam", "lamb", "ftrl"})
          .with(kRows)
          .kept(),
      Make("optimizer", "learning_rate", kOptimizer<&O::learning_rate>, "").range(0, 1e6).with(kRows).kept(),
      Make("optimizer", "epsilon", kOptimizer<&O::epsilon>, "").range(0, 1e6).with(kDivides).kept(),
      Make("optimizer", "initial_accumulator", kOptimizer<&O::initial_accumulator>, "of new rows")
          .range(0, 1e6)
          .with(kAccumulates)
          .kept(),
      Make("optimizer", "l2", kOptimizer<&O::l2>, "share of its values that is added to a row's gradient")
          .range(0, 1e6)
          .with(kRows)
          .kept(),
      Make("optimizer", "clip_norm", kOptimizer<&O::clip_norm>, "largest norm of a row's gradient; 0: any")
          .range(0, 1e6)
          .with(kRows)
          .kept(),
      Make("optimizer", "beta1", kOptimizer<&O::beta1>, "share of the mean gradient that stays")
          .range(0, 0.999999)
          .with(kMoments)
          .kept(),
      Make("optimizer", "beta2", kOptimizer<&O::beta2>, "share of the mean square that stays")
          .range(0, 0.999999)
          .with(kMoments)
          .kept(),
      Make("optimizer", "l1", kOptimizer<&O::l1>, "sums of gradients up to this leave a value at 0")
          .range(0, 1e6)
          .with(kProximal)
          .kept(),
      Make("optimizer", "beta", kOptimizer<&O::beta>, "makes first steps smaller").range(0, 1e6).with(kProximal).kept(),
      Make("optimizer", "schedule", kOptimizer<&O::schedule>, "of the learning rate")
          .one_of({"constant", "linear", "cosine"})
          .kept(),
      Make("optimizer", "warmup_steps", kOptimizer<&O::warmup_steps>, "in which the rate rises from 0")
          .range(0, kMost53)
          .kept(),
      Make("optimizer", "total_steps", kOptimizer<&O::total_steps>, "where the schedule ends; 0: where the run does")
          .range(0, kMost53)
          .with(kDecaying)
          .kept(),
      Make("optimizer", "floor", kOptimizer<&O::floor>, "share of the learning rate that is left there")
          .range(0, 1)
          .with(kDecaying)
          .kept(),

      Make("weights", "kind", kWeights<&WeightsConfig::kind>, "how a gradient changes a row of one number")
          .one_of({"sgd", "adagrad", "rowwise_adagrad", "ftrl"})
          .with(kWide)
          .kept(),
      Make("weights", "learning_rate", kWeights<&WeightsConfig::learning_rate>, "").range(0, 1e6).with(kWide).kept(),
      Make("weights", "initial_accumulator", kWeights<&WeightsConfig::initial_accumulator>, "of new ones")
          .range(0, 1e6)
          .with(kWideStateful)
          .kept(),
      Make("weights", "l2", kWeights<&WeightsConfig::l2>, "as optimizer.l2").range(0, 1e6).with(kWide).kept(),
      Make("weights", "l1", kWeights<&WeightsConfig::l1>, "as optimizer.l1").range(0, 1e6).with(kWideProximal).kept(),
      Make("weights", "beta", kWeights<&WeightsConfig::beta>, "as optimizer.beta")
          .range(0, 1e6)
          .with(kWideProximal)
          .kept(),
      Make("weights", "admit_at", kWeights<&WeightsConfig::admit_at>, "as model.admit_at")
          .range(1, 1 << 30)
          .with(kWide)
          .kept(),
  };
}

std::vector<Field> fields_of_runs() {
  using T = TrainConfig;
  using X = TransferConfig;
  return {
      Make("gradients", "codec", kGradients<&X::codec>, "of rows' gradients between ranks").a_codec(),
      Make("gradients", "top_k", kGradients<&X::top_k>, "columns of a row that are sent, the largest; 0: all")
          .range(0, 65536)
          .kept(),
      Make("gradients", "age_max", kGradients<&X::age_max>, "steps that a row may be held back for; 0: none")
          .range(0, 1e9)
          .kept(),
      Make("gradients", "share", kGradients<&X::share>, "of rows that ought to be sent")
          .range(0, 1)
          .kept()
          .with(kGradientsFiltered),
      Make("gradients", "bound", kGradients<&X::bound>, "by the root of the step, the most that waits")
          .range(0, 1e30)
          .kept()
          .with(kGradientsFiltered),
      Make("gradients", "rows_max", kGradients<&X::rows_max>, "held back for each other rank")
          .range(1, 1 << 30)
          .kept()
          .with(kGradientsHeld),

      Make("refreshes", "codec", kRefreshes<&X::codec>, "of changes of rows that other ranks read").a_codec(),
      Make("refreshes", "age_max", kRefreshes<&X::age_max>, "steps that a change may be held back for; 0: none")
          .range(0, 1e9)
          .kept(),
      Make("refreshes", "share", kRefreshes<&X::share>, "of rows that ought to be sent")
          .range(0, 1)
          .kept()
          .with(kRefreshesFiltered),
      Make("refreshes", "bound", kRefreshes<&X::bound>, "by the root of the step, the most that waits")
          .range(0, 1e30)
          .kept()
          .with(kRefreshesFiltered),
      Make("refreshes", "rows_max", kRefreshes<&X::rows_max>, "of which each other rank has a copy")
          .range(1, 1 << 30)
          .kept()
          .with(kRefreshesHeld),

      Make("train", "epochs", kTrain<&T::epochs>, "passes over the training data").range(1, 1e6).with(kByEpochs),
      Make("train", "steps", kTrain<&T::steps>, "length of the run in steps; 0: by epochs").range(0, kMost53),
      Make("train", "batch", kTrain<&T::batch>, "samples in a step, over all ranks").range(1, 1 << 24).kept(),
      Make("train", "microbatches", kTrain<&T::microbatches>,
           "parts of a batch, whatever the ranks; 0: the larger of 8 and the ranks")
          .range(0, 65536),
      Make("train", "lookahead", kTrain<&T::lookahead>, "steps that are prepared ahead").range(1, 1024),
      Make("train", "prefetch_thread", kTrain<&T::prefetch_thread>, "false: the training thread prepares them itself"),
      Make("train", "keep_batches", kTrain<&T::keep_batches>,
           "true: epochs have the same batches, each prepared once; takes some 50 bytes for each sample")
          .with(kRatings)
          .kept(),
      Make("train", "seed", kTrain<&T::seed>, "of initial values, negatives and the order of samples")
          .range(0, kMost53)
          .kept(),
      Make("train", "valid_every", kTrain<&T::valid_every>, "epochs between validations; 0: at the end only")
          .range(0, 1e6),
      Make("train", "checkpoint_every", kTrain<&T::checkpoint_every>, "epochs between checkpoints; 0: at the end only")
          .range(0, 1e6),
      Make("train", "patience", kTrain<&T::patience>, "validations without a better one that end the run; 0: any")
          .range(0, 1e6)
          .with(kValidated),
      Make("train", "expire_after", kTrain<&T::expire_after>,
           "steps without a sighting after which a row is forgotten, looked for after each epoch; 0: never")
          .range(0, 4e9)
          .with(kClicks)
          .kept(),

      Make("eval", "samples_max", kEval<&EvalConfig::samples_max>, "triples to rank; 0: all")
          .range(0, kMost32)
          .with(kGraphs),
      Make("eval", "sample", kEval<&EvalConfig::sample>, "spread: evenly over the split; first: its first triples")
          .one_of({"spread", "first"})
          .with(kSampled),
      Make("eval", "hits", kEval<&EvalConfig::hits>, "the k of Hits@k").range(1, kMost32).with(kGraphs),
      Make("eval", "progressive", kEval<&EvalConfig::progressive>, "metrics of samples before they are learnt from")
          .with(kClicks),

      Make("run", "folder", kRun<&RunConfig::folder>, "for results; empty: runs/NAME-YYYYmmdd-HHMMSS").a_path(),
      Make("run", "device", kRun<&RunConfig::device>, "auto, host, cuda or cuda:0"),
      Make("run", "threads", kRun<&RunConfig::threads>, "cores of a rank on the host; 0: its even share")
          .range(0, 65536),
      Make("run", "ranks", kRun<&RunConfig::ranks>, "ranks, as threads of the program").range(1, 1024),
      Make("run", "report_every", kRun<&RunConfig::report_every>, "steps between the lines of metrics.jsonl")
          .range(1, kMost53),
      Make("run", "reader_threads", kRun<&RunConfig::reader_threads>, "cores that parse text; 0: all of them")
          .range(0, 1024)
          .with(kClicks),

      Make("cluster", "join_timeout_s", kCluster<&ClusterConfig::join_timeout_s>, "until all processes have come")
          .range(0.1, 1e6),
      Make("cluster", "peer_timeout_s", kCluster<&ClusterConfig::peer_timeout_s>,
           "how long a process may be silent before it is taken for lost")
          .range(0.1, 1e6),
      Make("cluster", "wait_timeout_s", kCluster<&ClusterConfig::wait_timeout_s>,
           "how long one that is there may let others wait")
          .range(0.1, 1e6),
  };
}

std::vector<Field> make_fields() {
  std::vector<Field> all = fields_of_rows();
  for (auto const& more : {dense_fields(), fields_of_runs()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

std::span<Field const> fields() {
  static std::vector<Field> const all = make_fields();
  return all;
}

}  // namespace gpups::trainer
