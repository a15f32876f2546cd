// SPDX-License-Identifier: Apache-2.0
// The folder of a run: what it was told, what it measured, and where it can go on. docs/run_folder.md describes it.
#pragma once

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

  void write_config(std::string const& resolved);
  // Adds a line to metrics.jsonl; it can be read at once.
  void add_metrics(nlohmann::json const& line);
  // Puts summary.json in place, whole.
  void write_summary(nlohmann::json const& summary);

 private:
  void write_whole(std::string const& name, std::string const& text);

  std::filesystem::path path_;
  std::ofstream metrics_;
};

// Whether a run's folder has a checkpoint that is whole: a first save that did not end leaves none.
bool has_checkpoint(std::filesystem::path const& folder);

}  // namespace gpups::trainer
