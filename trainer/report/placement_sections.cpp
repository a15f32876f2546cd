// SPDX-License-Identifier: Apache-2.0
// Sections about the owners of rows.
#include <fmt/format.h>

#include <algorithm>

#include "trainer/report/page_section.hpp"
#include "trainer/report/plots.hpp"
#include "trainer/report/svg.hpp"

namespace gpups::trainer::report {
namespace {

constexpr std::size_t kNamedRanks = 8;  // with more ranks, a plot has no legend

std::string owners_plot(RunView const& view, std::vector<std::vector<double>> const& owned) {
  StackPlot plot{.label = "Rows that each rank owns over steps", .parts = {}, .columns = {}, .text = count_text};
  double most = 0;
  std::size_t ranks = 0;
  for (std::size_t i = 0; i < owned.size(); ++i) {
    double all = 0;
    for (double const rows : owned[i]) all += rows;
    most = std::max(most, all);
    ranks = std::max(ranks, owned[i].size());
    plot.columns.push_back({view.intervals[i].first, view.intervals[i].last, owned[i]});
  }
  for (auto& column : plot.columns) column.values.resize(ranks, 0);
  for (std::size_t rank = 0; rank < ranks; ++rank) plot.parts.push_back({fmt::format("rank {}", rank), color(rank)});
  plot.unit = count_unit(most, "rows");
  plot.legend = ranks <= kNamedRanks;
  return figure("Rows by owner", stack_plot(plot));
}

// Returns the owned rows at the end of each interval.
std::vector<std::vector<double>> owned_rows(RunView const& view) {
  std::vector<std::vector<double>> owned;
  auto line = view.run.reports.begin();
  for (auto const& interval : view.intervals) {
    while (line->at("step").get<std::int64_t>() < interval.last) ++line;
    owned.push_back(line->at("owned_rows").get<std::vector<double>>());
  }
  return owned;
}

std::string owners_sentence(std::vector<double> const& rows) {
  auto const least = std::min_element(rows.begin(), rows.end()), most = std::max_element(rows.begin(), rows.end());
  double all = 0;
  for (double const one : rows) all += one;
  std::string const order = rows.size() > kNamedRanks ? " Rank 0 is the lowest band." : "";
  return fmt::format("<p>At the end, rank {} owns the most rows, {} ({}), and rank {} the fewest, {} ({}).{}</p>\n",
                     most - rows.begin(), count_text(*most), percent_text(*most, all), least - rows.begin(),
                     count_text(*least), percent_text(*least, all), order);
}

// Returns two bars: the bytes of the run by kind, and the estimate.
std::string homes_bars(RunView const& view, HomeEstimate const& estimate) {
  BarPlot plot{.label = "Bytes for rows, measured and estimated", .parts = {}, .bars = {}, .text = bytes_text};
  Bar measured{"this run", {}}, at_homes{"at homes (estimate)", {}};
  for (auto const& kind : kTrafficKinds) {
    double const bytes = view.total.of(fmt::format("sent.{}", kind.key));
    if (!kind.for_rows || bytes == 0) continue;
    plot.parts.push_back({kind.name, color(kind.color)});
    measured.values.push_back(bytes);
    at_homes.values.push_back(0);
  }
  plot.parts.push_back({"gradients and values (estimate)", color(7)});
  measured.values.push_back(0);
  at_homes.values.push_back(estimate.at_homes(view.total));
  plot.bars = {measured, at_homes};
  return figure("Bytes for the rows of batches", bar_plot(plot));
}

std::string homes_curves(RunView const& view, HomeEstimate const& estimate) {
  Curve measured{"this run", color(0), {}}, at_homes{"at homes (estimate)", color(7), {}};
  double most = 0;
  for (auto const& interval : view.intervals) {
    double const now = HomeEstimate::sent(interval.counts) / interval.steps();
    double const then = estimate.at_homes(interval.counts) / interval.steps();
    measured.points.emplace_back(interval.last, now);
    at_homes.points.emplace_back(interval.last, then);
    most = std::max({most, now, then});
  }
  NumberUnit unit = byte_unit(most);
  unit.name += " per step";
  return figure("Bytes per step", curve_plot({.label = "Bytes per step, measured and estimated",
                                              .curves = {measured, at_homes},
                                              .unit = unit,
                                              .text = bytes_text}));
}

// Returns why there is no comparison with rows at their homes; empty if there is one.
std::string why_no_comparison(RunView const& view, bool has_estimate) {
  bool const at_home =
      view.total.of("moved_rows") == 0 && view.total.of("remote_keys") == view.total.of("remote_home_keys");
  if (at_home) return "All rows were at their homes, so there is nothing to compare.";
  if (!has_estimate) return "No row was fetched from another rank, so the bytes of a row are not known.";
  return "";
}

std::string reason_text(std::string const& reason) {
  if (reason == "policy") return "the policy moved it";
  if (reason == "localized") return "placed before training";
  return "it is at its home";
}

// Returns the cells of a row's uses: one for each rank, or the largest numbers of many ranks.
std::string use_cells(std::vector<double> const& uses) {
  double const most = std::max(1.0, *std::max_element(uses.begin(), uses.end()));
  std::string cells;
  if (uses.size() <= kNamedRanks) {
    for (double const one : uses) {
      cells += fmt::format("<td class=\"number heat\" style=\"--strength:{:.0f}%\">{:.0f}</td>", 45 * one / most, one);
    }
    return cells;
  }
  std::vector<std::pair<double, std::size_t>> sorted;
  for (std::size_t rank = 0; rank < uses.size(); ++rank) sorted.emplace_back(-uses[rank], rank);
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < 4; ++i) {
    if (sorted[i].first < 0)
      cells += fmt::format("{}rank {}: {:.0f}", i > 0 ? ", " : "", sorted[i].second, -sorted[i].first);
  }
  return fmt::format("<td>{}</td>", cells);
}

std::string hot_table(nlohmann::json const& rows, std::size_t ranks) {
  std::string uses = "<th>most announced uses</th>";
  if (ranks <= kNamedRanks) {
    uses = "<th class=\"number\">uses by rank 0</th>";
    for (std::size_t rank = 1; rank < ranks; ++rank) uses += fmt::format("<th class=\"number\">{}</th>", rank);
  }
  std::string table = fmt::format(
      "<div class=\"wide\"><table><thead><tr><th>table</th><th class=\"number\">key</th><th class=\"number\">owner</th>"
      "<th class=\"number\">home</th><th>why it is there</th><th class=\"number\">since "
      "step</th>{}</tr></thead><tbody>\n",
      uses);
  for (auto const& row : rows) {
    auto const reason = row.at("reason").get<std::string>();
    table += fmt::format(
        "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td>{}</td>"
        "<td class=\"number\">{}</td>{}</tr>\n",
        escape(row.at("table").get<std::string>()), row.at("key").get<std::uint64_t>(), row.at("owner").get<int>(),
        row.at("home").get<int>(), escape(reason_text(reason)),
        reason == "home" ? "" : count_text(row.at("since").get<double>()),
        use_cells(row.at("uses").get<std::vector<double>>()));
  }
  return table + "</tbody></table></div>\n";
}

}  // namespace

PageSection owners_section(RunView const& view) {
  auto const owned = owned_rows(view);
  double all = 0;
  for (auto const& rows : owned) {
    for (double const one : rows) all += one;
  }
  std::string body;
  if (all == 0) {
    body = no_plot("", "No rank owns a row yet.");
  } else {
    body = owners_sentence(owned.back()) + owners_plot(view, owned);
  }
  return {"owners", "Where rows are",
          "The height of a band is the number of rows that a rank owns; it grows with new keys, and changes when rows "
          "move.",
          body};
}

PageSection homes_section(RunView const& view) {
  auto const estimate = estimate_of(view.total);
  std::string const why = why_no_comparison(view, estimate.has_value());
  return {
      "homes", "Compared with rows at their homes",
      "The estimate is the number of keys whose home is another rank, times the mean bytes of a value and a gradient "
      "in this run; it does not count keys.",
      why.empty() ? homes_bars(view, *estimate) + homes_curves(view, *estimate) : no_plot("", why)};
}

PageSection hot_rows_section(RunView const& view) {
  auto const rows = view.run.last("hottest_rows");
  PageSection section{"hot", "Hottest rows",
                      "Uses are those that ranks had announced for a step near the end and up to 15 later ones: the "
                      "stronger the color, the larger a rank's share of the uses of a row.",
                      ""};
  if (rows.is_array() && !rows.empty()) {
    section.body = hot_table(rows, view.run.ranks());
  } else if (view.run.summary.is_null()) {
    section.body = no_plot("", "The rows are in summary.json, which is written when the run ends.");
  } else {
    section.body = no_plot("", "No batch was prepared early enough to be announced: train.lookahead is the distance.");
  }
  return section;
}

}  // namespace gpups::trainer::report
