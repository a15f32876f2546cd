// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/click_predictor.hpp"

#include <numeric>

namespace gpups::trainer {

Predictions ClickPredictor::wait_predict(Stream& stream, Store& store, SampleBatch const& samples) {
  ClickInput const input = model_.features().make(stream, samples);
  std::vector<Matrix<float>> rows;            // of each part
  std::vector<Array<std::uint32_t>> entries;  // of each part: entry i uses row i
  for (ClickInput::InputPart const& part : input.parts) {
    rows.emplace_back(stream.device(), part.keys.size(), store.table(part.table).dim);
    View<float> const all = rows.back().view().flat();
    memory::fill_bytes(stream, all.data(), 0, all.bytes());  // clears the padding, which a look-up does not write
    store.lookup(stream, part.table, part.keys, rows.back(), {});
    std::vector<std::uint32_t> numbers(part.keys.size());
    std::iota(numbers.begin(), numbers.end(), 0U);
    entries.push_back(to_device(stream, numbers));
  }
  std::vector<MatrixView<float const>> const row_views(rows.begin(), rows.end());
  std::vector<View<std::uint32_t const>> const positions(entries.begin(), entries.end());
  computation_.pool(stream, input, row_views, positions);
  computation_.predict(stream, input, dense_.values());
  return {to_host(stream, computation_.probabilities(input)), to_host(stream, computation_.losses(input))};
}

}  // namespace gpups::trainer
