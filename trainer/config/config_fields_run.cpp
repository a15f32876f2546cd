// SPDX-License-Identifier: Apache-2.0
// The keys of [train], [placement], [eval], [run] and [cluster].
#include "trainer/config/config_constraints.hpp"
#include "trainer/config/config_fields.hpp"

namespace gpups::trainer {
namespace {

template <auto Member>
constexpr FieldAccessor kTrain = at<&Config::train, Member>;
template <auto Member>
constexpr FieldAccessor kPlacement = at<&Config::placement, Member>;
template <auto Member>
constexpr FieldAccessor kEval = at<&Config::eval, Member>;
template <auto Member>
constexpr FieldAccessor kRun = at<&Config::run, Member>;
template <auto Member>
constexpr FieldAccessor kCluster = at<&Config::cluster, Member>;

}  // namespace

std::vector<Field> train_fields() {
  using namespace constraints;
  using T = TrainConfig;
  return {
      FieldBuilder("train", "epochs", kTrain<&T::epochs>, "passes over the training data")
          .range(1, 1e6)
          .only_if(kByEpochs),
      FieldBuilder("train", "steps", kTrain<&T::steps>, "length of the run in steps; 0: train.epochs sets it")
          .range(0, kMost53),
      FieldBuilder("train", "batch_size", kTrain<&T::batch_size>, "samples in a step, over all ranks")
          .range(1, 1 << 24)
          .fixed_on_resume(),
      FieldBuilder("train", "microbatches", kTrain<&T::microbatches>,
                   "microbatches of a global batch; 0: the larger of 8 and the number of ranks")
          .range(0, 65536),
      FieldBuilder("train", "lookahead", kTrain<&T::lookahead>, "number of steps that are prepared ahead")
          .range(1, 1024),
      FieldBuilder("train", "prefetch_thread", kTrain<&T::prefetch_thread>,
                   "true: a thread prepares steps; false: the training thread prepares them"),
      FieldBuilder("train", "reuse_batches", kTrain<&T::reuse_batches>,
                   "true: epochs have the same batches, each prepared once; needs about 50 bytes per sample")
          .only_if(kRatings)
          .fixed_on_resume(),
      FieldBuilder("train", "seed", kTrain<&T::seed>, "seed of initial values, negatives and the order of samples")
          .range(0, kMost53)
          .fixed_on_resume(),
      FieldBuilder("train", "validate_every", kTrain<&T::validate_every>,
                   "epochs between validations; 0: at the end only")
          .range(0, 1e6),
      FieldBuilder("train", "checkpoint_every", kTrain<&T::checkpoint_every>,
                   "epochs between checkpoints; 0: at the end only")
          .range(0, 1e6),
      FieldBuilder("train", "patience", kTrain<&T::patience>,
                   "validations without improvement after which the run ends; 0: no limit")
          .range(0, 1e6)
          .only_if(kValidated),
      FieldBuilder("train", "keep_best", kTrain<&T::keep_best>,
                   "true: the result is the model of the best validation; false: that of the last step")
          .only_if(kValidated),
      FieldBuilder("train", "expire_after", kTrain<&T::expire_after>,
                   "rows without an update in this many steps are removed after each epoch; 0: never")
          .range(0, 4e9)
          .only_if(kClicks)
          .fixed_on_resume(),
  };
}

std::vector<Field> placement_fields() {
  using namespace constraints;
  using P = PlacementConfig;
  return {
      FieldBuilder("placement", "initial", kPlacement<&P::initial>,
                   "hash: samples in random order; graph: ranks get samples that read the same rows")
          .one_of({"hash", "graph"})
          .only_if(kPlaced)
          .fixed_on_resume(),
      FieldBuilder("placement", "policy", kPlacement<&P::policy>,
                   "when rows move between ranks while training; static: never; adaptive: if fewer bytes are sent; "
                   "relocate: to a rank that uses them; random: for tests")
          .one_of({"static", "relocate", "adaptive", "random"}),
      FieldBuilder(
          "placement", "replica_fraction", kPlacement<&P::replica_fraction>,
          "rows of other ranks that a rank keeps between steps, as a fraction of its own rows; at least those of "
          "four steps, or with 0 none")
          .range(0, 1),
      FieldBuilder("placement", "staleness", kPlacement<&P::staleness>,
                   "steps by which reads of other ranks' rows may be behind, and their gradients may wait; 0: none")
          .range(0, 65536),
      FieldBuilder("placement", "trace_steps", kPlacement<&P::trace_steps>,
                   "steps after the start or a resume whose keys are recorded for the program replay; 0: none")
          .range(0, kMost53),
  };
}

std::vector<Field> eval_fields() {
  using namespace constraints;
  return {
      FieldBuilder("eval", "samples_max", kEval<&EvalConfig::samples_max>, "number of triples to rank; 0: all")
          .range(0, kMost32)
          .only_if(kGraphs),
      FieldBuilder("eval", "sample", kEval<&EvalConfig::sample>,
                   "spread: triples evenly spaced in the split; first: its first triples")
          .one_of({"spread", "first"})
          .only_if(kSampled),
      FieldBuilder("eval", "hits", kEval<&EvalConfig::hits>, "the k of Hits@k, or of recall@k and ndcg@k")
          .range(1, kMost32)
          .only_if(kRanked),
      FieldBuilder("eval", "words_max", kEval<&EvalConfig::words_max>,
                   "number of most frequent words among which analogies are answered")
          .range(4, kMost32)
          .only_if(kAnalogies),
      FieldBuilder("eval", "progressive", kEval<&EvalConfig::progressive>,
                   "true: reports metrics of samples that are predicted before they are trained on")
          .only_if(kClicks),
  };
}

std::vector<Field> run_fields() {
  using namespace constraints;
  return {
      FieldBuilder("run", "folder", kRun<&RunConfig::folder>, "folder of results; empty: runs/NAME-YYYYmmdd-HHMMSS")
          .is_path(),
      FieldBuilder("run", "device", kRun<&RunConfig::device>, "auto, host, cuda or cuda:0"),
      FieldBuilder("run", "threads", kRun<&RunConfig::threads>, "host cores of a rank; 0: an even share")
          .range(0, 65536),
      FieldBuilder("run", "ranks", kRun<&RunConfig::ranks>, "number of ranks, as threads of the program")
          .range(1, 1024),
      FieldBuilder("run", "report_every", kRun<&RunConfig::report_every>, "steps between lines of metrics.jsonl")
          .range(1, kMost53),
      FieldBuilder("run", "reader_threads", kRun<&RunConfig::reader_threads>, "cores that parse text; 0: all")
          .range(0, 1024)
          .only_if(kClicks),
  };
}

std::vector<Field> cluster_fields() {
  using namespace constraints;
  return {
      FieldBuilder("cluster", "join_timeout_s", kCluster<&ClusterConfig::join_timeout_s>,
                   "seconds in which all processes must join")
          .range(0.1, 1e6),
      FieldBuilder("cluster", "peer_timeout_s", kCluster<&ClusterConfig::peer_timeout_s>,
                   "seconds without a heartbeat after which a process is lost")
          .range(0.1, 1e6),
      FieldBuilder("cluster", "wait_timeout_s", kCluster<&ClusterConfig::wait_timeout_s>,
                   "seconds without progress after which a wait for another rank fails")
          .range(0.1, 1e6),
      FieldBuilder("cluster", "nccl", kCluster<&ClusterConfig::nccl>,
                   "true: GPUs exchange data by NCCL if each rank has its own GPU"),
  };
}

}  // namespace gpups::trainer
