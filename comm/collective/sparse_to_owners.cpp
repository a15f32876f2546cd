// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "comm/collective/others.hpp"
#include "comm/collective/slices.hpp"
#include "comm/collective/sparse.hpp"
#include "kernels/add_elements.hpp"

namespace gpups::comm {
namespace {

// Where the ranks' slices begin among the elements of an ascending vector, and where the last one ends.
Task<std::vector<std::uint64_t>> cut(Mesh& mesh, SparseView vector) {
  auto& stream = mesh.stream();
  std::vector<std::uint64_t> bounds;
  for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(mesh.ranks()); ++q) {
    bounds.push_back(slice_of(vector.size, mesh.ranks(), Rank{q}).first);
  }
  bounds.push_back(vector.size);
  Array<std::uint64_t> const there(stream.device(), bounds.size()), counts(stream.device(), bounds.size());
  std::vector<std::uint64_t> ends(bounds.size());
  copy<std::uint64_t>(stream, there, View<std::uint64_t const>(bounds));
  kernels::count_below(stream, {.indices = vector.indices, .bounds = there, .counts = counts});
  copy<std::uint64_t>(stream, View<std::uint64_t>(ends), counts);
  co_await mesh.caught_up();
  co_return ends;
}

struct Elements {
  std::shared_ptr<Bytes> indices;
  std::shared_ptr<Array<float>> values;
};

Task<Elements> receive(Mesh& mesh, Rank from, std::uint64_t most) {
  auto indices = std::make_shared<Bytes>(co_await mesh.receive(from, most * sizeof(std::uint32_t)));
  if (indices->size() % sizeof(std::uint32_t) != 0) mesh.refuse(from, "sent what are not indices");
  auto values = std::make_shared<Array<float>>(mesh.stream().device(), indices->size() / sizeof(std::uint32_t));
  co_await mesh.receive_exactly(from, bytes_of(values->view()), values);
  co_return Elements{indices, values};
}

}  // namespace

Task<SumVector> scatter_to_owners(Mesh& mesh, SparseSum sum) {
  auto& stream = mesh.stream();
  auto const& [size, indices, values] = sum.vector;
  auto const ends = co_await cut(mesh, sum.vector);
  auto const slice = slice_of(size, mesh.ranks(), mesh.me());
  std::vector<Sending> sent;
  for (Rank const q : others(mesh)) {
    std::uint64_t const first = ends[number(q)], count = ends[number(q) + 1] - first;
    sent.push_back(mesh.send(q, bytes_of(indices.slice(first, count)), sum.keep));
    sent.push_back(mesh.send_exactly(q, bytes_of(values.slice(first, count)), sum.keep));
  }
  Array<float> sums(stream.device(), slice.size);
  memory::fill_bytes(stream, sums.data(), 0, sums.bytes());
  kernels::add_elements(stream, {.indices = indices, .values = values, .first = slice.first, .into = sums});
  for (Rank const q : others(mesh)) {
    Elements const its = co_await receive(mesh, q, slice.size);
    View<std::uint32_t const> const its_indices(reinterpret_cast<std::uint32_t const*>(its.indices->data()),
                                                its.values->size(), stream.device());
    kernels::add_elements(stream, {.indices = its_indices, .values = *its.values, .first = slice.first, .into = sums});
  }
  for (auto& sending : sent) co_await sending;
  co_return SumVector{.first = slice.first, .size = slice.size, .values = std::move(sums)};
}

}  // namespace gpups::comm
