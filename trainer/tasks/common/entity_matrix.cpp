// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/common/entity_matrix.hpp"

#include <algorithm>
namespace gpups::trainer {
Matrix<float> read_rows(Stream& stream, Store& store, TableId table, std::vector<Key> const& keys) {
  Array<Key> const on_device = to_device(stream, keys);
  Matrix<float> rows(stream.device(), keys.size(), store.table(table).dim);
  memory::fill_bytes(stream, rows.view().data(), 0, rows.view().flat().bytes());
  for (std::size_t first = 0; first < keys.size(); first += kKeysAtOnce) {
    std::size_t const count = std::min(kKeysAtOnce, keys.size() - first);
    store.lookup(stream, table, View<Key const>(on_device).slice(first, count), rows.view().slice(first, count), {});
  }
  return rows;
}

}  // namespace gpups::trainer
