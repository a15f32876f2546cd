// SPDX-License-Identifier: Apache-2.0
#include "trainer/run_folder.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "kernels/check.hpp"
#include "trainer/folder_claim.hpp"

namespace gpups::trainer {

namespace fs = std::filesystem;

RunFolder::RunFolder(fs::path path) : path_(std::move(path)) {
  std::error_code error;
  fs::create_directories(path_, error);
  GPUPS_REQUIRE(!error, "the run's folder {} cannot be made ({}): choose another with run.folder", path_.string(),
                error.message());
  metrics_.open(path_ / "metrics.jsonl", std::ios::app);
  GPUPS_REQUIRE(metrics_.good(), "the run's folder {} cannot be written to ({}): choose another with run.folder",
                path_.string(), std::strerror(errno));
}

void RunFolder::write_config(std::string const& resolved) { write_whole("config.toml", kConfigMark + resolved); }

void RunFolder::add_metrics(nlohmann::json const& line) {
  metrics_ << line.dump() << std::endl;
  GPUPS_REQUIRE(metrics_.good(), "{} cannot be written ({}): make room, or choose another run.folder",
                (path_ / "metrics.jsonl").string(), std::strerror(errno));
}

void RunFolder::write_summary(nlohmann::json const& summary) { write_whole("summary.json", summary.dump(2) + "\n"); }

void RunFolder::write_whole(std::string const& name, std::string const& text) {
  fs::path const file = path_ / name, beside = path_ / (name + ".new");
  std::ofstream out(beside, std::ios::binary);
  out << text;
  out.close();
  std::error_code error;
  if (out.good()) fs::rename(beside, file, error);
  GPUPS_REQUIRE(out.good() && !error, "{} cannot be written ({}): make room, or choose another run.folder",
                file.string(), error ? error.message() : std::strerror(errno));
}

bool has_checkpoint(fs::path const& folder) { return fs::exists(folder / "checkpoint" / "manifest.json"); }

}  // namespace gpups::trainer
