// SPDX-License-Identifier: Apache-2.0
// The validations of a run, and the model of the best one.
#include <fmt/format.h>

#include <utility>

#include "trainer/base/stop_signals.hpp"
#include "trainer/run/training.hpp"

namespace gpups::trainer {

std::optional<Metrics> Training::wait_evaluate(std::string_view split) {
  Metrics metrics = task().wait_evaluate(*stream_, store(), split);
  std::int64_t stops = StopSignals::received() ? 1 : 0;
  store().wait_allreduce({&stops, 1});
  return stops == 0 ? std::optional(std::move(metrics)) : std::nullopt;
}

// A signal ends the validation: the run stops, and begins with it when it is resumed.
void Training::wait_validate() {
  BestValidation& best = state_.best;
  std::optional<Metrics> valid = wait_evaluate("valid"), test;
  // Of equal ones the later is kept, whose model has learned more.
  bool const keeps = valid && config_.train.keep_best && (best.step == 0 || valid->quality >= best.kept_quality);
  bool const tests = keeps && data_.has("test");
  if (tests) test = wait_evaluate("test");
  state_.validation_due = !valid || (tests && !test);
  if (state_.validation_due) {
    stopped_ = true;
    return;
  }
  valid_ = std::move(valid);
  best.any_differs = best.step != 0 && (best.any_differs || valid_->quality != best.kept_quality);
  best.validations = best.step != 0 ? best.validations + 1 : 1;
  bool const better = valid_->quality > best.quality;
  best.validations_since = better ? 0 : best.validations_since + 1;
  patience_over_ = config_.train.patience > 0 && best.validations_since >= config_.train.patience;
  progress_.print(fmt::format("epoch {}: valid {}{}", state_.clock / steps_per_epoch_, valid_->text,
                              state_.loss ? fmt::format(", loss {:.4f}", *state_.loss) : ""));
  if (patience_over_)
    progress_.print(fmt::format("no improvement in {} validations: training ends", config_.train.patience));
  if (folder_) folder_->add_metrics({{"step", state_.clock}, {"valid", valid_->json}});
  if (better) best.quality = valid_->quality;
  if (keeps) wait_keep_best(test);
}

// Keeps the model of the best validation so far. test: its metrics, if there is a test split.
void Training::wait_keep_best(std::optional<Metrics> const& test) {
  BestValidation& best = state_.best;
  best.step = state_.clock;
  best.kept_quality = valid_->quality;
  best.summary = {{"step", state_.clock},
                  {"epoch", static_cast<double>(state_.clock) / static_cast<double>(steps_per_epoch_)},
                  {"valid", valid_->json},
                  {"table_hash", fmt::format("{:016x}", store().table_hash())}};
  if (test) {
    best.summary["test"] = test->json;
    best.test_text = test->text;
  }
  if (state_.clock < end_) wait_save(best_checkpoint_);  // after the last step, the last checkpoint has the same rows
}

// Says so if all validations were equal, so that none of them was the best.
void Training::say_if_none_is_best() {
  BestValidation const& best = state_.best;
  if (best.step == 0 || !valid_ || best.validations < 2 || best.any_differs) return;
  progress_.print(
      fmt::format("all {} validations have the same metric, {}: it chose no model, and the result is that of the last "
                  "one; a validation split with more samples may tell models apart",
                  best.validations, valid_->text));
}

// Reports the progressive validation of the first epoch, or of its steps since a resume.
void Training::wait_progressive() {
  auto const metrics = task().wait_progressive(store());
  if (!metrics) return;
  state_.progressive = metrics->json;
  progress_.print("epoch 1: progressive " + metrics->text);
  if (folder_) folder_->add_metrics({{"step", state_.clock}, {"progressive", metrics->json}});
}

}  // namespace gpups::trainer
