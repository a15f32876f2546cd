// SPDX-License-Identifier: Apache-2.0
// Sections about what ranks send.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/base/check.hpp"
#include "trainer/report/page_section.hpp"
#include "trainer/report/plots.hpp"
#include "trainer/report/svg.hpp"

namespace gpups::trainer::report {
namespace {

std::string sent(TrafficKindStyle const& kind) { return fmt::format("sent.{}", kind.key); }

// Returns a plot of one counter per step.
std::string counter_plot(RunView const& view, std::string const& heading, std::string const& counter,
                         std::string const& things, std::size_t series) {
  StackPlot plot{.label = heading, .parts = {{things, color(series)}}, .columns = {}};
  double most = 0;
  for (auto const& interval : view.intervals) {
    plot.columns.push_back({interval.first, interval.last, {interval.per_step(counter)}});
    most = std::max(most, interval.per_step(counter));
  }
  plot.unit = count_unit(most, things + " per step");
  plot.legend = false;
  return figure(heading, stack_plot(plot));
}

std::string bytes_plot(RunView const& view) {
  StackPlot plot{.label = "Bytes per step by kind", .parts = {}, .columns = {}, .text = bytes_text};
  double most = 0;
  for (auto const& interval : view.intervals) {
    auto& column = plot.columns.emplace_back(StackColumn{interval.first, interval.last, {}});
    double all = 0;
    for (auto const& kind : kTrafficKinds) {
      if (!kind.of_steps || view.total.of(sent(kind)) == 0) continue;
      column.values.push_back(interval.per_step(sent(kind)));
      all += column.values.back();
    }
    most = std::max(most, all);
  }
  for (auto const& kind : kTrafficKinds) {
    if (kind.of_steps && view.total.of(sent(kind)) > 0) plot.parts.push_back({kind.name, color(kind.color)});
  }
  plot.unit = byte_unit(most);
  plot.unit.name += " per step";
  return figure("Bytes per step, by kind", stack_plot(plot));
}

// Returns what a plot of bytes per step leaves out.
std::string lookups_sentence(RunView const& view) {
  double const bytes = view.total.of("sent.lookups");
  if (bytes == 0) return "";
  return fmt::format("<p>Look-ups between steps, mostly for validation, took {} in all and are not in the plot.</p>\n",
                     bytes_text(bytes));
}

std::string moved_rows(RunView const& view) {
  char const* const heading = "Moved rows per step";
  if (view.total.of("moved_rows") > 0) return counter_plot(view, heading, "moved_rows", "rows", 2);
  return no_plot(heading, view.rows_move() ? "The policy moved no row." : "No row moves: placement.policy is static.");
}

std::string late_keys(RunView const& view) {
  char const* const heading = "Late keys per step";
  if (view.total.of("late_keys") > 0) return counter_plot(view, heading, "late_keys", "keys", 4);
  return no_plot(heading, "No key was late: all batches were prepared in time.");
}

// Returns the bytes of a kind, or of all kinds if `key` is empty, of each pair of ranks.
std::vector<std::vector<double>> bytes_of_pairs(nlohmann::json const& pairs, std::size_t ranks,
                                                std::string const& key) {
  std::vector<std::vector<double>> bytes(ranks, std::vector<double>(ranks, 0));
  for (auto const& pair : pairs) {
    auto const from = pair.at("from").get<std::size_t>(), to = pair.at("to").get<std::size_t>();
    GPUPS_REQUIRE(from < ranks && to < ranks,
                  "the pairs of the run have rank {} of {} ranks (there is no such rank): restore the files that "
                  "gpu_train wrote",
                  std::max(from, to), ranks);
    double& cell = bytes[from][to];
    for (auto const& [kind, number] : pair.at("bytes").items()) {
      if (key.empty() || kind == key) cell += number.get<double>();
    }
  }
  return bytes;
}

bool was_sent(nlohmann::json const& pairs, TrafficKindStyle const& kind) {
  return std::any_of(pairs.begin(), pairs.end(), [&](auto const& pair) { return pair.at("bytes").contains(kind.key); });
}

std::string heat_maps(nlohmann::json const& pairs, std::vector<std::size_t> const& hosts, std::size_t ranks) {
  std::vector<std::size_t> borders;
  for (std::size_t rank = 1; rank < hosts.size(); ++rank) {
    if (hosts[rank] != hosts[rank - 1]) borders.push_back(rank);
  }
  std::string maps = heat_map({"all kinds", bytes_of_pairs(pairs, ranks, ""), borders});
  for (auto const& kind : kTrafficKinds) {
    if (was_sent(pairs, kind)) maps += heat_map({kind.name, bytes_of_pairs(pairs, ranks, kind.key), borders});
  }
  return fmt::format("<div class=\"maps\">{}</div>\n", maps);
}

// Returns a row of the table of links: what was sent within hosts and between them.
std::string link_row(std::string const& name, std::vector<std::vector<double>> const& bytes,
                     std::vector<std::size_t> const& hosts) {
  double within = 0, between = 0;
  for (std::size_t from = 0; from < hosts.size(); ++from) {
    for (std::size_t to = 0; to < hosts.size(); ++to) (hosts[from] == hosts[to] ? within : between) += bytes[from][to];
  }
  return fmt::format(
      "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>\n",
      name, bytes_text(within), bytes_text(between), percent_text(between, within + between));
}

// Returns a table of the bytes within hosts and between them; nothing if all ranks are on one host.
std::string link_table(nlohmann::json const& pairs, std::vector<std::size_t> const& hosts) {
  if (hosts.empty()) return "";
  std::size_t const ranks = hosts.size();
  std::string rows = link_row("all kinds", bytes_of_pairs(pairs, ranks, ""), hosts);
  for (auto const& kind : kTrafficKinds) {
    if (was_sent(pairs, kind)) rows += link_row(kind.name, bytes_of_pairs(pairs, ranks, kind.key), hosts);
  }
  return fmt::format(
      "<div class=\"wide\"><p>The ranks are on {} hosts: the lines of a map are the borders between these.</p>\n"
      "<table id=\"links\"><thead><tr><th>kind</th><th class=\"number\">within hosts</th>"
      "<th class=\"number\">between hosts</th><th class=\"number\">share between hosts</th></tr></thead><tbody>\n"
      "{}</tbody></table></div>\n",
      hosts.back() + 1, rows);
}

}  // namespace

PageSection bytes_section(RunView const& view) {
  return {
      "bytes", "What ranks send",
      "Each column is the mean of the steps that it covers, over all ranks together; gradients and refreshes are sent "
      "for rows of other ranks, moves pass a row to another rank, and late keys are those that were announced after "
      "the round that should have carried them.",
      lookups_sentence(view) + bytes_plot(view) + moved_rows(view) + late_keys(view)};
}

PageSection pairs_section(RunView const& view) {
  PageSection section{"pairs", "Traffic between ranks",
                      "A row is the rank that sends, a column the rank that receives; the stronger the color, the more "
                      "bytes, relative to the largest pair of the same map.",
                      ""};
  auto const pairs = view.run.last("pairs");
  std::size_t const ranks = view.run.ranks();
  if (pairs.is_array() && !pairs.empty()) {
    auto const hosts = view.run.hosts();
    section.body = link_table(pairs, hosts) + heat_maps(pairs, hosts, ranks);
  } else if (view.run.summary.is_object()) {
    section.body = no_plot("", "With more than 128 ranks, summary.json has no traffic of pairs.");
  } else {
    section.body = no_plot("",
                           "With more than 16 ranks, only summary.json has the traffic of pairs. It is written when "
                           "the run ends.");
  }
  return section;
}

}  // namespace gpups::trainer::report
