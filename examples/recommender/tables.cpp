// SPDX-License-Identifier: Apache-2.0
#include "tables.hpp"

using namespace gpups;

// A row begins with random values of deviation `scale`, a function of its key, on every rank and in every run.
void add_tables(Store& store) {
  auto const add = [&](Table table, char const* name, float scale, std::uint32_t admission_count) {
    store.add_table({.name = name,
                     .dim = kDims[table],
                     .initializer = {Initializer::Kind::kNormal, scale},
                     .optimizer = {.kind = Optimizer::Kind::kRowwiseAdagrad, .learning_rate = 0.2F},
                     .admission_count = admission_count});
  };
  add(kUsers, "users", 0, 1);
  add(kItems, "items", 0.1F, 4);  // no row for an item that occurs three times or less
  add(kLiked, "liked", 0.1F, 4);
  add(kContexts, "contexts", 0.1F, 1);
}

void add_row(Bags& bags, std::uint64_t id) {
  bags.keys.push_back(Key{id});
  bags.offsets.push_back(static_cast<std::uint32_t>(bags.keys.size()));
}

void add_history(Bags& bags, std::span<Liked const> history) {
  for (Liked const& liked : history) {
    bags.keys.push_back(Key{liked.item});
    bags.weights.push_back(liked.weight);
    bags.shares.push_back(liked.weight / static_cast<float>(history.size()));
  }
  bags.offsets.push_back(static_cast<std::uint32_t>(bags.keys.size()));
}
