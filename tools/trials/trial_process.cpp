// SPDX-License-Identifier: Apache-2.0
#include "tools/trials/trial_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/saved/run_folder.hpp"
#include "trainer/saved/run_folder_lock.hpp"

namespace gpups::tools {
namespace {

// Returns whether an error of gpu_train is about memory, the disk or the limits of the system.
bool is_of_environment(std::string const& error) {
  for (int const reason : {ENOSPC, EDQUOT, EFBIG, EROFS, EIO, ESTALE, ENOMEM, EAGAIN, EMFILE, ENFILE}) {
    if (error.find(std::strerror(reason)) != error.npos) return true;
  }
  // Those of the memory plan, of an arena, of the progress engine and of C++.
  for (char const* words : {"out of memory", "no memory for", "bad_alloc"}) {
    if (error.find(words) != error.npos) return true;
  }
  return false;
}

// Returns whether a machine ends processes by this signal that lack memory, time or space on the disk.
bool is_of_machine(int signal) {
  return signal == SIGKILL || signal == SIGBUS || signal == SIGXCPU || signal == SIGXFSZ;
}

bool is_stop(int signal) { return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGUSR1; }

}  // namespace

void wait_free_folder(std::filesystem::path const& folder, std::filesystem::path const& config_file) {
  if (!std::filesystem::exists(folder)) return;
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    try {
      trainer::RunFolderLock const lock(folder, "", config_file);
      return trainer::remove_incomplete_checkpoints(folder);
    } catch (Error const&) {
      if (!trainer::RunFolderLock::is_locked(folder)) return;  // the run will say what is wrong
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

std::vector<std::string> settings_for_trials(std::vector<trainer::SettingOverride> const& overrides) {
  std::vector<std::string> settings;
  for (auto const& one : overrides) {
    std::string key = one.setting.substr(0, one.setting.find('='));
    std::erase(key, ' ');
    if (key != "run.folder") settings.push_back(one.setting);
  }
  return settings;
}

TrialProcess::TrialProcess(std::vector<std::string> const& arguments, std::filesystem::path const& log) : log_(log) {
  constexpr char kThisProgram[] = "/proc/self/exe";  // also after a new build has replaced the file
  std::vector<char*> words{const_cast<char*>("gpu_train")};
  for (std::string const& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  int const out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  GPUPS_REQUIRE(out >= 0, "{} cannot be written ({}; a trial's output goes there): choose another folder", log.string(),
                std::strerror(errno));
  log_begin_ = std::filesystem::file_size(log);
  pid_t const parent = getpid();
  process_ = fork();
  if (process_ == 0) {  // only calls that are allowed between fork() and exec()
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);  // a SIGINT of the terminal reaches the search only, which stops its trials
    if (getppid() == parent && dup2(out, STDOUT_FILENO) >= 0 && dup2(out, STDERR_FILENO) >= 0) {
      execv(kThisProgram, words.data());
    }
    _exit(127);
  }
  int const error = errno;
  close(out);
  GPUPS_REQUIRE(process_ > 0,
                "a trial cannot be started ({}): end other processes, and run the search again with "
                "--resume",
                std::strerror(error));
}

TrialProcess::~TrialProcess() {
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
}

std::optional<TrialEnd> TrialProcess::ended() {
  int status = 0;
  pid_t const done = waitpid(process_, &status, WNOHANG);
  if (done != process_) return std::nullopt;
  process_ = -1;
  return end_of(status);
}

void TrialProcess::stop() {
  if (process_ > 0) kill(process_, SIGTERM);
}

TrialEnd TrialProcess::end_of(int status) const {
  if (WIFSIGNALED(status)) {
    return {.error = fmt::format("ended by signal {}; see {}", WTERMSIG(status), log_.string()),
            .was_stopped = is_stop(WTERMSIG(status)),
            .of_environment = is_of_machine(WTERMSIG(status))};
  }
  if (WEXITSTATUS(status) == 0) return {};
  constexpr char kError[] = "gpu_train: error: ";
  TrialEnd end{.error = fmt::format("exit status {}; see {}", WEXITSTATUS(status), log_.string())};
  std::ifstream lines(log_);
  lines.seekg(static_cast<std::streamoff>(log_begin_));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kError)) end.error = line.substr(std::strlen(kError));
  }
  end.of_environment = is_of_environment(end.error);
  return end;
}

}  // namespace gpups::tools
