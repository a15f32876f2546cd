// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "comm/collective/exchange_streams.hpp"
#include "comm/collective/keep_largest.hpp"

namespace gpups::comm {
namespace {

// A rank's part of the sums of all slices on their way to their owners. Whoever passes a slice on adds its own elements
// to what has come, and keeps what goes beyond the budget.
template <class T>
class Slices {
 public:
  Slices(Mesh& mesh, StreamTerms<T>& terms, std::size_t budget)
      : mesh_(mesh), terms_(terms), budget_(budget), ranges_(slices_of(terms.size, mesh.ranks())) {
    came_.resize(ranges_.size());
  }

  std::vector<Slice> const& ranges() const { return ranges_; }
  void add(Rank slice, Streams const& streams, std::size_t i) { came_[number(slice)].add(streams, i); }

  // What this rank passes on of a slice.
  Bytes sum(Rank slice) {
    Slice const range = ranges_[number(slice)];
    Streams parts;
    parts.add(mesh_,
              kernels::encode<T>(
                  terms_.stream,
                  {terms_.indices, terms_.values, range.first, range.size, {lossless(), terms_.form.grid_log2}}));
    parts.add(came_[number(slice)]);
    auto list = kernels::sum<T>(terms_.stream, kernels::SumToEntries<T>{parts.views()});
    check(mesh_, parts, list.bad);
    View<T> const residual = part_of(terms_.residual, range);
    keep_largest(terms_.stream, list, budget_, residual, range.first);
    return kernels::encode<T>(terms_.stream,
                              {list.indices, list.values, range.first, range.size, terms_.form, residual});
  }

 private:
  static constexpr kernels::StreamValues lossless() {
    return std::is_same_v<T, float> ? kernels::StreamValues::kFloat : kernels::StreamValues::kUnits;
  }

  Mesh& mesh_;
  StreamTerms<T>& terms_;
  std::size_t const budget_;  // elements of a slice
  std::vector<Slice> const ranges_;
  std::vector<Streams> came_;  // by slice
};

}  // namespace

// Slices travel by the binary digits of their distance, the largest first: log2 of the ranks messages, for any number
// of ranks. A slice is summed and cut just before it is sent, when all that takes the same way has come.
template <class T>
Task<StreamTotal<T>> sum_resparsified(Mesh& mesh, StreamTerms<T> terms, std::size_t most) {
  auto const me = number(mesh.me()), ranks = static_cast<std::uint32_t>(mesh.ranks());
  auto const at = [&](std::uint32_t distance) { return Rank{(me + distance) % ranks}; };
  Slices<T> slices(mesh, terms, std::max<std::size_t>(1, most / ranks));
  for (std::uint32_t gap = std::bit_floor(ranks - 1); gap > 0; gap /= 2) {
    std::uint32_t const end = std::min(2 * gap, ranks);
    Streams going;
    std::vector<Slice> coming;
    for (std::uint32_t distance = gap; distance < end; ++distance) {
      going.add(mesh, slices.sum(at(distance)));
      coming.push_back(slices.ranges()[number(at(distance - gap))]);
    }
    send_together(mesh, at(gap), going);
    Streams const came = co_await receive_streams(mesh, at(ranks - gap), coming, terms.form);
    for (std::size_t i = 0; i < came.size(); ++i) slices.add(at(static_cast<std::uint32_t>(i)), came, i);
  }
  co_return StreamTotal<T>(terms.stream, co_await gather_streams(mesh, slices.sum(mesh.me()), slices.ranges()));
}

template Task<StreamTotal<float>> sum_resparsified(Mesh&, StreamTerms<float>, std::size_t);
template Task<StreamTotal<std::int64_t>> sum_resparsified(Mesh&, StreamTerms<std::int64_t>, std::size_t);

}  // namespace gpups::comm
