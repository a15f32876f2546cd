// SPDX-License-Identifier: Apache-2.0
// How what models make looks to the store.
#include "trainer/graph/model.hpp"

namespace gpups::trainer {

std::vector<TableBatch> Work::tables() const {
  std::vector<TableBatch> tables;
  for (Part const& part : parts) tables.push_back({.table = part.table, .keys = part.keys});
  return tables;
}

std::vector<TableGradients> Gradients::tables(Work const& work) const {
  std::vector<TableGradients> tables;
  for (std::size_t part = 0; part < coefficients.size(); ++part) {
    bool const own = part == 1 && relation_sources.columns() > 0;
    tables.push_back({.sources = own ? relation_sources.view() : sources.view(),
                      .numbers = work.parts[part].sources,
                      .coefficients = coefficients[part].view().slice(0, entries[part]),
                      .source_max_abs = source_max_abs});
  }
  return tables;
}

}  // namespace gpups::trainer
