// SPDX-License-Identifier: Apache-2.0
// The folder of a run: its configuration, metrics and checkpoint. docs/run_folder.md describes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gpups::trainer {

// Writes the files of a run's folder. Only rank 0 has one. A write that fails throws Error.
class RunFolder {
 public:
  // Creates the folder if it does not exist, and opens metrics.jsonl in it. Throws Error if that fails.
  explicit RunFolder(std::filesystem::path path);

  std::filesystem::path const& path() const { return path_; }

  // Writes config.toml atomically. If that fails, removes the metrics.jsonl that the constructor created.
  void write_config(std::string const& resolved);
  // Throws Error if metrics.jsonl is not the file that was opened: the folder was removed, moved or replaced.
  void require_there() const;
  // Appends a line to metrics.jsonl and flushes it.
  void add_metrics(nlohmann::json const& line);
  // Writes summary.json atomically.
  void write_summary(nlohmann::json const& summary);
  // Returns whether summary.json is that of a run which finished after `steps` steps.
  bool has_result_of(std::int64_t steps) const;

 private:
  struct FileId {
    std::uint64_t device = 0, inode = 0;  // 0, 0: no file
    bool operator==(FileId const&) const = default;
  };
  FileId metrics_id() const;

  std::filesystem::path path_;
  bool made_metrics_ = false;  // metrics.jsonl did not exist before
  std::ofstream metrics_;
  FileId opened_;  // of metrics_
};

// The names of the two checkpoints in a run's folder.
inline constexpr char kLastCheckpoint[] = "checkpoint";
inline constexpr char kBestCheckpoint[] = "best";  // of the best validation, with train.keep_best

// Returns whether `folder` is a complete checkpoint. An interrupted first save leaves none.
bool is_checkpoint(std::filesystem::path const& folder);

// Throws Error if a run's folder has files of a checkpoint whose manifest was removed, because the next save would
// delete them.
void reject_checkpoint_without_manifest(std::filesystem::path const& folder);
// Removes the files of first saves that did not complete. Returns the folders of these checkpoints. REQUIRES: the
// folder is locked.
std::vector<std::filesystem::path> remove_unfinished_checkpoints(std::filesystem::path const& folder);
// Removes all files of checkpoints without a manifest. REQUIRES: the folder is locked.
void remove_incomplete_checkpoints(std::filesystem::path const& folder);

// Removes the end of a line that a process could not write whole, because it was killed or the disk was full.
void remove_incomplete_line(std::filesystem::path const& file);

}  // namespace gpups::trainer
