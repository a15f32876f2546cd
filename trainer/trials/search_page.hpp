// SPDX-License-Identifier: Apache-2.0
// The result of a search: a table as text, and an HTML page with the same table and a plot.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/trials/search_plan.hpp"
#include "trainer/trials/search_record.hpp"

namespace gpups::trainer {

// Returns a line for each trial with its settings and metrics, those with the largest budget and then the best first.
// unit: of budgets, "epochs" or "steps".
std::string search_table(SearchPlan const& plan, SearchRecord const& record, std::string const& unit);

// Returns the page. name: of the search.
std::string search_page(SearchPlan const& plan, SearchRecord const& record, std::string const& unit,
                        std::string const& name);

}  // namespace gpups::trainer
