// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/training.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/base/stop_signals.hpp"
#include "trainer/config/fields.hpp"
#include "trainer/step/pipeline.hpp"
#include "trainer/step/step_runner.hpp"

namespace gpups::trainer {
namespace {

constexpr std::uint32_t kStop = 1;  // a bit of Store::signals()
// The largest number of ranks for which metrics.jsonl lists the traffic of each pair, because the list grows with the
// square of the number of ranks.
constexpr int kPairsRanksMax = 16;

}  // namespace

void Training::wait_train() {
  StepRunner stepper(store(), task(), stages_);
  first_step_ = step_reported_ = number(store().clock());
  bool const has_steps = first_step_ < end_ && !patience_over_;  // otherwise a trace stays as it is
  if (config_.placement.trace_steps > 0 && has_steps) {
    trace_.emplace(checkpoint_.parent_path() / "placement_trace", store().rank(),
                   describe_trace(store(), task().tables().size(), config_), config_.placement.trace_steps);
  }
  // The model of the best validation is in the last checkpoint only, which the next save will replace.
  if (has_steps && state_.best.step != 0 && !is_best_kept()) wait_save(best_checkpoint_);
  if (number(store().clock()) < end_) store().synchronize(Clock{end_ - 1});  // no gradient waits at the end
  if (has_steps && state_.validation_due && data_.has("valid")) wait_validate();
  watch_.start();
  for (bool on = !stopped_; on && number(store().clock()) < end_;) on = wait_train_until(stepper, next_break());
  store().wait_applied();
  watch_.stop();
  if (trace_) trace_->finish();
  say_if_diverged();
}

void Training::say_if_diverged() {
  // A model that is solved for, without steps of an optimizer, has losses of its users and of its items in turn.
  if (!is_used(config_, "optimizer.learning_rate")) return;
  if (first_loss_ <= 0 || !state_.loss || *state_.loss < 2 * first_loss_) return;
  progress_.print(
      fmt::format("the loss is {:.4g}, and was {:.4g} in the first step (the model diverged): lower "
                  "optimizer.learning_rate",
                  *state_.loss, first_loss_));
}

// Returns the next step at which no batch may be prepared: the end, or the end of an epoch if rows expire.
Clock Training::next_break() const {
  if (config_.train.expire_after == 0) return Clock{end_};
  std::int64_t const epoch = number(store().clock()) / steps_per_epoch_;
  return Clock{std::min(end_, (epoch + 1) * steps_per_epoch_)};
}

namespace {

bool compresses_rows(Config const& config) {
  return compresses(config.gradient_compression) || compresses(config.refresh_compression);
}

}  // namespace

// With lossy compression, results depend on the owners of rows, and these on when batches are announced.
std::size_t Training::prepared_min() const {
  auto const ahead = static_cast<std::size_t>(store().options().placement_window) + 2;
  bool const needed = compresses_rows(config_) && store().options().placement != PlacementPolicy::kStatic;
  auto const lookahead = static_cast<std::size_t>(lookahead_steps(config_, store().ranks()));
  return needed ? std::min(ahead, lookahead) : 1;
}

void Training::say_if_late(RowReport const& rows) {
  if (rows.late_batches == 0 || !compresses_rows(config_)) return;
  progress_.print(fmt::format(
      "{} announced too late for the placement policy (another run may have other owners, and with lossy compression "
      "other bits): set train.lookahead to 3 or more, or placement.policy to \"static\"",
      with_count(rows.late_batches, "batch was", "batches were")));
}

bool Training::wait_train_until(StepRunner& stepper, Clock end) {
  Pipeline pipeline(store(), task(), *batches_, stages_,
                    {.begin = store().clock(),
                     .end = end,
                     .lookahead = static_cast<std::size_t>(lookahead_steps(config_, store().ranks())),
                     .prepared_min = prepared_min(),
                     .prefetch_thread = config_.train.prefetch_thread,
                     .reuse_batches = config_.train.reuse_batches,
                     .trace = trace_ ? &*trace_ : nullptr});
  while (auto step = pipeline.next()) {
    stepper.wait_ready(*step);
    stopped_ = (store().signals() & kStop) != 0;  // the same on all ranks
    if (stopped_ || patience_over_) return false;
    Clock const clock = step->clock;
    task().wait_before_step(*stream_, store(), clock);
    std::size_t const samples = step->samples;
    std::int64_t const loss = stepper.run(std::move(*step), StopSignals::received() ? kStop : 0);
    after_step(clock + 1, loss, samples);
    if (stopped_) return false;
  }
  return true;
}

void Training::after_step(Clock done, std::int64_t loss, std::size_t samples) {
  std::int64_t const steps = number(done);
  state_.clock = steps;
  since_report_.loss += loss;
  since_report_.samples += static_cast<std::int64_t>(samples);
  if (steps == 1) first_loss_ = since_report_.loss_mean();
  bool const last = steps == end_, epoch_ended = steps % steps_per_epoch_ == 0;
  if (steps % config_.run.report_every == 0 || epoch_ended || last) wait_report();
  double const pace = watch_.seconds() / static_cast<double>(std::max<std::int64_t>(steps - first_step_, 1));
  SpeedUnit const unit = data_.speed_unit();
  progress_.update({.step = steps,
                    .steps = end_,
                    .epoch = static_cast<double>(steps) / static_cast<double>(steps_per_epoch_),
                    .speed = static_cast<double>(config_.train.batch_size) * unit.per_sample / std::max(pace, 1e-9),
                    .speed_unit = unit.name,
                    .loss = state_.loss,
                    .seconds_left = pace * static_cast<double>(end_ - steps)},
                   watch_.seconds());
  if (epoch_ended) wait_expire();
  if (!epoch_ended || last) return;

  std::int64_t const epoch = steps / steps_per_epoch_;
  auto const due = [epoch](std::int64_t every) { return every > 0 && epoch % every == 0; };
  bool const validate = due(config_.train.validate_every) && data_.has("valid"),
             save = due(config_.train.checkpoint_every);
  bool const progressive = task().is_progressive() && epoch == 1;
  if (!validate && !save && !progressive) return;
  store().wait_applied();
  watch_.stop();
  if (progressive) wait_progressive();
  if (validate) wait_validate();
  if (save && state_.best.step != steps) wait_save(checkpoint_);  // else the best checkpoint has the step
  watch_.start();
}

void Training::wait_report() {
  since_report_.seconds = watch_.seconds() - seconds_reported_;
  seconds_reported_ = watch_.seconds();
  step_reported_ = state_.clock;
  Stats const stats = store().stats();
  Totals const totals = wait_totals(store(), since_report_, stats);
  since_report_ = {};
  state_.loss = totals.interval.loss_mean();
  state_.samples += totals.interval.samples;
  nlohmann::json const pairs = store().ranks() <= kPairsRanksMax ? wait_pairs(store(), stats) : nlohmann::json();
  if (!folder_) return;
  nlohmann::json line{{"step", state_.clock},
                      {"epoch", static_cast<double>(state_.clock) / static_cast<double>(steps_per_epoch_)},
                      {"loss", *state_.loss},
                      {"train_seconds", seconds_before_ + watch_.seconds()}};
  line.update(speeds(totals.interval.samples_per_s()));
  line.update(accounts_of(stats, totals));
  if (!pairs.is_null()) line["pairs"] = pairs;
  folder_->add_metrics(line);
}

void Training::wait_expire() {
  if (config_.train.expire_after == 0) return;
  store().wait_applied();
  std::size_t forgotten = 0;
  for (std::uint32_t t = 0; t < task().tables().size(); ++t) {
    forgotten += store().expire(TableId{t}, config_.train.expire_after);
  }
  if (folder_) folder_->add_metrics({{"step", state_.clock}, {"rows_forgotten", forgotten}});
}

void Training::wait_save(std::filesystem::path const& checkpoint) {
  if (folder_) folder_->require_there();  // saving would create the folder again
  state_.train_seconds = seconds_before_ + watch_.seconds();
  std::vector<Blob> blobs = to_blobs(config_, state_);
  for (Blob& blob : task().wait_save(*stream_)) blobs.push_back(std::move(blob));
  store().save(checkpoint, blobs);
}

nlohmann::json Training::speeds(double samples_per_s) const {
  SpeedUnit const unit = data_.speed_unit();
  nlohmann::json found{{"samples_per_s", samples_per_s}};
  found[fmt::format("{}_per_s", unit.name)] = samples_per_s * unit.per_sample;
  return found;
}

nlohmann::json Training::accounts_of(Stats const& mine, Totals const& totals) {
  nlohmann::json accounts = to_json(totals.traffic_report);
  accounts.update(to_json(totals.row_report));
  accounts.update({{"stage_seconds", to_json(stages_)},
                   {"round_seconds", to_json(mine.round)},
                   {"wait_seconds", mine.wait_seconds},
                   {"ranks_per_host", store().ranks_per_host()},
                   {"peak_memory", peak_memory(store().options().device)}});
  return accounts;
}

void require_memory_for(Config const& given, Data const& data, Group const& group, int ranks_here) {
  Config const config = with_policy(with_batch_size(given, data), group);
  Device const device = device_from(config.run.device, group.location().local_rank);
  StepSizes const step = step_sizes(config, data.samples(), device, group.size(), 0, data.is_shuffled());
  require_memory(data.memory_plan(config, device, step), device, ranks_here);
}

bool train(Config const& config, Data const& data, Group const& group, TrainOptions const& options) {
  Training training(config, data, group, options);
  if (training.had_finished()) return true;
  try {
    training.wait_train();
  } catch (GradientError const& error) {
    throw GradientError(training.explain(error.what()));
  }
  return training.wait_finish();
}

}  // namespace gpups::trainer
