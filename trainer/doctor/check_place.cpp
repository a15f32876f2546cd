// SPDX-License-Identifier: Apache-2.0
// Do the ranks of a machine have something each?
#include <fmt/format.h>

#include "trainer/doctor/checks.hpp"
#include "trainer/progress.hpp"

namespace gpups::trainer {

Findings check_place(Facts const& facts) {
  if (!facts.place) return {};
  PlaceFacts const& place = *facts.place;
  Findings found{ok(fmt::format("it is rank {} of the {} on {}, and bound to cores {}", place.local_rank,
                                place.local_ranks, place.host, place.bound_cores))};
  if (place.local_ranks > facts.machine.cores) {
    found.push_back(warning(
        fmt::format("{} ranks on {} have {} (each waits while others work): start fewer there, or let "
                    "the launcher give them more",
                    place.local_ranks, place.host, counted(static_cast<std::uint64_t>(facts.machine.cores), "core"))));
  }
  std::size_t const gpus = facts.gpu.gpus.size();
  bool const on_gpu = facts.run ? facts.run->device.starts_with("cuda") : true;
  if (on_gpu && gpus > 0 && static_cast<std::size_t>(place.local_ranks) > gpus) {
    found.push_back(
        warning(fmt::format("{} ranks on {} share {} (each waits while others work): start one for each GPU",
                            place.local_ranks, place.host, counted(gpus, "GPU"))));
  }
  return found;
}

}  // namespace gpups::trainer
