// SPDX-License-Identifier: Apache-2.0
// The folder of a run: what it was told, what it measured, and where it can go on. docs/run_folder.md describes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace gpups::trainer {

class RunFolder {
 public:
  // Makes the folder if need be, and tries to write in it. Throws Error where that fails.
  explicit RunFolder(std::filesystem::path path);

  std::filesystem::path const& path() const { return path_; }
  std::filesystem::path checkpoint() const { return path_ / "checkpoint"; }

  // Puts config.toml in place, whole. Where that fails, what the constructor made is removed again.
  void write_config(std::string const& resolved);
  // Throws Error where metrics.jsonl is no longer the file that was opened: the folder was removed, moved or replaced.
  void require_there() const;
  // Adds a line to metrics.jsonl; it can be read at once.
  void add_metrics(nlohmann::json const& line);
  // Puts summary.json in place, whole.
  void write_summary(nlohmann::json const& summary);

 private:
  void write_whole(std::string const& name, std::string const& text);

  struct FileId {
    std::uint64_t device = 0, inode = 0;  // 0, 0: there is no file
    bool operator==(FileId const&) const = default;
  };
  FileId metrics_id() const;

  std::filesystem::path path_;
  bool made_metrics_ = false;  // metrics.jsonl
  std::ofstream metrics_;
  FileId opened_;  // which is metrics_
};

// Whether a run's folder has a checkpoint that is whole: a first save that did not end leaves none.
bool has_checkpoint(std::filesystem::path const& folder);

// Throws Error where the folder has files of a checkpoint but no manifest for them: the next save would delete them.
void refuse_checkpoint_without_manifest(std::filesystem::path const& folder);

}  // namespace gpups::trainer
