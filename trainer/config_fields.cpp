// SPDX-License-Identifier: Apache-2.0
#include "trainer/config_fields.hpp"

#include <utility>

#include "trainer/model.hpp"
#include "trainer/reader.hpp"

namespace gpups::trainer {
namespace {

constexpr double kMost32 = 4294967295.0;
constexpr double kMost53 = 9007199254740992.0;  // what readers of TOML and JSON in any language keep exactly

using Read = Place (*)(Config&);
template <auto Section, auto Member>
Place at(Config& config) {
  return &(config.*Section.*Member);
}
template <auto Member>
constexpr Read kData = at<&Config::data, Member>;
template <auto Member>
constexpr Read kModel = at<&Config::model, Member>;
template <auto Member>
constexpr Read kOptimizer = at<&Config::optimizer, Member>;
template <auto Member>
constexpr Read kTrain = at<&Config::train, Member>;
template <auto Member>
constexpr Read kEval = at<&Config::eval, Member>;
template <auto Member>
constexpr Read kRun = at<&Config::run, Member>;
template <auto Member>
constexpr Read kCluster = at<&Config::cluster, Member>;

// Builds a Field in words: Make("train", "batch", kTrain<...>, "...").range(1, 8).matters()
struct Make : Field {
  Make(std::string_view in_section, std::string_view its_key, Read read, std::string_view its_doc) {
    section = in_section, key = its_key, place = read, doc = its_doc;
  }
  Make& range(double from, double to) { return least = from, most = to, *this; }
  Make& one_of(std::vector<std::string> words) { return choices = std::move(words), *this; }
  Make& a_path() { return path = true, *this; }
  Make& kept() { return matters = true, *this; }
  Make& with(Use when) { return use = when, *this; }
};

Use const kTriples{[](Config const& c) { return c.data.reader == "triples"; }, "it is for data.reader = \"triples\""};
Use const kWordnet{[](Config const& c) { return c.data.reader == "wordnet"; }, "it is for data.reader = \"wordnet\""};
Use const kStateful{[](Config const& c) { return c.optimizer.kind != "sgd"; },
                    "optimizer.kind = \"sgd\" keeps no state"};
Use const kDecaying{[](Config const& c) { return c.optimizer.schedule != "constant"; },
                    "optimizer.schedule is \"constant\""};
Use const kByEpochs{[](Config const& c) { return c.train.steps == 0; }, "train.steps is set"};
Use const kSampled{[](Config const& c) { return c.eval.samples_max > 0; }, "eval.samples_max is 0: all are ranked"};
Use const kValidated{[](Config const& c) { return c.train.valid_every > 0; }, "train.valid_every is 0"};

std::vector<Field> make_fields() {
  using D = DataConfig;
  using M = ModelConfig;
  using O = OptimizerConfig;
  using T = TrainConfig;
  return {
      Make("data", "reader", kData<&D::reader>, "what the data is").one_of(reader_names()).kept(),
      Make("data", "folder", kData<&D::folder>, "where its files are").a_path(),
      Make("data", "train", kData<&D::train>, "file to learn from").with(kTriples),
      Make("data", "valid", kData<&D::valid>, "file to watch progress by; empty: none").with(kTriples),
      Make("data", "test", kData<&D::test>, "file for the final metrics; empty: none").with(kTriples),
      Make("data", "bad_share_max", kData<&D::bad_share_max>, "share of bad lines above which the run stops")
          .range(0, 1)
          .with(kTriples),
      Make("data", "valid_share", kData<&D::valid_share>, "share of triples kept to watch progress by")
          .range(0, 0.45)
          .with(kWordnet),
      Make("data", "test_share", kData<&D::test_share>, "share of triples kept for the final metrics")
          .range(0, 0.45)
          .with(kWordnet),
      Make("data", "split_seed", kData<&D::split_seed>, "decides which triples are kept")
          .range(0, kMost53)
          .with(kWordnet),

      Make("model", "name", kModel<&M::name>, "how a triple is scored").one_of(model_names()).kept(),
      Make("model", "dim", kModel<&M::dim>, "numbers in a row").range(1, 65536).kept(),
      Make("model", "loss", kModel<&M::loss>, "of a positive against its negatives")
          .one_of({"logistic", "softmax"})
          .kept(),
      Make("model", "negatives", kModel<&M::negatives>, "drawn for the subject, and as many for the object")
          .range(1, 1 << 20)
          .kept(),
      Make("model", "sampling", kModel<&M::sampling>, "triple: negatives of its own for each; shared: by a microbatch")
          .one_of({"triple", "shared"})
          .kept(),
      Make("model", "l2", kModel<&M::l2>, "weight of the squared norm of a positive's rows").range(0, 1e6).kept(),
      Make("model", "n3", kModel<&M::n3>, "weight of the cubed moduli of a positive's rows").range(0, 1e6).kept(),
      Make("model", "init", kModel<&M::init>, "distribution of initial values")
          .one_of({"normal", "uniform", "constant"})
          .kept(),
      Make("model", "init_scale", kModel<&M::init_scale>, "its deviation, its half width, or its value")
          .range(0, 1e6)
          .kept(),

      Make("optimizer", "kind", kOptimizer<&O::kind>, "how a gradient changes a row")
          .one_of({"sgd", "adagrad", "rowwise_adagrad"})
          .kept(),
      Make("optimizer", "learning_rate", kOptimizer<&O::learning_rate>, "").range(0, 1e6).kept(),
      Make("optimizer", "epsilon", kOptimizer<&O::epsilon>, "").range(0, 1e6).with(kStateful).kept(),
      Make("optimizer", "initial_accumulator", kOptimizer<&O::initial_accumulator>, "of new rows")
          .range(0, 1e6)
          .with(kStateful)
          .kept(),
      Make("optimizer", "clip_norm", kOptimizer<&O::clip_norm>, "largest norm of a row's gradient; 0: any")
          .range(0, 1e6)
          .kept(),
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

      Make("train", "epochs", kTrain<&T::epochs>, "passes over the training data").range(1, 1e6).with(kByEpochs),
      Make("train", "steps", kTrain<&T::steps>, "length of the run in steps; 0: by epochs").range(0, kMost53),
      Make("train", "batch", kTrain<&T::batch>, "triples in a step, over all ranks").range(1, 1 << 24).kept(),
      Make("train", "microbatches", kTrain<&T::microbatches>,
           "parts of a batch, whatever the ranks; 0: the larger of 8 and the ranks")
          .range(0, 65536),
      Make("train", "lookahead", kTrain<&T::lookahead>, "steps that are prepared ahead").range(1, 1024),
      Make("train", "prefetch_thread", kTrain<&T::prefetch_thread>, "false: the training thread prepares them itself"),
      Make("train", "seed", kTrain<&T::seed>, "of initial values, negatives and the order of samples")
          .range(0, kMost53)
          .kept(),
      Make("train", "valid_every", kTrain<&T::valid_every>, "epochs between validations; 0: at the end only")
          .range(0, 1e6),
      Make("train", "checkpoint_every", kTrain<&T::checkpoint_every>, "epochs between checkpoints; 0: at the end only")
          .range(0, 1e6),
      Make("train", "patience", kTrain<&T::patience>, "validations without a better MRR that end the run; 0: any")
          .range(0, 1e6)
          .with(kValidated),

      Make("eval", "samples_max", kEval<&EvalConfig::samples_max>, "triples to rank; 0: all").range(0, kMost32),
      Make("eval", "sample", kEval<&EvalConfig::sample>, "spread: evenly over the split; first: its first triples")
          .one_of({"spread", "first"})
          .with(kSampled),
      Make("eval", "hits", kEval<&EvalConfig::hits>, "the k of Hits@k").range(1, kMost32),

      Make("run", "folder", kRun<&RunConfig::folder>, "for results; empty: runs/NAME-YYYYmmdd-HHMMSS").a_path(),
      Make("run", "device", kRun<&RunConfig::device>, "auto, host, cuda or cuda:0"),
      Make("run", "threads", kRun<&RunConfig::threads>, "cores of a rank on the host; 0: its even share")
          .range(0, 65536),
      Make("run", "ranks", kRun<&RunConfig::ranks>, "ranks, as threads of the program").range(1, 1024),
      Make("run", "report_every", kRun<&RunConfig::report_every>, "steps between the lines of metrics.jsonl")
          .range(1, kMost53),

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

}  // namespace

std::span<Field const> fields() {
  static std::vector<Field> const all = make_fields();
  return all;
}

}  // namespace gpups::trainer
