// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/config_consistency.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/check.hpp"
#include "trainer/config/config_constraints.hpp"
#include "trainer/tasks/task.hpp"

namespace gpups::trainer {

void require_consistent(Config const& config, std::string const& name) {
  auto const known = model_names_for(config.data.reader);
  GPUPS_REQUIRE(
      std::find(known.begin(), known.end(), config.model.name) != known.end(),
      "{}: model.name is \"{}\" and data.reader is \"{}\" (this model cannot be trained on this data): use one of "
      "{}",
      name, config.model.name, config.data.reader, fmt::join(known, ", "));
  bool const named = config.data.reader == "clicks" || config.data.reader == "ratings" ||
                     config.data.reader == "text" || config.data.reader == "edges" ||
                     config.data.reader == "interactions";
  GPUPS_REQUIRE(!named || !config.data.train.empty(),
                "{}: data.train is empty (there are no samples to train on): set it to a file", name);
  bool const is_late = config.placement.staleness > 0 || constraints::kGradientsCompressed.in(config);
  GPUPS_REQUIRE(
      config.model.name != "ials" || !is_late,
      "{}: model.name is \"ials\" with placement.staleness or [gradient_compression] (the change of a row would "
      "arrive late, when the row may have been solved again): remove them",
      name);
  bool const rows_by_ftrl =
      (constraints::has_rows(config) && config.optimizer.kind == "ftrl") || constraints::kWideProximal.in(config);
  GPUPS_REQUIRE(!rows_by_ftrl || config.optimizer.schedule == "constant",
                "{}: optimizer.schedule is \"{}\" and the optimizer of rows is \"ftrl\" (FTRL computes values in "
                "proportion to the "
                "learning rate, so rows would shrink with it): set optimizer.schedule = \"constant\"",
                name, config.optimizer.schedule);
  GPUPS_REQUIRE(!constraints::kTopKWarmsUp.in(config) || config.dense.density <= config.dense.initial_density,
                "{}: dense.density is {} and dense.initial_density is {} (during the warm-up the share falls from the "
                "second to the first): set dense.initial_density to at least dense.density, or dense.warmup_steps = 0",
                name, config.dense.density, config.dense.initial_density);
  GPUPS_REQUIRE(!config.eval.hits.empty(),
                "{}: eval.hits is empty (no quality would be reported): add a k, for example 10", name);
}

}  // namespace gpups::trainer
