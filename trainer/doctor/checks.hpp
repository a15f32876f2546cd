// SPDX-License-Identifier: Apache-2.0
// The checks of the doctor (tools/doctor). A check is a function from facts to findings, and a line in checks.cpp.
#pragma once

#include <span>
#include <string_view>

#include "trainer/doctor/facts.hpp"
#include "trainer/doctor/finding.hpp"

namespace gpups::trainer {

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
Findings check_versions(Facts const& facts);

// check_machine.cpp
Findings check_cores(Facts const& facts);
Findings check_shared_memory(Facts const& facts);
Findings check_locked_memory(Facts const& facts);
Findings check_memory_access(Facts const& facts);
Findings check_open_files(Facts const& facts);

// check_gpus.cpp
Findings check_gpus(Facts const& facts);
Findings check_gpu_driver(Facts const& facts);
Findings check_gpu_access(Facts const& facts);

// check_transports.cpp
Findings check_transports(Facts const& facts);
Findings check_wanted_devices(Facts const& facts);

// check_rendezvous.cpp
Findings check_launcher(Facts const& facts);
Findings check_host_names(Facts const& facts);
Findings check_port(Facts const& facts);
Findings check_token(Facts const& facts);

// check_binding.cpp
Findings check_binding(Facts const& facts);

// check_run.cpp
Findings check_run(Facts const& facts);
Findings check_room(Facts const& facts);

}  // namespace gpups::trainer
