// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/algorithms.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <vector>

#include "comm/collective/array_streamed.hpp"
#include "comm/collective/select_algorithm.hpp"
#include "kernels/check.hpp"

namespace gpups {
namespace comm {
namespace {

constexpr std::uint32_t formats(std::initializer_list<NumberFormat> list) {
  std::uint32_t bits = 0;
  for (NumberFormat const format : list) bits |= 1U << static_cast<int>(format);
  return bits;
}
constexpr std::uint32_t kExact = formats({NumberFormat::kFloat});
constexpr std::uint32_t kOfStreams =
    formats({NumberFormat::kFloat, NumberFormat::kHalf, NumberFormat::kBFloat, NumberFormat::kInt8});
constexpr std::uint32_t kAll = (1U << std::size(kNumberFormats)) - 1;

constexpr Algorithm kAlgorithms[] = {
    {.about = {"direct", "each rank adds up one slice, in pieces, and sends its sums to all", false},
     .formats = kExact,
     .sum_array = sum_directly,
     .sum_vector = sum_as_dense<sum_directly>,
     .time = time_of_direct},
    {.about = {"doubling", "pairs of ranks exchange all that they have, at growing distances", false},
     .formats = kExact,
     .sum_array = sum_by_doubling,
     .sum_vector = sum_as_dense<sum_by_doubling>,
     .time = time_of_doubling},
    {.about = {"sparse_gather", "every rank gets the elements of all, and adds them up", true},
     .formats = kOfStreams,
     .sum_array = sum_array_as_streams<sum_by_gathering<float>>,
     .sum_vector = sum_as_streams<sum_by_gathering<float>>,
     .time = time_of_gathering},
    {.about = {"sparse_doubling", "pairs of ranks exchange the sums of their elements, at growing distances", true},
     .formats = kOfStreams,
     .sum_array = sum_array_as_streams<sum_by_doubling_sparse<float>>,
     .sum_vector = sum_as_streams<sum_by_doubling_sparse<float>>,
     .time = time_of_sparse_doubling},
    {.about = {"sparse_owners", "each rank adds up the elements of one slice, and sends its sums to all", true},
     .formats = kOfStreams,
     .sum_array = sum_array_as_streams<sum_by_owners<float>>,
     .sum_vector = sum_as_streams<sum_by_owners<float>>,
     .time = time_of_owners},
    {.about = {"sparse_dense", "each rank adds up the elements of one slice, and sends all of it to all", true},
     .formats = kAll,
     .sum_array = sum_array_densely,
     .sum_vector = sum_streams_densely,
     .time = time_of_dense_owners},
    {.about = {"nccl", "NCCL adds up between GPUs that it connects", false, true},
     .formats = kExact,
     .sum_array = sum_by_lane,
     .sum_vector = sum_as_dense<sum_by_lane>,
     .time = time_of_lane},
};

// As in "float, half".
std::string formats_of(Algorithm const& algorithm) {
  std::string names;
  for (NumberFormat const format : kNumberFormats) {
    if (!algorithm.has(format)) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(format));
  }
  return names;
}

// As in "direct (float), sparse_gather (float, half)".
std::string algorithm_names() {
  std::string names;
  for (auto const& algorithm : kAlgorithms) {
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", algorithm.about.name, formats_of(algorithm));
  }
  return names;
}

}  // namespace

std::span<Algorithm const> algorithms() { return kAlgorithms; }

AllreduceOptions with_environment(AllreduceOptions options) {
  constexpr char const* kVariable = "GPUPS_ALLREDUCE_ALGORITHM";
  char const* const set = std::getenv(kVariable);
  std::string const name = set == nullptr || *set == '\0' ? "auto" : set;
  if (name == "auto" || options.algorithm != "auto") return options;
  auto const all = algorithms();
  auto const named = std::find_if(all.begin(), all.end(), [&](Algorithm const& a) { return a.about.name == name; });
  GPUPS_REQUIRE(named != all.end(),
                "the environment variable {} is \"{}\" (there is no such allreduce algorithm): unset it, or set it to "
                "\"auto\" or to one of {}",
                kVariable, name, algorithm_names());
  options.algorithm = name;
  if (!named->has(options.format)) options.format = NumberFormat::kFloat;
  return options;
}

Algorithm const* algorithm_of(AllreduceOptions const& options) {
  bool const automatic = options.algorithm == "auto";
  for (auto const& algorithm : algorithms()) {
    bool const meant = automatic || options.algorithm == algorithm.about.name;
    if (meant && algorithm.has(options.format)) return automatic ? nullptr : &algorithm;
  }
  bool is_known = automatic;
  for (auto const& algorithm : algorithms()) is_known |= options.algorithm == algorithm.about.name;
  if (!is_known) {
    throw Error(
        fmt::format("there is no allreduce algorithm \"{}\" (nothing can be summed): use \"auto\", or one of {}",
                    options.algorithm, algorithm_names()));
  }
  throw Error(
      fmt::format("no allreduce algorithm \"{}\" has the format {} (sums would be other numbers): use \"auto\", "
                  "or one of {}",
                  options.algorithm, name_of(options.format), algorithm_names()));
}

}  // namespace comm

std::span<AllreduceAlgorithm const> allreduce_algorithms() {
  static std::vector<AllreduceAlgorithm> const all = [] {
    std::vector<AllreduceAlgorithm> about;
    for (auto const& algorithm : comm::algorithms()) about.push_back(algorithm.about);
    return about;
  }();
  return all;
}

char const* name_of(NumberFormat format) {
  static constexpr char const* kNames[] = {"float", "half", "bfloat", "e4m3", "e5m2", "int8", "int4", "int2"};
  auto const i = static_cast<std::size_t>(format);
  return i < std::size(kNames) ? kNames[i] : "of no name";
}

}  // namespace gpups
