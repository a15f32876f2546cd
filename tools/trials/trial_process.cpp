// SPDX-License-Identifier: Apache-2.0
#include "tools/trials/trial_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <utility>

#include "kernels/check.hpp"

namespace gpups::tools {

TrialProcess::TrialProcess(std::vector<std::string> const& arguments, std::filesystem::path const& log) : log_(log) {
  std::string const program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (std::string const& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  int const out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  GPUPS_REQUIRE(out >= 0, "{} cannot be written ({}; a trial's output goes there): choose another folder", log.string(),
                std::strerror(errno));
  pid_t const parent = getpid();
  process_ = fork();
  if (process_ == 0) {  // only calls that are allowed between fork() and exec()
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);  // a SIGINT of the terminal reaches the search only, which stops its trials
    if (getppid() == parent && dup2(out, STDOUT_FILENO) >= 0 && dup2(out, STDERR_FILENO) >= 0) {
      execv(program.c_str(), words.data());
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

std::optional<std::string> TrialProcess::ended() {
  int status = 0;
  pid_t const done = waitpid(process_, &status, WNOHANG);
  if (done != process_) return std::nullopt;
  process_ = -1;
  return why(status);
}

void TrialProcess::stop() {
  if (process_ > 0) kill(process_, SIGTERM);
}

std::string TrialProcess::why(int status) const {
  if (WIFSIGNALED(status)) return fmt::format("ended by signal {}; see {}", WTERMSIG(status), log_.string());
  if (WEXITSTATUS(status) == 0) return "";
  constexpr char kError[] = "gpu_train: error: ";
  std::string last = fmt::format("exit status {}; see {}", WEXITSTATUS(status), log_.string());
  std::ifstream lines(log_);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kError)) last = line.substr(std::strlen(kError));
  }
  return last;
}

}  // namespace gpups::tools
