// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/graph/dataset.hpp"

#include <xxhash.h>

#include "kernels/base/check.hpp"

namespace gpups::trainer {

void Dataset::add_train(std::string_view subject, std::string_view relation, std::string_view object) {
  std::uint32_t const s = entities.add(subject);
  train.push_back({s, relations.add(relation), entities.add(object)});
  seen_entities = entities.size();
  seen_relations = relations.size();
}

void Dataset::add_held_out(std::vector<Triple>& split, std::string_view subject, std::string_view relation,
                           std::string_view object) {
  std::uint32_t const s = entities.add(subject);
  split.push_back({s, relations.add(relation), entities.add(object)});
}

std::size_t Dataset::count_unseen(std::span<Triple const> triples) const {
  auto const unseen = [this](Triple const& triple) { return is_unseen(triple); };
  return static_cast<std::size_t>(std::count_if(triples.begin(), triples.end(), unseen));
}

Vocabulary Dataset::vocabulary() const {
  std::vector<Key> const& all = relations.keys();
  return {entities.keys(), {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(seen_relations)}};
}

std::vector<Triple> const& Dataset::split(std::string_view name) const {
  GPUPS_ASSERT(name == "train" || name == "valid" || name == "test");
  return name == "train" ? train : name == "valid" ? valid : test;
}

std::uint64_t Dataset::digest() const {
  static_assert(sizeof(Triple) == 12);
  std::uint64_t hash = 0;
  auto const add = [&hash](auto const& v) { hash = XXH3_64bits_withSeed(v.data(), v.size() * sizeof(v[0]), hash); };
  add(entities.keys());
  add(relations.keys());
  add(train);
  add(valid);
  add(test);
  return hash;
}

}  // namespace gpups::trainer
