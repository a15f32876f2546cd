// SPDX-License-Identifier: Apache-2.0
// A run before its first step.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/check.hpp"
#include "trainer/config/fields.hpp"
#include "trainer/config/task_kind.hpp"
#include "trainer/run/training.hpp"
#include "trainer/saved/saved_model.hpp"

namespace gpups::trainer {
namespace {

constexpr int kNewRunMicrobatches = 8;  // default for up to as many ranks

// Host memory takes pages only where it is used, and few pages of an array's block list and first block are used:
// kUnused bytes of an array are not counted, but at least kLeast are.
constexpr std::uint64_t kUnused = std::uint64_t{2} << 20, kLeast = std::uint64_t{64} << 10;

std::int64_t steps_in_epoch(Data const& data, Config const& config) {
  auto const samples = static_cast<std::int64_t>(data.samples());
  return (samples + config.train.batch_size - 1) / config.train.batch_size;
}

}  // namespace

Training::Training(Config const& config, Data const& data, Group const& group, TrainOptions const& options)
    : config_(with_policy(with_batch_size(config, data), group)),
      data_(data),
      group_(group),
      checkpoint_(options.folder / kLastCheckpoint),
      best_checkpoint_(options.folder / kBestCheckpoint),
      progress_(stderr, number(group.rank()) != 0),
      data_digest_(data.digest()),
      steps_per_epoch_(steps_in_epoch(data, config_)),
      end_(config.train.steps > 0 ? config.train.steps : config.train.epochs * steps_per_epoch_),
      seconds_of_process_(options.seconds_of_process) {
  total_.start();
  restore_or_begin(options, group);
  stream_.emplace(store().make_stream());
}

void Training::restore_or_begin(TrainOptions const& options, Group const& group) {
  reject_checkpoint_without_manifest(options.folder);
  std::vector<std::filesystem::path> unfinished;
  if (number(group.rank()) == 0) unfinished = remove_unfinished_checkpoints(options.folder);
  std::optional<SavedModel> const latest = latest_checkpoint(options.folder, config_.task.kinds);
  bool const exists = latest.has_value();
  GPUPS_REQUIRE(options.resume || !exists,
                "{} contains a checkpoint (a new run would replace it): resume it with --resume, or choose another "
                "folder",
                options.folder.string());
  bool const chosen = config_.train.microbatches == 0;  // not by the configuration
  state_ = {.microbatches = static_cast<std::uint32_t>(config_.train.microbatches > 0
                                                           ? config_.train.microbatches
                                                           : std::max(kNewRunMicrobatches, group.size())),
            .schedule_steps = end_,
            .data_digest = data_digest_};
  std::string lost_best;
  bool has_owners = false;  // the checkpoint has the owners that this run would have had
  if (exists) {
    require_same_run(latest->saved, config_, data_digest_, latest->checkpoint);
    state_ = latest->saved.state;
    has_owners = state_.ranks == group.size() && latest->saved.config.placement.policy == config_.placement.policy;
    if (latest->is_not_best() && !is_best_kept()) {
      lost_best = fmt::format("{} does not have the model of step {}, the best validation: the next one is kept",
                              best_checkpoint_.string(), state_.best.step);
    }
    if (!config_.train.keep_best || !lost_best.empty()) state_.best.step = 0;
  }
  state_.ranks = group.size();
  config_.train.microbatches = state_.microbatches;
  seconds_before_ = state_.train_seconds;
  patience_over_ = config_.train.patience > 0 && state_.best.validations_since >= config_.train.patience;

  Stopwatch partitioning;
  partitioning.start();
  std::shared_ptr<Placement const> const placement = data_.placement(config_, state_.microbatches);
  partitioning.stop();

  auto const say_what_was_read = [&] {
    if (options.resume && !exists) {
      progress_.print(
          fmt::format("--resume: {} has no checkpoint, so a new run begins there", options.folder.string()));
    }
    for (std::string const& notice : data_.notices()) progress_.print(notice);
    for (std::string const& notice : zero_learning_rates(config_)) progress_.print(notice);
    if (data_.has("valid") && config_.train.validate_every > 0) {
      std::int64_t const before_end = (end_ - 1) / steps_per_epoch_ / config_.train.validate_every;
      if (std::string const notice = idle_patience(config_, before_end); !notice.empty()) progress_.print(notice);
    }
    for (auto const& checkpoint : unfinished) {
      progress_.print(fmt::format("the first save to {} did not complete: its files are removed{}", checkpoint.string(),
                                  exists ? "" : ", and training begins again"));
    }
    if (!lost_best.empty()) progress_.print(lost_best);
    progress_.print(data_.summary());
    if (end_ < config_.task.kind->least_steps(config_) && config_.train.steps == 0 && state_.clock < end_) {
      progress_.print(fmt::format(
          "only {} in all, with batches of {} (a model hardly learns in so few): raise train.epochs, or lower "
          "train.batch_size{}",
          with_count(static_cast<std::uint64_t>(end_), "step"), config_.train.batch_size,
          config_.optimizer.kind == "sgd" ? " and, with it, optimizer.learning_rate" : ""));
    }
    if (placement == nullptr) return;
    progress_.print(fmt::format(
        "placement: {:.0f} % of the rows that a sample reads are in the parts of other ranks ({}, {:.1f} s)",
        100 * placement->remote_share(static_cast<std::uint32_t>(group.size())), with_count(placement->parts(), "part"),
        partitioning.seconds()));
  };
  require_precision(config_, device_from(config_.run.device, group.location().local_rank));
  session_.emplace(open_session(
      config_, data_, group,
      {.microbatches = state_.microbatches, .schedule_steps = state_.schedule_steps, .placement = placement},
      say_what_was_read));
  batches_.emplace(data_.samples(), BatchOptions{.batch_size = static_cast<std::uint32_t>(config_.train.batch_size),
                                                 .microbatches = state_.microbatches,
                                                 .seed = static_cast<std::uint64_t>(config_.train.seed),
                                                 .block_samples = data_.block(),
                                                 .shuffled = data_.is_shuffled(),
                                                 .same_batches = config_.train.reuse_batches,
                                                 .placement = placement,
                                                 .rank = store().rank(),
                                                 .ranks = static_cast<std::uint32_t>(store().ranks())});
  progress_.print(fmt::format("{} on {}, {} of {}", with_count(static_cast<std::uint64_t>(store().ranks()), "rank"),
                              to_string(store().options().device), with_count(static_cast<std::uint64_t>(end_), "step"),
                              with_count(static_cast<std::uint64_t>(config_.train.batch_size), data_.noun())));
  if (task().is_progressive() && end_ > steps_per_epoch_) {
    progress_.print("progressive validation is of the first epoch only: later ones predict samples they have seen");
  }
  if (config_.run.device == "auto" && store().options().device.is_host() && !cuda_device_error().empty()) {
    progress_.print(fmt::format("not on a GPU, because CUDA reports '{}'", cuda_device_error()));
  }
  if (!session_->gpu_interconnect.empty()) progress_.print("between GPUs: " + session_->gpu_interconnect);
  if (!exists && chosen && state_.microbatches > std::uint32_t{kNewRunMicrobatches}) {
    progress_.print(fmt::format("microbatches: {}, because there are {} ranks: tables will differ from runs with {}",
                                state_.microbatches, store().ranks(), kNewRunMicrobatches));
  }
  MemoryPlan const plan = memory_plan(store().options().device);
  progress_.print("memory:");
  for (std::string const& line : memory_text(plan, store().options().device, options.ranks_here)) {
    progress_.print(line);
  }
  require_memory(without_task(plan), store().options().device, options.ranks_here);  // a collective allocates rows
  if (exists) trainer::wait_restore(*session_, latest->checkpoint);                  // before the first collective call
  wait_check_consistency(store(), config_, data_digest_);
  if (placement != nullptr && !has_owners) wait_place_rows(store(), *placement);
  if (!group.location().cores.empty()) wait_print_locations(group);
  GPUPS_REQUIRE(!exists || number(store().clock()) == state_.clock,
                "the tables of the checkpoint in {} are of step {}, and its trainer state is of step {} (they do not "
                "match): use another checkpoint",
                latest->checkpoint.string(), number(store().clock()), state_.clock);
  if (is_root()) folder_.emplace(options.folder);  // last, so that a start that fails writes no files
  had_finished_ = exists && wait_find_finished();
  if (folder_ && !had_finished_) folder_->write_config(resolved(config_));
  if (!exists) return;
  progress_.print(state_.clock < end_ && !had_finished_ ? fmt::format("resuming from step {}", state_.clock)
                  : patience_over_ && state_.clock < end_
                      ? fmt::format("training has ended at step {}: no improvement in {} validations", state_.clock,
                                    state_.best.validations_since)
                      : fmt::format("training is already complete: step {} of {}", state_.clock, end_));
  if (had_finished_) progress_.print("results in " + options.folder.string());
}

// Returns whether the best checkpoint has the model of the best validation.
bool Training::is_best_kept() const {
  if (!is_checkpoint(best_checkpoint_)) return false;
  return from_blobs(read_blobs(best_checkpoint_), best_checkpoint_, config_.task.kinds).state.clock == state_.best.step;
}

// Returns whether no step is left and rank 0 finds the result of the run.
bool Training::wait_find_finished() {
  if (state_.clock < end_ && !patience_over_) return false;
  bool const found = folder_ && folder_->has_result_of(state_.clock);
  return !store().wait_allgather(found ? "found" : "").front().empty();
}

MemoryPlan Training::memory_plan(Device device) {
  MemoryPlan plan;
  for (MemoryPlanLine const& line : store().memory_plan()) {
    bool const on_host = device.is_host() || line.what.ends_with("on the host");
    std::uint64_t const used = std::max(line.bytes - std::min(line.bytes, kUnused), std::min(line.bytes, kLeast));
    plan.push_back({.what = line.what, .bytes = on_host ? used : line.bytes, .on_host = on_host});
  }
  add_saving(plan, task().tables(), static_cast<std::size_t>(store().ranks()));
  StepSizes const step =
      step_sizes(config_, data_.samples(), device, store().ranks(), state_.microbatches, data_.is_shuffled());
  for (PlannedMemory const& line : data_.memory_plan(config_, device, step)) plan.push_back(line);
  return plan;
}

// Prints the machine, cores and device of each rank.
void Training::wait_print_locations(Group const& group) {
  gpups::RankLocation const& mine = group.location();
  auto const places = store().wait_allgather(
      fmt::format("{}, cores {}, {}", mine.host, mine.cores, to_string(store().options().device)));
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    progress_.print(fmt::format("rank {}: {}", rank, places[rank]));
  }
}

}  // namespace gpups::trainer
