// SPDX-License-Identifier: Apache-2.0
// Group::begin_allreduce of floats, of the whole vector or of its elements that are there, by each algorithm.
#include <cstring>

#include "bench/allreduces/way.hpp"
#include "comm/collective/sparse.hpp"

namespace gpups::bench {
namespace {

// Inputs outlive all sums of them.
std::shared_ptr<void const> kept(Input const& input) { return {std::shared_ptr<void>(), &input}; }

// The input stays as it is, as MPI_Allreduce's does.
class DenseSum final : public Way {
 public:
  DenseSum(Job const& job, Input const& input, AllreduceOptions options)
      : job_(job), input_(input), options_(std::move(options)) {}

  void wait_sum() override {
    auto const sum = job_.group.begin_allreduce(job_.stream, input_.dense.view(), kept(input_), options_);
    sums_ = job_.group.wait_sum(job_.stream, sum).values;
  }
  Result result() override { return {sums_}; }
  void drop_result() override { sums_ = {}; }

 private:
  Job job_;
  Input const& input_;
  AllreduceOptions options_;
  Array<float> sums_;
};

class SparseSum : public Way {
 public:
  SparseSum(Job const& job, Input const& input, View<float> sums, AllreduceOptions options)
      : job_(job), input_(input), sums_(sums), options_(std::move(options)) {}

  void wait_sum() override {
    sum_ = job_.group.wait_sum(job_.stream, job_.group.begin_allreduce(job_.stream, vector(), options_));
  }
  Result result() override {
    if (!sum_.sparse) return {sum_.values, sum_.first};
    auto const part = sums_.slice(sum_.first, sum_.size);
    std::memset(part.data(), 0, part.bytes());
    for (std::size_t i = 0; i < sum_.indices.size(); ++i) sums_[sum_.indices.data()[i]] = sum_.values.data()[i];
    return {part, sum_.first};
  }
  void drop_result() override { sum_ = {}; }

 protected:
  SparseView vector() const {
    return {sums_.size(), View<std::uint32_t const>(input_.indices), View<float const>(input_.values), kept(input_)};
  }

  Job job_;
  Input const& input_;
  View<float> sums_;
  AllreduceOptions options_;
  SumVector sum_;
};

// Each rank gets the sum of its slice.
class Push final : public SparseSum {
 public:
  using SparseSum::SparseSum;

  void wait_sum() override {
    sum_ = job_.group.wait_sum(job_.stream, job_.group.begin_reduce_scatter(job_.stream, vector(), options_.format));
  }
};

constexpr double kRounding = 1e-6, kHalfRounding = 4e-3;

WayEntry dense_entry(AllreduceAlgorithm const& algorithm) {
  AllreduceOptions const options{.algorithm = algorithm.name};
  return {"dense_" + options.algorithm,
          !algorithm.sparse,
          !algorithm.sparse,
          options.algorithm == "auto",
          kRounding,
          [options](Job const& job, Input const& input, View<float>) {
            return std::make_unique<DenseSum>(job, input, options);
          }};
}

template <class Kind>
WayEntry sparse_entry(std::string const& name, AllreduceOptions const& options) {
  bool const lossless = options.format == NumberFormat::kFloat;
  return {lossless ? name : name + "_half",
          false,
          lossless,
          name == "auto",
          lossless ? kRounding : kHalfRounding,
          [options](Job const& job, Input const& input, View<float> sums) {
            return std::make_unique<Kind>(job, input, sums, options);
          }};
}

// Of what a caller does well to hold, as the library itself does.
WayEntry held_entry(std::string const& name, AllreduceOptions const& options) {
  auto entry = sparse_entry<SparseSum>(name, options);
  entry.make = [options, of_list = entry.make](Job const& job, Input const& input,
                                               View<float> sums) -> std::unique_ptr<Way> {
    if (input.density < comm::kArrayFrom) return of_list(job, input, sums);
    return std::make_unique<DenseSum>(job, input, options);
  };
  return entry;
}

}  // namespace

std::vector<WayEntry> ways_of_group() {
  std::vector<WayEntry> ways;
  std::vector<AllreduceAlgorithm> between_hosts;
  for (auto const& algorithm : allreduce_algorithms()) {
    if (!algorithm.by_nccl) between_hosts.push_back(algorithm);
  }
  for (auto const& algorithm : between_hosts) ways.push_back(dense_entry(algorithm));
  ways.push_back(dense_entry({"auto", "", true}));
  for (auto const format : {NumberFormat::kFloat, NumberFormat::kHalf}) {
    for (auto const& algorithm : between_hosts) {
      AllreduceOptions const options{algorithm.name, format};
      if (algorithm.sparse) {
        ways.push_back(held_entry(algorithm.name, options));
      } else if (format == NumberFormat::kFloat) {
        ways.push_back(sparse_entry<SparseSum>(algorithm.name, options));
      }
    }
    ways.push_back(held_entry("auto", {"auto", format}));
    ways.push_back(sparse_entry<Push>("push", {"auto", format}));
    ways.back().by_default = false;  // it does less than the others
  }
  ways.push_back(sparse_entry<SparseSum>("auto", {}));
  ways.back().name = "auto_list";
  ways.back().by_default = false;  // another input than the others have
  return ways;
}

}  // namespace gpups::bench
