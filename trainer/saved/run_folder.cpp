// SPDX-License-Identifier: Apache-2.0
#include "trainer/saved/run_folder.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "gpups/files.hpp"
#include "kernels/base/check.hpp"
#include "trainer/base/atomic_folder.hpp"
#include "trainer/saved/run_folder_lock.hpp"

namespace gpups::trainer {

namespace fs = std::filesystem;

namespace {

// Removes the files of a checkpoint, except its manifest.
void remove_steps(fs::path const& checkpoint) {
  std::error_code ignored;  // there is no such folder; the next save removes files that stay
  for (auto const& entry : fs::directory_iterator(checkpoint, ignored)) {
    if (entry.path().filename().string().starts_with("step-")) fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

void remove_incomplete_line(fs::path const& file) {
  std::ifstream in(file, std::ios::binary);
  std::uintmax_t end = 0;  // of the last complete line
  for (std::string line; std::getline(in, line) && !in.eof();) end += line.size() + 1;
  if (end < fs::file_size(file)) fs::resize_file(file, end);
}

RunFolder::RunFolder(fs::path path) : path_(std::move(path)) {
  std::error_code error;
  fs::create_directories(path_, error);
  GPUPS_REQUIRE(!error, "the run's folder {} cannot be created ({}): choose another with run.folder", path_.string(),
                error.message());
  made_metrics_ = metrics_id() == FileId{};
  metrics_.open(path_ / "metrics.jsonl", std::ios::app);
  GPUPS_REQUIRE(metrics_.good(), "the run's folder {} cannot be written to ({}): choose another with run.folder",
                path_.string(), std::strerror(errno));
  remove_incomplete_line(path_ / "metrics.jsonl");
  opened_ = metrics_id();
}

RunFolder::FileId RunFolder::metrics_id() const {
  struct stat status {};
  if (::stat((path_ / "metrics.jsonl").c_str(), &status) != 0) return {};
  return {.device = status.st_dev, .inode = status.st_ino};
}

void RunFolder::write_config(std::string const& resolved) {
  try {
    write_file(path_ / "config.toml", kConfigMark + resolved);
  } catch (...) {
    std::error_code ignored;
    // RunFolderLock would take a metrics.jsonl without config.toml for a file of the user.
    if (made_metrics_) fs::remove(path_ / "metrics.jsonl", ignored);
    throw;
  }
}

void RunFolder::require_there() const {
  GPUPS_REQUIRE(metrics_id() == opened_,
                "the run's folder {} was removed, moved or replaced during the run (its results would be lost): "
                "start the run again, and do not change its folder until it ends",
                path_.string());
}

void RunFolder::add_metrics(nlohmann::json const& line) {
  require_there();
  metrics_ << line.dump() << std::endl;
  GPUPS_REQUIRE(metrics_.good(), "{} cannot be written ({}): free some disk space, or choose another run.folder",
                (path_ / "metrics.jsonl").string(), std::strerror(errno));
}

void RunFolder::write_summary(nlohmann::json const& summary) {
  require_there();
  write_file(path_ / "summary.json", summary.dump(2) + "\n");
}

bool RunFolder::has_result_of(std::int64_t steps) const {
  std::ifstream in(path_ / "summary.json");
  auto const summary = nlohmann::json::parse(in, nullptr, false);
  return summary.is_object() && summary.value("finished", nlohmann::json()) == true &&
         summary.value("steps", nlohmann::json()) == steps;
}

bool is_checkpoint(fs::path const& folder) { return fs::exists(folder / "manifest.json"); }

void reject_checkpoint_without_manifest(fs::path const& folder) {
  for (char const* name : {kLastCheckpoint, kBestCheckpoint}) {
    if (is_checkpoint(folder / name) || is_unfinished_checkpoint(folder / name)) continue;
    std::error_code none;  // set if there is no checkpoint folder
    for (auto const& entry : fs::directory_iterator(folder / name, none)) {
      GPUPS_REQUIRE(
          !entry.path().filename().string().starts_with("step-"),
          "{} contains files of a checkpoint, but {} has no manifest.json, which was removed (the next save would "
          "delete these files): restore the manifest, or move {} away to start a new run",
          entry.path().string(), entry.path().parent_path().string(), entry.path().string());
    }
  }
}

std::vector<fs::path> remove_unfinished_checkpoints(fs::path const& folder) {
  std::vector<fs::path> removed;
  for (char const* name : {kLastCheckpoint, kBestCheckpoint}) {
    if (!is_unfinished_checkpoint(folder / name)) continue;
    remove_steps(folder / name);
    removed.push_back(folder / name);
  }
  return removed;
}

void remove_incomplete_checkpoints(fs::path const& folder) {
  if (!has_config_mark(folder / "config.toml")) return;
  for (char const* name : {kLastCheckpoint, kBestCheckpoint}) {
    if (!is_checkpoint(folder / name)) remove_steps(folder / name);
  }
}

}  // namespace gpups::trainer
