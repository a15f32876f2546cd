// SPDX-License-Identifier: Apache-2.0
// The ranks of a command: this process as one of a launcher's, or threads of this process.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "gpups/group.hpp"
#include "trainer/config.hpp"

namespace gpups::tools {

class RankRunner {
 public:
  RankRunner() : launch_info_(Group::launch_info()) {}

  bool is_root() const { return number(launch_info_.rank) == 0; }
  bool processes() const { return launch_info_.ranks != 1; }

  // What comes before the group. Where there are other processes, what it throws is thrown by run() instead, when they
  // can be told.
  void prepare(std::function<void()> const& work);

  // What to call where a signal ends the process while it joins the others. Without it, signals act as elsewhere.
  // REQUIRES: a trainer::StopSignals lives while run() joins.
  void when_stopped(std::function<void()> clean_up) { clean_up_ = std::move(clean_up); }

  // Runs `body` on every rank of this process. command: what the ranks do, the same for all. broadcast_data: see
  // JoinOptions. REQUIRES: the configuration is there, unless prepare() has failed.
  void run(std::string const& command, std::optional<trainer::Config> const& config, std::string const& broadcast_data,
           std::function<void(Group const&)> const& body);

 private:
  Group join(std::string const& command, std::optional<trainer::Config> const& config,
             std::string const& broadcast_data) const;
  void throw_if_not_ready(Group const& group) const;

  LaunchInfo launch_info_;
  std::exception_ptr failure_;
  std::string why_;  // of the failure
  std::function<void()> clean_up_;
};

}  // namespace gpups::tools
