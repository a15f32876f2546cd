// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "trainer/report/axis.hpp"
#include "trainer/report/page_section.hpp"
#include "trainer/report/svg.hpp"

namespace gpups::trainer::report {
namespace {

std::string state_sentence(RunRecord const& run) {
  double const reported = run.reports.back().at("step").get<double>();
  double const steps = run.summary.is_object() ? run.summary.at("steps").get<double>() : reported;
  double const epochs = run.reports.back().value("epoch", 0.0) * steps / std::max(reported, 1.0);
  std::string const done = fmt::format("{} steps ({:.3g} epochs)", count_text(steps), epochs);
  if (run.summary.is_object()) {
    return run.summary.value("finished", true) ? fmt::format("The run has finished after {}.", done)
                                               : fmt::format("A signal ended the run after {}.", done);
  }
  return run.locked
             ? fmt::format("The run is in progress, or it was killed: its folder has a lock. It has reported {}.", done)
             : fmt::format("The run was interrupted, or it failed: it has no summary of its end. It has reported {}.",
                           done);
}

std::string what_sentence(RunRecord const& run) {
  auto const& config = run.config;
  auto const& data = config.data;
  std::string const files = data.folder.empty() ? data.train : data.folder;
  auto const ranks = run.ranks();
  return fmt::format(
      "It trains the model {} with rows of {} numbers and {} on {}, on {}, with placement.policy {}{}.",
      config.model.name, config.model.dim, config.optimizer.kind, files,
      ranks == 1 ? "1 rank" : fmt::format("{} ranks", ranks), config.placement.policy,
      config.placement.staleness > 0 ? fmt::format(" and placement.staleness {}", config.placement.staleness) : "");
}

// Returns "mrr 0.1235, hits@10 0.3" of the metrics that are no counts.
std::string metrics_text(nlohmann::json const& metrics) {
  std::string text;
  for (auto const& [name, value] : metrics.items()) {
    if (!value.is_number_float()) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, number_text(value.get<double>()));
  }
  return text;
}

std::string quality_sentence(RunRecord const& run) {
  std::string text =
      fmt::format("The loss is {} at the end.", number_text(run.reports.back().at("loss").get<double>()));
  auto valid = run.validations.empty() ? nlohmann::json() : run.validations.back().at("valid");
  if (run.summary.contains("valid")) valid = run.summary.at("valid");
  if (run.summary.contains("best")) {
    auto const& best = run.summary.at("best");
    valid = best.at("valid");
    text += fmt::format(" The result is the model of the best validation, at step {}.",
                        count_text(best.at("step").get<double>()));
  }
  if (valid.is_object()) text += fmt::format(" Metrics of the valid split: {}.", metrics_text(valid));
  if (run.summary.contains("test")) {
    text += fmt::format(" Metrics of the test split: {}.", metrics_text(run.summary.at("test")));
  }
  return text;
}

std::string traffic_sentence(RunView const& view) {
  if (view.run.ranks() == 1) return "There is one rank, so nothing is sent.";
  auto const& total = view.total;
  double all = 0;
  for (auto const& kind : kTrafficKinds) all += total.of(fmt::format("sent.{}", kind.key));
  double const moves = total.of("sent.moves");
  std::string text = fmt::format("Ranks sent {}.", bytes_text(all));
  if (moves > 0) {
    text += fmt::format(" Of these, {} ({}) are {} moves of rows.", bytes_text(moves), percent_text(moves, all),
                        count_text(total.of("moved_rows")));
  }
  if (double const leased = total.of("leased_keys"); leased > 0) {
    text +=
        fmt::format(" {} of the rows that batches use were read from copies of up to {} steps on average.",
                    percent_text(leased, total.of("distinct_keys")), number_text(total.of("leased_steps") / leased));
  }
  auto const estimate = estimate_of(total);
  bool const differs = moves > 0 || total.of("remote_keys") != total.of("remote_home_keys");
  if (!estimate || !differs) return text;
  double const at_homes = estimate->at_homes(total), sent = HomeEstimate::sent(total);
  return text + fmt::format(
                    " With static placement at their homes{}, the rows of the same batches would have taken about {}, "
                    "intents not counted. They took {}, of which {} are intents: {} {}.",
                    total.of("leased_keys") > 0 ? " and without staleness" : "", bytes_text(at_homes), bytes_text(sent),
                    bytes_text(total.of("sent.intents")), percent_text(std::abs(at_homes - sent), at_homes),
                    sent <= at_homes ? "less" : "more");
}

}  // namespace

std::string overview(RunView const& view) {
  std::string html;
  for (std::string const& sentence :
       {state_sentence(view.run) + " " + what_sentence(view.run), quality_sentence(view.run), traffic_sentence(view)}) {
    html += fmt::format("<p>{}</p>\n", escape(sentence));
  }
  return html;
}

}  // namespace gpups::trainer::report
