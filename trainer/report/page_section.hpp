// SPDX-License-Identifier: Apache-2.0
// The sections of a report.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/report/intervals.hpp"
#include "trainer/report/run_record.hpp"

namespace gpups::trainer::report {

// A run, and what its sections show of it.
struct RunView {
  explicit RunView(RunRecord const& of_run)
      : run(of_run),
        intervals(intervals_of(of_run.reports, kIntervalsMax)),
        total(total_of(of_run.reports, of_run.summary)) {}

  static constexpr std::size_t kIntervalsMax = 80;  // so many columns of a plot can be distinguished
  RunRecord const& run;
  std::vector<Interval> intervals;
  Counters total;

  bool rows_move() const { return trainer::rows_move(run.config); }
};

// Part of a page, in HTML.
struct PageSection {
  std::string id, title;
  std::string how_to_read;  // one sentence
  std::string body;
};

// Returns a part of a body: a plot with a heading, or a sentence that says why there is none.
std::string figure(std::string_view heading, std::string const& svg);
std::string no_plot(std::string_view heading, std::string_view why);

// The kinds of traffic, in the order of plots: the key in "sent", its name, its color, and when it is sent.
struct TrafficKindStyle {
  char const* key;
  char const* name;
  std::size_t color;
  bool for_rows = false;  // for the rows of batches
  bool of_steps = true;
};
inline constexpr TrafficKindStyle kTrafficKinds[] = {{"gradients", "gradients", 0, true},
                                                     {"refreshes", "refreshes", 1, true},
                                                     {"moves", "moves", 2, true},
                                                     {"intents", "intents", 3, true},
                                                     {"late_fetches", "late fetches", 4, true},
                                                     {"lookups", "look-ups", 5, false, false},
                                                     {"allreduces", "allreduces", 6},
                                                     {"control", "control", 7}};

PageSection loss_section(RunView const& view);
PageSection speed_section(RunView const& view);
// REQUIRES, for those below: the run has several ranks.
PageSection bytes_section(RunView const& view);
PageSection pairs_section(RunView const& view);
PageSection owners_section(RunView const& view);
PageSection homes_section(RunView const& view);
PageSection hot_rows_section(RunView const& view);

// Returns what happened in the run, as a few sentences in HTML.
std::string overview(RunView const& view);

}  // namespace gpups::trainer::report
