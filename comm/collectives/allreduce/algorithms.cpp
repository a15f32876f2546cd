// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/allreduce/algorithms.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <vector>

#include "comm/collectives/selection/select_algorithm.hpp"
#include "comm/collectives/sparse/sparse_vector_allreduce.hpp"
#include "kernels/base/check.hpp"

namespace gpups {
namespace comm {
namespace {

constexpr std::uint32_t formats(std::initializer_list<WireFormat> list) {
  std::uint32_t bits = 0;
  for (WireFormat const format : list) bits |= 1U << static_cast<int>(format);
  return bits;
}
constexpr std::uint32_t kExact = formats({WireFormat::kFloat});
constexpr std::uint32_t kOfStreams =
    formats({WireFormat::kFloat, WireFormat::kHalf, WireFormat::kBFloat16, WireFormat::kInt8});
constexpr std::uint32_t kAll = (1U << std::size(kNumberFormats)) - 1;

constexpr Algorithm kAlgorithms[] = {
    {.info = {"reduce_scatter_allgather", "each rank sums one slice, chunk by chunk, and sends the sums to all", false},
     .formats = kExact,
     .sum_array = reduce_scatter_allgather,
     .sum_vector = as_dense<reduce_scatter_allgather>,
     .time = time_of_reduce_scatter_allgather},
    {.info = {"recursive_doubling", "pairs of ranks exchange and add their sums, at distances 1, 2, 4, ...", false},
     .formats = kExact,
     .sum_array = recursive_doubling,
     .sum_vector = as_dense<recursive_doubling>,
     .time = time_of_recursive_doubling},
    {.info = {"sparse_allgather", "every rank receives the elements of all ranks and sums them", true},
     .formats = kOfStreams,
     .sum_array = array_as_streams<sparse_allgather<float>>,
     .sum_vector = as_streams<sparse_allgather<float>>,
     .time = time_of_sparse_allgather},
    {.info = {"ssar_recursive_doubling", "pairs of ranks exchange and add sparse sums, at distances 1, 2, 4, ...",
              true},
     .formats = kOfStreams,
     .sum_array = array_as_streams<ssar_recursive_doubling<float>>,
     .sum_vector = as_streams<ssar_recursive_doubling<float>>,
     .time = time_of_ssar_recursive_doubling},
    {.info = {"ssar_split_allgather", "each rank sums the elements of one slice and sends the sparse sums to all",
              true},
     .formats = kOfStreams,
     .sum_array = array_as_streams<ssar_split_allgather<float>>,
     .sum_vector = as_streams<ssar_split_allgather<float>>,
     .time = time_of_ssar_split_allgather},
    {.info = {"dsar_split_allgather", "each rank sums the elements of one slice and sends the dense sums to all", true},
     .formats = kAll,
     .sum_array = dsar_array,
     .sum_vector = dsar_sparse_vector,
     .time = time_of_dsar_split_allgather},
    {.info = {"nccl", "NCCL sums over the GPUs that it connects", false, true},
     .formats = kExact,
     .sum_array = allreduce_by_fabric,
     .sum_vector = as_dense<allreduce_by_fabric>,
     .time = time_of_fabric},
};

// Returns the names of the formats, such as "float, half".
std::string formats_of(Algorithm const& algorithm) {
  std::string names;
  for (WireFormat const format : kNumberFormats) {
    if (!algorithm.has(format)) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(format));
  }
  return names;
}

// Returns all names with formats, such as "recursive_doubling (float), sparse_allgather (float, half)".
std::string algorithm_names() {
  std::string names;
  for (auto const& algorithm : kAlgorithms) {
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", algorithm.info.name, formats_of(algorithm));
  }
  return names;
}

}  // namespace

CoTask<> allreduce_by_fabric(Communicator& comm, DenseAllreduce sum) {
  co_await comm.fabric_allreduce({sum.terms, sum.values}, sum.keep);
}

std::span<Algorithm const> algorithms() { return kAlgorithms; }

AllreduceOptions with_environment(AllreduceOptions options) {
  constexpr char const* kVariable = "GPUPS_ALLREDUCE_ALGORITHM";
  char const* const set = std::getenv(kVariable);
  std::string const name = set == nullptr || *set == '\0' ? "auto" : set;
  if (name == "auto" || options.algorithm != "auto") return options;
  auto const all = algorithms();
  auto const named = std::find_if(all.begin(), all.end(), [&](Algorithm const& a) { return a.info.name == name; });
  GPUPS_REQUIRE(named != all.end(),
                "the environment variable {} is \"{}\", which is not an allreduce algorithm: unset it, or set it to "
                "\"auto\" or to one of {}",
                kVariable, name, algorithm_names());
  options.algorithm = name;
  if (!named->has(options.format)) options.format = WireFormat::kFloat;
  return options;
}

Algorithm const* algorithm_of(AllreduceOptions const& options) {
  bool const automatic = options.algorithm == "auto";
  for (auto const& algorithm : algorithms()) {
    bool const meant = automatic || options.algorithm == algorithm.info.name;
    if (meant && algorithm.has(options.format)) return automatic ? nullptr : &algorithm;
  }
  bool is_known = automatic;
  for (auto const& algorithm : algorithms()) is_known |= options.algorithm == algorithm.info.name;
  if (!is_known) {
    throw Error(fmt::format("there is no allreduce algorithm \"{}\": use \"auto\", or one of {}", options.algorithm,
                            algorithm_names()));
  }
  throw Error(
      fmt::format("the allreduce algorithm \"{}\" does not support the wire format {}: use \"auto\", "
                  "or one of {}",
                  options.algorithm, name_of(options.format), algorithm_names()));
}

}  // namespace comm

std::span<AllreduceAlgorithm const> allreduce_algorithms() {
  static std::vector<AllreduceAlgorithm> const all = [] {
    std::vector<AllreduceAlgorithm> info;
    for (auto const& algorithm : comm::algorithms()) info.push_back(algorithm.info);
    return info;
  }();
  return all;
}

char const* name_of(WireFormat format) {
  static constexpr char const* kNames[] = {"float", "half", "bfloat", "int8", "int4", "int2"};
  auto const i = static_cast<std::size_t>(format);
  return i < std::size(kNames) ? kNames[i] : "unknown";
}

}  // namespace gpups
