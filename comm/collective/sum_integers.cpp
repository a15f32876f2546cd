// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/sum_integers.hpp"

#include <vector>

#include "comm/collective/others.hpp"
#include "comm/collective/slices.hpp"
#include "kernels/add_words.hpp"

namespace gpups::comm {
namespace {

using Words = View<std::int64_t>;

// Another rank's numbers of this rank's slice. Sums wrap, so that whoever comes first is added first.
Task<> add_terms(Mesh& mesh, Rank from, Words mine) {
  auto const terms = std::make_shared<Array<std::int64_t>>(mine.device(), mine.size());
  co_await mesh.receive_exactly(from, bytes_of(terms->view()), terms);
  if (!mine.empty()) kernels::add_words(mesh.stream(), {.into = mine, .words = *terms});
}

// The sums of another rank's slice take the place of what was sent of it, once that has been taken.
Task<> take_sums(Mesh& mesh, Rank from, Sending terms, Words sums, std::shared_ptr<void const> keep) {
  co_await terms;
  co_await mesh.receive_exactly(from, bytes_of(sums), keep);
}

}  // namespace

Task<> SumIntegers::run(Mesh& mesh, std::shared_ptr<void const> self) {
  auto const slice = [&](Rank rank) { return slice_of(values_.view(), mesh.ranks(), rank); };
  Words const mine = slice(mesh.me());
  std::vector<Task<>> terms, sums;
  for (Rank const q : others(mesh)) {
    sums.push_back(take_sums(mesh, q, mesh.send_exactly(q, bytes_of(slice(q)), self), slice(q), self));
    terms.push_back(add_terms(mesh, q, mine));
  }
  for (auto& task : terms) task.start();  // receives what comes first from each rank
  for (auto& task : sums) task.start();
  co_await all(std::move(terms));
  for (Rank const q : others(mesh)) mesh.send_exactly(q, bytes_of(mine), self);
  co_await all(std::move(sums));
}

}  // namespace gpups::comm
