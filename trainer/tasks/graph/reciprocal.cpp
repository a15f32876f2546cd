// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/graph/reciprocal.hpp"

namespace gpups::trainer {

std::vector<Key> inverse_keys(Dictionary const& relations, std::size_t count) {
  std::vector<Key> keys;
  for (std::uint32_t r = 0; r < count; ++r) keys.push_back(key_of_name("inverse relation", relations.name(r)));
  return keys;
}

void add_reciprocals(TripleBatch& batch, std::size_t relations) {
  std::vector<Triple> triples;
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i < batch.triples.size(); ++i) {
    auto const [subject, relation, object] = batch.triples[i];
    triples.push_back(batch.triples[i]);
    triples.push_back({object, inverse_relation(relation, relations), subject});
    for (std::uint32_t half : {0, 1}) numbers.push_back(2 * batch.sample_numbers[i] + half);
  }
  batch.triples = std::move(triples);
  batch.sample_numbers = std::move(numbers);
  batch.batch_triples *= 2;
  for (Microbatch& microbatch : batch.microbatches) {
    microbatch.first *= 2;
    microbatch.count *= 2;
  }
}

}  // namespace gpups::trainer
