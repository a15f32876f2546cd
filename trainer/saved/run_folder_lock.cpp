// SPDX-License-Identifier: Apache-2.0
#include "trainer/saved/run_folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>

#include "kernels/base/check.hpp"
#include "trainer/saved/run_folder.hpp"

namespace gpups::trainer {
namespace {

namespace fs = std::filesystem;

bool there(fs::path const& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

void require_ours(fs::path const& folder, fs::path const& config_file) {
  fs::path const config = folder / "config.toml";
  bool const checkpoint = there(folder / kLastCheckpoint) || there(folder / kBestCheckpoint);
  std::error_code error;
  if (there(config)) {
    GPUPS_REQUIRE(checkpoint || !fs::equivalent(config, config_file, error),
                  "the run would write its configuration to {} (it would replace your file): choose another folder "
                  "with --run",
                  config.string());
    GPUPS_REQUIRE(has_config_mark(config),
                  "{} was not written by gpu_train (the run would replace it): move it away, or choose "
                  "another folder with --run",
                  config.string());
    return;
  }
  for (char const* name : {"metrics.jsonl", "summary.json"}) {
    // A run that was killed before it wrote its configuration leaves an empty file, in which nothing can be lost.
    bool const is_empty = fs::is_regular_file(folder / name, error) && fs::file_size(folder / name, error) == 0;
    GPUPS_REQUIRE(
        checkpoint || is_empty || !there(folder / name),
        "{} does not belong to a run of gpu_train, because there is no config.toml beside it (the run would change "
        "it): choose another folder with --run",
        (folder / name).string());
  }
}

}  // namespace

bool has_config_mark(fs::path const& file) {
  std::string text(sizeof kConfigMark - 1, '\0');
  std::ifstream in(file, std::ios::binary);
  return in.read(text.data(), static_cast<std::streamsize>(text.size())) && text == kConfigMark;
}

RunFolderLock::RunFolderLock(fs::path const& folder, std::string const& name, fs::path const& config_file) {
  try {
    folder.empty() ? make_new(name) : make(folder);
    lock();
    require_ours(path_, config_file);
  } catch (...) {
    release();
    throw;
  }
}

RunFolderLock::~RunFolderLock() { release(); }

void RunFolderLock::make(fs::path const& folder) {
  path_ = folder;
  fs::path part;
  for (fs::path const& name : fs::absolute(folder)) {
    part /= name;
    std::error_code error, unknown;
    if (fs::create_directory(part, error)) made_.push_back(part);
    GPUPS_REQUIRE(!error || fs::is_directory(part, unknown),
                  "the run's folder {} cannot be created ({}): choose another with --run", folder.string(),
                  error.message());
  }
}

void RunFolderLock::make_new(std::string const& name) {
  std::time_t const now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char time[32];
  std::strftime(time, sizeof time, "%Y%m%d-%H%M%S", &parts);
  make("runs");
  std::size_t const before = made_.size();
  for (int copy = 1; made_.size() == before; ++copy) {  // until make() has created a folder
    make(fs::path("runs") / fmt::format("{}-{}{}", name, time, copy == 1 ? "" : fmt::format("-{}", copy)));
  }
}

void RunFolderLock::lock() {
  lock_ = ::open((path_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  GPUPS_REQUIRE(lock_ >= 0, "the run's folder {} cannot be written to ({}): choose another with --run", path_.string(),
                std::strerror(errno));
  // Other errors are ignored: the file system has no locks, and the user must not use one folder for two runs.
  bool const taken = ::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  struct stat now {};
  bool const removed = ::fstat(lock_, &now) == 0 && now.st_nlink == 0;  // by the former holder of the lock
  ours_ = !taken && !removed && now.st_size == 0;
  GPUPS_REQUIRE(
      !taken && !removed,
      "the folder {} is in use by another gpu_train (two runs, or two processes with rank 0, would mix their files): "
      "wait for the other run, choose another folder with --run, or give each process its own RANK",
      path_.string());
}

bool RunFolderLock::is_locked(fs::path const& folder) {
  std::error_code ignored;
  return fs::exists(folder / "lock", ignored);
}

void RunFolderLock::release() {
  std::error_code ignored;
  if (ours_) fs::remove(path_ / "lock", ignored);
  if (lock_ >= 0) ::close(lock_);
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder)
    fs::remove(*folder, ignored);  // fails if not empty
}

}  // namespace gpups::trainer
