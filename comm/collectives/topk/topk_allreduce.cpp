// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/topk/topk_allreduce.hpp"

#include <vector>

#include "comm/collectives/allreduce/integer_allreduce.hpp"
#include "kernels/base/check.hpp"

namespace gpups {
namespace comm {
namespace {

using Units = std::int64_t;

template <CoTask<StreamSum<Units>> (*Sum)(Communicator&, StreamInput<Units>)>
CoTask<StreamSum<Units>> sum_whole(Communicator& comm, StreamInput<Units> terms, std::size_t) {
  return Sum(comm, std::move(terms));
}

constexpr TopKAlgorithmEntry kTopKAlgorithms[] = {
    {{"sparse_allgather", "every rank receives the elements of all ranks and sums them", true},
     sum_whole<sparse_allgather<Units>>},
    {{"ssar_recursive_doubling", "pairs of ranks exchange and add sparse sums, at distances 1, 2, 4, ...", true},
     sum_whole<ssar_recursive_doubling<Units>>},
    {{"ssar_split_allgather", "each rank sums the elements of one slice and sends the sparse sums to all", true},
     sum_whole<ssar_split_allgather<Units>>},
    {{"spardl", "as ssar_split_allgather, but partial sums are truncated to their largest elements on the way", true},
     spardl<Units>},
};

char const* name_of(kernels::StreamValues values) {
  static constexpr char const* kNames[] = {"floats", "half", "bfloat", "int8", "units"};
  return kNames[static_cast<std::size_t>(values)];
}

}  // namespace

std::span<TopKAlgorithmEntry const> top_k_algorithms() { return kTopKAlgorithms; }

TopKAlgorithmEntry const& top_k_algorithm(std::string const& name, int ranks) {
  std::string_view const wanted = name != "auto" ? std::string_view(name) : ranks <= 2 ? "sparse_allgather" : "spardl";
  std::string known;
  for (auto const& algorithm : kTopKAlgorithms) {
    if (wanted == algorithm.info.name) return algorithm;
    known += std::string(known.empty() ? "" : ", ") + algorithm.info.name;
  }
  throw Error(fmt::format("there is no top-k algorithm \"{}\": use \"auto\", or one of {}", name, known));
}

kernels::ValueForm form_of(TopKOptions const& options) {
  using kernels::StreamValues;
  switch (options.format) {
    case WireFormat::kFloat:
      return {StreamValues::kUnits, options.grid_log2};
    case WireFormat::kHalf:
      return {StreamValues::kHalf, options.grid_log2};
    case WireFormat::kBFloat16:
      return {StreamValues::kBFloat16, options.grid_log2};
    case WireFormat::kInt8:
      return {StreamValues::kInt8, options.grid_log2};
    default:
      throw Error(
          fmt::format("a top-k allreduce cannot use the wire format {} (sparse streams do not support it): "
                      "use float, half, bfloat or int8",
                      gpups::name_of(options.format)));
  }
}

// Ranks with different k could still exchange their streams, but different k are a mistake of the caller.
Signature TopKSparseAllreduce::signature() const {
  return {.operation = CollectiveKind::kSumTopK,
          .elements = local_elements_.size,
          .how = fmt::format("{} in {}, grid {}, {} at most", algorithm_.info.name, name_of(form_.values),
                             form_.grid_log2, local_elements_.k)};
}

CoTask<> TopKSparseAllreduce::run(Communicator& comm, std::shared_ptr<void const> self) {
  StreamInput<Units> terms{.stream = host_stream(comm.stream()),
                           .indices = local_elements_.indices,
                           .values = local_elements_.units,
                           .size = local_elements_.size,
                           .form = form_,
                           .residual = local_elements_.residual,
                           .keep = std::move(self)};
  comm.set_uncompressed_bytes(uncompressed_bytes_of_integers(local_elements_.size, comm.ranks(),
                                                             comm.me()));  // includes elements that stay in residuals
  auto total = co_await algorithm_.sum(comm, std::move(terms), local_elements_.k);
  sum_ = total.entries(comm);
}

}  // namespace comm

std::span<AllreduceAlgorithm const> top_k_algorithms() {
  static std::vector<AllreduceAlgorithm> const all = [] {
    std::vector<AllreduceAlgorithm> info;
    for (auto const& algorithm : comm::kTopKAlgorithms) info.push_back(algorithm.info);
    return info;
  }();
  return all;
}

}  // namespace gpups
