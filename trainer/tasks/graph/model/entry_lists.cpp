// SPDX-License-Identifier: Apache-2.0
// Converts the entries and gradients of models to the arguments of Store calls.
#include "trainer/tasks/graph/model.hpp"

namespace gpups::trainer {

std::vector<TableBatch> GraphEntries::tables() const {
  std::vector<TableBatch> tables;
  for (EntryList const& part : parts) tables.push_back({.table = part.table, .keys = part.keys});
  return tables;
}

std::vector<TableGradients> GraphGradients::tables(GraphEntries const& work) const {
  std::vector<TableGradients> tables;
  for (std::size_t part = 0; part < coefficients.size(); ++part) {
    bool const own = part == 1 && relation_sources.columns() > 0;
    tables.push_back({.sources = own ? relation_sources.view() : sources.view(),
                      .source_indices = work.parts[part].sources,
                      .coefficients = coefficients[part].view().slice(0, entries[part]),
                      .source_max_abs = source_max_abs});
  }
  return tables;
}

}  // namespace gpups::trainer
