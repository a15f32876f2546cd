// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/sum_top_k.hpp"

#include <vector>

#include "comm/collective/sum_integers.hpp"
#include "kernels/check.hpp"

namespace gpups {
namespace comm {
namespace {

using Units = std::int64_t;

template <Task<StreamTotal<Units>> (*Sum)(Mesh&, StreamTerms<Units>)>
Task<StreamTotal<Units>> sum_whole(Mesh& mesh, StreamTerms<Units> terms, std::size_t) {
  return Sum(mesh, std::move(terms));
}

constexpr TopKAlgorithm kAlgorithms[] = {
    {{"sparse_gather", "every rank gets the elements of all, and adds them up", true},
     sum_whole<sum_by_gathering<Units>>},
    {{"sparse_doubling", "pairs of ranks exchange the sums of their elements, at growing distances", true},
     sum_whole<sum_by_doubling_sparse<Units>>},
    {{"sparse_owners", "each rank adds up the elements of one slice, and sends its sums to all", true},
     sum_whole<sum_by_owners<Units>>},
    {{"resparsified", "as sparse_owners, but sums are cut to as few elements as terms on their way", true},
     sum_resparsified<Units>},
};

char const* name_of(kernels::StreamValues values) {
  static constexpr char const* kNames[] = {"floats", "half", "bfloat", "int8", "units"};
  return kNames[static_cast<std::size_t>(values)];
}

}  // namespace

std::span<TopKAlgorithm const> top_k_algorithms() { return kAlgorithms; }

TopKAlgorithm const& top_k_algorithm(std::string const& name, int ranks) {
  std::string_view const wanted = name != "auto" ? std::string_view(name)
                                  : ranks <= 2   ? "sparse_gather"
                                                 : "resparsified";
  std::string known;
  for (auto const& algorithm : kAlgorithms) {
    if (wanted == algorithm.about.name) return algorithm;
    known += std::string(known.empty() ? "" : ", ") + algorithm.about.name;
  }
  throw Error(
      fmt::format("no algorithm \"{}\" sums the largest elements of gradients (there are {}): use one of them, "
                  "or \"auto\"",
                  name, known));
}

kernels::ValueForm form_of(TopKOptions const& options) {
  using kernels::StreamValues;
  switch (options.format) {
    case NumberFormat::kFloat:
      return {StreamValues::kUnits, options.grid_log2};
    case NumberFormat::kHalf:
      return {StreamValues::kHalf, options.grid_log2};
    case NumberFormat::kBFloat:
      return {StreamValues::kBFloat, options.grid_log2};
    case NumberFormat::kInt8:
      return {StreamValues::kInt8, options.grid_log2};
    default:
      throw Error(
          fmt::format("the largest elements of gradients cannot be sent in the format {} (sparse streams do "
                      "not have it): use float, half, bfloat or int8",
                      gpups::name_of(options.format)));
  }
}

// Ranks that choose different shares would wait for each other's streams all the same; but it is not what was meant.
Signature SumTopK::signature() const {
  return {.operation = Operation::kSumTopK,
          .elements = chosen_.size,
          .how = fmt::format("{} in {}, grid {}, {} at most", algorithm_.about.name, name_of(form_.values),
                             form_.grid_log2, chosen_.most)};
}

Task<> SumTopK::run(Mesh& mesh, std::shared_ptr<void const> self) {
  StreamTerms<Units> terms{.stream = host_stream(mesh.stream()),
                           .indices = chosen_.indices,
                           .values = chosen_.units,
                           .size = chosen_.size,
                           .form = form_,
                           .residual = chosen_.residual,
                           .keep = std::move(self)};
  mesh.count_whole_run(plain_bytes_of_integers(chosen_.size, mesh.ranks(), mesh.me()));  // elements that wait included
  auto total = co_await algorithm_.sum(mesh, std::move(terms), chosen_.most);
  sum_ = total.entries(mesh);
}

}  // namespace comm

std::span<AllreduceAlgorithm const> top_k_algorithms() {
  static std::vector<AllreduceAlgorithm> const all = [] {
    std::vector<AllreduceAlgorithm> about;
    for (auto const& algorithm : comm::kAlgorithms) about.push_back(algorithm.about);
    return about;
  }();
  return all;
}

}  // namespace gpups
