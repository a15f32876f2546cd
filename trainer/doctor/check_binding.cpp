// SPDX-License-Identifier: Apache-2.0
// Checks that each rank of a machine has its own cores and GPU.
#include <fmt/format.h>

#include "trainer/base/progress_reporter.hpp"
#include "trainer/doctor/checks.hpp"

namespace gpups::trainer {

Findings check_binding(Facts const& facts) {
  if (!facts.binding) return {};
  BindingFacts const& place = *facts.binding;
  Findings found{ok(fmt::format("local rank {} of {} on this machine ({}), bound to cores {}", place.local_rank,
                                place.local_ranks, place.host, place.bound_cores))};
  if (place.cores_shared_by > 1) {
    std::string const of_all =
        facts.machine.cores < facts.machine.machine_cores
            ? fmt::format("{} of this machine's {}", facts.machine.cores,
                          with_count(static_cast<std::uint64_t>(facts.machine.machine_cores), "core"))
            : "this machine's " + with_count(static_cast<std::uint64_t>(facts.machine.cores), "core");
    found.push_back(
        warning(fmt::format("{} ranks share {} (they slow each other down): start fewer ranks on this machine, or let "
                            "the launcher give them more cores",
                            place.cores_shared_by, of_all)));
  }
  std::size_t const gpus = facts.gpu.gpus.size();
  bool const on_gpu = facts.run ? facts.run->device.starts_with("cuda") : true;
  if (on_gpu && gpus > 0 && static_cast<std::size_t>(place.local_ranks) > gpus) {
    found.push_back(
        warning(fmt::format("{} ranks share this machine's {} (they slow each other down): start one rank for each GPU",
                            place.local_ranks, with_count(gpus, "GPU"))));
  }
  return found;
}

}  // namespace gpups::trainer
