// SPDX-License-Identifier: Apache-2.0
#include "trainer/doctor/checks.hpp"

namespace gpups::trainer {
namespace {

constexpr Check kChecks[] = {
    {"versions", check_versions},
    {"cores", check_cores},
    {"shared memory", check_shared_memory},
    {"locked memory", check_locked_memory},
    {"memory access", check_memory_access},
    {"open files", check_open_files},
    {"GPUs", check_gpus},
    {"GPU driver", check_gpu_driver},
    {"GPU access", check_gpu_access},
    {"transports", check_transports},
    {"wanted devices", check_wanted_devices},
    {"launcher", check_launcher},
    {"host names", check_host_names},
    {"port", check_port},
    {"token", check_token},
    {"place", check_binding},
    {"run", check_run},
    {"room", check_room},
};

}  // namespace

std::span<Check const> checks() { return kChecks; }

Findings run_checks(Facts const& facts) {
  Findings all;
  for (Check const& check : kChecks) {
    for (Finding& finding : check.look(facts)) all.push_back(std::move(finding));
  }
  return all;
}

bool can_join(Facts const& facts) {
  for (auto const look : {check_transports, check_launcher, check_host_names, check_port, check_token}) {
    for (Finding const& finding : look(facts)) {
      if (finding.level == Finding::Level::kProblem) return false;
    }
  }
  return true;
}

}  // namespace gpups::trainer
