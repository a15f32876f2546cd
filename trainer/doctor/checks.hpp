// SPDX-License-Identifier: Apache-2.0
// The checks of the doctor (tools/doctor). A check is a function from facts to findings, and a line in checks.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/doctor/facts.hpp"

namespace gpups::trainer {

// A result of the doctor's checks.

// One line of the doctor's report.
struct Finding {
  // kProblem: a run fails. kWarning: a run is slow, or fails in some cases. kNote: what a run says about its data. kOk:
  // information.
  enum class Level { kOk, kNote, kWarning, kProblem };

  Level level = Level::kOk;
  std::string
      text{};  // kOk, kNote: a fact; else as an error message: what is wrong (why that is a problem): what to do
  bool operator==(Finding const&) const = default;
};

using Findings = std::vector<Finding>;

inline Finding ok(std::string text) { return {Finding::Level::kOk, std::move(text)}; }
inline Finding note(std::string text) { return {Finding::Level::kNote, std::move(text)}; }
inline Finding warning(std::string text) { return {Finding::Level::kWarning, std::move(text)}; }
inline Finding problem(std::string text) { return {Finding::Level::kProblem, std::move(text)}; }

// A named check.
struct Check {
  std::string_view name;
  Findings (*look)(Facts const& facts);
};

// Returns all checks, in the order of the report.
std::span<Check const> checks();
// Returns the findings of all checks, in this order.
Findings run_checks(Facts const& facts);
// Returns whether this rank can join the job: no check of transports, launcher, host names, port or token has a
// problem.
bool can_join(Facts const& facts);

// check_program.cpp
Findings check_versions(Facts const& facts);  // UCX at run time is the UCX of the build

// check_machine.cpp
Findings check_cores(Facts const& facts);          // a container's CPU limit covers its cores
Findings check_shared_memory(Facts const& facts);  // /dev/shm exists and is large enough
Findings check_locked_memory(Facts const& facts);  // the limit is high enough for RDMA
Findings check_memory_access(Facts const& facts);  // processes can read each other's memory
Findings check_open_files(Facts const& facts);     // the limit is high enough for all connections

// check_gpus.cpp
Findings check_gpus(Facts const& facts);        // the build has code for each GPU
Findings check_gpu_driver(Facts const& facts);  // the driver is as new as the toolkit of the build
Findings check_gpu_access(Facts const& facts);  // GPUs can access each other's memory

// check_transports.cpp
Findings check_transports(Facts const& facts);      // UCX has a network
Findings check_wanted_devices(Facts const& facts);  // the devices of UCX_NET_DEVICES exist

// check_rendezvous.cpp
Findings check_launcher(Facts const& facts);    // the launch environment is valid
Findings check_host_names(Facts const& facts);  // this machine and rank 0 have addresses
Findings check_port(Facts const& facts);        // rank 0 can listen at the port
Findings check_token(Facts const& facts);       // the token exists, is private and is long enough

// check_binding.cpp
Findings check_binding(Facts const& facts);  // ranks of a machine share no cores and no GPUs

// check_run.cpp
Findings check_run(Facts const& facts);   // configuration, data, device and folder can be used
Findings check_room(Facts const& facts);  // disk and GPU memory are large enough for the rows

}  // namespace gpups::trainer
