// SPDX-License-Identifier: Apache-2.0
// The keys of training, of evaluation, and of where both run.
#include "trainer/config_make.hpp"
#include "trainer/config_uses.hpp"

namespace gpups::trainer {
namespace {

template <auto Member>
constexpr Read kTrain = at<&Config::train, Member>;
template <auto Member>
constexpr Read kEval = at<&Config::eval, Member>;
template <auto Member>
constexpr Read kRun = at<&Config::run, Member>;
template <auto Member>
constexpr Read kCluster = at<&Config::cluster, Member>;

}  // namespace

std::vector<Field> train_fields() {
  using namespace uses;
  using T = TrainConfig;
  return {
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
  };
}

std::vector<Field> eval_fields() {
  using namespace uses;
  return {
      Make("eval", "samples_max", kEval<&EvalConfig::samples_max>, "triples to rank; 0: all")
          .range(0, kMost32)
          .with(kGraphs),
      Make("eval", "sample", kEval<&EvalConfig::sample>, "spread: evenly over the split; first: its first triples")
          .one_of({"spread", "first"})
          .with(kSampled),
      Make("eval", "hits", kEval<&EvalConfig::hits>, "the k of Hits@k").range(1, kMost32).with(kGraphs),
      Make("eval", "progressive", kEval<&EvalConfig::progressive>, "metrics of samples before they are learnt from")
          .with(kClicks),
  };
}

std::vector<Field> run_fields() {
  using namespace uses;
  return {
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
  };
}

std::vector<Field> cluster_fields() {
  using namespace uses;
  return {
      Make("cluster", "join_timeout_s", kCluster<&ClusterConfig::join_timeout_s>, "until all processes have come")
          .range(0.1, 1e6),
      Make("cluster", "peer_timeout_s", kCluster<&ClusterConfig::peer_timeout_s>,
           "how long a process may be silent before it is taken for lost")
          .range(0.1, 1e6),
      Make("cluster", "wait_timeout_s", kCluster<&ClusterConfig::wait_timeout_s>,
           "how long one that is there may let others wait")
          .range(0.1, 1e6),
      Make("cluster", "nccl", kCluster<&ClusterConfig::nccl>, "by NCCL between GPUs, if each rank has one of its own"),
  };
}

}  // namespace gpups::trainer
