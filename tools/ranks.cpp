// SPDX-License-Identifier: Apache-2.0
#include "tools/ranks.hpp"

#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>

#include "kernels/base/check.hpp"
#include "tools/watchdog.hpp"

namespace gpups::tools {
namespace {

// The first character of rank 0's broadcast data if the rest is the reason why rank 0 cannot begin.
constexpr char kCannotBegin = '\1';

// A killed mpirun or srun does not end its processes. So the kernel sends this process SIGTERM when its parent ends.
void end_with_launcher() {
  if (std::getenv("PMIX_RANK") != nullptr) ::prctl(PR_SET_PDEATHSIG, SIGTERM);
}

}  // namespace

Group RankRunner::join(std::string const& command, std::optional<trainer::Config> const& config,
                       std::string const& broadcast_data) const {
  JoinOptions options;
  options.must_match.emplace_back("command", command);
  // Without a configuration, a rank has no settings to compare.
  options.must_match.emplace_back("state of the configuration", config ? "usable" : "not usable: " + why_);
  if (config) {
    for (auto& setting : trainer::common_settings(*config)) options.must_match.push_back(std::move(setting));
    options.join_timeout_s = config->cluster.join_timeout_s;
    options.peer_timeout_s = config->cluster.peer_timeout_s;
  }
  options.broadcast_data = failure_ == nullptr ? broadcast_data : kCannotBegin + why_;
  return Group::join(options);
}

void RankRunner::throw_if_not_ready(Group const& group) const {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  std::string const& broadcast = group.broadcast_data();
  GPUPS_REQUIRE(broadcast.empty() || broadcast.front() != kCannotBegin,
                "rank 0 cannot begin (all ranks need it): solve its problem: {}", broadcast.substr(1));
}

void RankRunner::prepare(std::function<void()> const& work) {
  try {
    work();
  } catch (std::exception const& error) {
    if (!processes()) throw;
    failure_ = std::current_exception();
    why_ = error.what();
  }
}

void RankRunner::run(std::string const& command, std::optional<trainer::Config> const& config,
                     std::string const& broadcast_data, std::function<void(Group const&)> const& body) {
  if (!processes()) {
    auto const ranks = static_cast<int>(config->run.ranks);
    return run_ranks(ranks == 1 ? std::vector<Group>{Group::alone()} : Group::threads(ranks), body);
  }
  GPUPS_REQUIRE(!config || config->run.ranks == 1,
                "run.ranks is {}, and {} processes were started (each process is one rank): leave run.ranks out",
                config->run.ranks, launch_info_.ranks);
  end_with_launcher();
  std::optional<Group> group;
  try {
    std::optional<StopAtJoin> stop_at_join;
    if (clean_up_) stop_at_join.emplace(clean_up_);
    group = join(command, config, broadcast_data);
  } catch (Error const&) {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    throw;
  }
  Watchdog const watchdog(*group);
  run_ranks({*group}, [&](Group const& member) {
    throw_if_not_ready(member);
    body(member);
  });
}

}  // namespace gpups::tools
