// SPDX-License-Identifier: Apache-2.0
#include "trainer/saved/trainer_state.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kernels/base/check.hpp"

namespace gpups::trainer {
namespace {

constexpr char kConfigBlob[] = "gpu_train/config.toml", kStateBlob[] = "gpu_train/cursor.json";

std::string const& blob(std::span<Blob const> blobs, std::string const& name, std::filesystem::path const& folder) {
  for (Blob const& b : blobs) {
    if (b.name == name) return b.bytes;
  }
  throw Error(fmt::format("the checkpoint in {} has no {} (gpu_train did not write it): choose another folder",
                          folder.string(), name));
}

}  // namespace

std::vector<Blob> to_blobs(Config const& config, TrainerState const& c) {
  nlohmann::json const loss = c.loss ? nlohmann::json(*c.loss) : nlohmann::json();
  // The digest has 64 bits and is written as text, because numbers in JSON are exact up to 2^53 only.
  nlohmann::json const json{{"clock", c.clock},
                            {"ranks", c.ranks},
                            {"microbatches", c.microbatches},
                            {"schedule_steps", c.schedule_steps},
                            {"data_digest", fmt::format("{:016x}", c.data_digest)},
                            {"best_step", c.best.step},
                            {"best_quality", c.best.quality},
                            {"kept_quality", c.best.kept_quality},
                            {"best_summary", c.best.summary},
                            {"best_test_text", c.best.test_text},
                            {"validations_since_best", c.best.validations_since},
                            {"validations", c.best.validations},
                            {"any_validation_differs", c.best.any_differs},
                            {"progressive", c.progressive},
                            {"train_seconds", c.train_seconds},
                            {"samples", c.samples},
                            {"loss", loss},
                            {"validation_due", c.validation_due}};
  return {{kConfigBlob, resolved(config)}, {kStateBlob, json.dump()}};
}

SavedState from_blobs(std::span<Blob const> blobs, std::filesystem::path const& folder, TaskKinds kinds) {
  SavedState saved{.config = parse_config(blob(blobs, kConfigBlob, folder), kConfigBlob, folder, {}, kinds),
                   .state = {}};
  try {
    auto const json = nlohmann::json::parse(blob(blobs, kStateBlob, folder));
    saved.state = {.clock = json.at("clock"),
                   .ranks = json.value("ranks", 0),
                   .microbatches = json.at("microbatches"),
                   .schedule_steps = json.at("schedule_steps"),
                   .data_digest = std::stoull(json.at("data_digest").get<std::string>(), nullptr, 16),
                   .best = {.quality = json.at("best_quality"),
                            .validations_since = json.at("validations_since_best"),
                            .step = json.at("best_step"),
                            .kept_quality = json.at("kept_quality"),
                            .summary = json.at("best_summary"),
                            .test_text = json.at("best_test_text"),
                            .validations = json.value("validations", std::int64_t{0}),
                            .any_differs = json.value("any_validation_differs", true)},
                   .progressive = json.value("progressive", nlohmann::json()),
                   .train_seconds = json.at("train_seconds"),
                   .samples = json.at("samples"),
                   .validation_due = json.value("validation_due", false)};
    if (json.contains("loss") && json.at("loss").is_number()) saved.state.loss = json.at("loss").get<double>();
  } catch (std::exception const& error) {
    throw Error(
        fmt::format("the trainer state of the checkpoint in {} cannot be read ({}; another version of gpu_train "
                    "may have written it): use that version, or another checkpoint",
                    folder.string(), error.what()));
  }
  return saved;
}

void require_same_run(SavedState const& saved, Config const& now, std::uint64_t data_digest,
                      std::filesystem::path const& folder) {
  auto differences = resume_differences(saved.config, now);
  if (now.train.microbatches != 0 && now.train.microbatches != saved.state.microbatches) {
    differences.push_back(
        {"train.microbatches", fmt::to_string(saved.state.microbatches), fmt::to_string(now.train.microbatches)});
  }
  if (!differences.empty()) {
    auto const& d = differences.front();
    throw Error(
        fmt::format("the checkpoint in {} was saved with {} = {}, and the configuration sets {} (the run cannot "
                    "resume with another value): use the same value, or start a new run",
                    folder.string(), d.key, d.a, d.b));
  }
  GPUPS_REQUIRE(saved.state.data_digest == data_digest,
                "the checkpoint in {} was saved with other data (digest {:016x}, now {:016x}): use the same files, or "
                "start a new run",
                folder.string(), saved.state.data_digest, data_digest);
}

}  // namespace gpups::trainer
