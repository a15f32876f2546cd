// SPDX-License-Identifier: Apache-2.0
// The ranks of a command: one for each process of a launcher, or threads of this process.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "gpups/group.hpp"
#include "trainer/config/config.hpp"

namespace gpups::tools {

// Runs a function on the ranks of this process.
class RankRunner {
 public:
  RankRunner() : launch_info_(Group::launch_info()) {}

  // Whether this process has rank 0.
  bool is_root() const { return number(launch_info_.rank) == 0; }
  // Whether a launcher has started several processes.
  bool processes() const { return launch_info_.ranks != 1; }

  // Runs `work` before the group exists. If there are other processes, an exception of `work` is kept and thrown by
  // run(), so that the other processes receive the reason.
  void prepare(std::function<void()> const& work);

  // Sets a function that is called if a signal ends the process while it joins the others. Without it, signals have
  // their usual effect. REQUIRES: a trainer::StopSignals exists while run() joins.
  void when_stopped(std::function<void()> clean_up) { clean_up_ = std::move(clean_up); }

  // Runs `body` on every rank of this process. command: must be the same on all ranks. broadcast_data: see JoinOptions.
  // REQUIRES: there is a configuration, unless prepare() has failed.
  void run(std::string const& command, std::optional<trainer::Config> const& config, std::string const& broadcast_data,
           std::function<void(Group const&)> const& body);

 private:
  Group join(std::string const& command, std::optional<trainer::Config> const& config,
             std::string const& broadcast_data) const;
  void throw_if_not_ready(Group const& group) const;

  LaunchInfo launch_info_;
  std::exception_ptr failure_;
  std::string why_;  // text of the failure
  std::function<void()> clean_up_;
};

}  // namespace gpups::tools
