// SPDX-License-Identifier: Apache-2.0
// Group::begin_allreduce() of floats, of the whole vector or of its elements that are present, with each algorithm; and
// TopKAllreduce, with as many elements as are present.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "bench/allreduces/way.hpp"
#include "comm/collectives/allreduce/dense.hpp"
#include "gpups/top_k_allreduce.hpp"
#include "kernels/base/check.hpp"

namespace gpups::bench {
namespace {

// Returns an owner that does nothing: inputs outlive all sums of them.
std::shared_ptr<void const> kept(Input const& input) { return {std::shared_ptr<void>(), &input}; }

// Does not change the input, as MPI_Allreduce.
class DenseAllreduce final : public Way {
 public:
  DenseAllreduce(Job const& job, Input const& input, AllreduceOptions options)
      : job_(job), input_(input), options_(std::move(options)) {}

  void wait_sum() override {
    auto const sum = job_.group.begin_allreduce(job_.stream, input_.dense.view(), kept(input_), options_);
    sums_ = job_.group.wait_result(job_.stream, sum).values;
  }
  Result result() override { return {sums_}; }
  void drop_result() override { sums_ = {}; }

 private:
  Job job_;
  Input const& input_;
  AllreduceOptions options_;
  Array<float> sums_;
};

class SparseAllreduce : public Way {
 public:
  SparseAllreduce(Job const& job, Input const& input, View<float> sums, AllreduceOptions options)
      : job_(job), input_(input), sums_(sums), options_(std::move(options)) {}

  void wait_sum() override {
    sum_ = job_.group.wait_result(job_.stream, job_.group.begin_allreduce(job_.stream, vector(), options_));
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
  ReducedVector sum_;
};

// Reduce-scatter: each rank gets the sum of its slice.
class Push final : public SparseAllreduce {
 public:
  using SparseAllreduce::SparseAllreduce;

  void wait_sum() override {
    sum_ = job_.group.wait_result(job_.stream, job_.group.begin_reduce_scatter(job_.stream, vector(), options_.format));
  }
};

// TopKAllreduce with "spardl", in halves: a sum has as many elements as each rank gives, and all others stay in
// residuals. The input is the same in each run, so the applied sums plus the residuals of all ranks are the exact sum
// times the number of runs.
class TopK final : public Way {
 public:
  TopK(Job const& job, Input const& input, View<float> sums) : job_(job), input_(input), sums_(sums) {}

  void wait_sum() override {
    if (!sum_) sum_.emplace(job_.group, sums_.size(), options());
    sum_->begin(job_.stream, input_.dense.view());
    sum_->wait(job_.stream, sums_);
    if (!is_checked_) keep_account();
  }
  // Returns the sum of the input, from the applied sums and the residuals. The account ends here, so that it does not
  // slow down timed runs.
  Result result() override {
    auto const there = static_cast<double>(std::count_if(sums_.begin(), sums_.end(), [](float x) { return x != 0; }));
    double const wanted = input_.density * static_cast<double>(sums_.size());
    GPUPS_REQUIRE(there >= .9 * wanted && there <= 1.1 * wanted + job_.group.size(),
                  "a sum of the largest elements has {} elements instead of {:.0f} (its bytes are not the usual "
                  "ones): increase runs_before_usual",
                  there, wanted);
    Array<std::int64_t> const waits(Device::host(), sums_.size());
    copy<std::int64_t>(job_.stream, waits, sum_->residual());
    job_.group.wait_allreduce(job_.stream, job_.group.begin_allreduce(job_.stream, waits));
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      sums_[i] = static_cast<float>(std::ldexp(static_cast<double>(applied_[i] + waits[i]), kGrid) / runs_);
    }
    is_checked_ = true;
    applied_ = {};
    return {sums_};
  }

 private:
  TopKOptions options() const {
    return {.density = input_.density, .algorithm = "spardl", .format = WireFormat::kHalf, .grid_log2 = kGrid};
  }
  void keep_account() {
    if (runs_++ == 0) {
      applied_ = Array<std::int64_t>(Device::host(), sums_.size());
      std::memset(applied_.data(), 0, applied_.bytes());
    }
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      applied_[i] += static_cast<std::int64_t>(std::ldexp(static_cast<double>(sums_[i]), -kGrid));
    }
  }

  static constexpr int kGrid = -30;

  Job job_;
  Input const& input_;
  View<float> sums_;
  std::optional<TopKAllreduce> sum_;  // made at the first run, so that it uses memory only if it runs
  Array<std::int64_t> applied_;       // in units
  int runs_ = 0;                      // the number of runs in the account
  bool is_checked_ = false;
};

constexpr double kRounding = 1e-6, kHalfRounding = 4e-3;

WayEntry dense_entry(AllreduceAlgorithm const& algorithm) {
  AllreduceOptions const options{.algorithm = algorithm.name};
  return {"dense_" + options.algorithm, !algorithm.sparse, !algorithm.sparse, kRounding,
          [options](Job const& job, Input const& input, View<float>) {
            return std::make_unique<DenseAllreduce>(job, input, options);
          }};
}

template <class Kind>
WayEntry sparse_entry(std::string const& name, AllreduceOptions const& options) {
  bool const lossless = options.format == WireFormat::kFloat;
  return {lossless ? name : name + "_half", false, lossless, lossless ? kRounding : kHalfRounding,
          [options](Job const& job, Input const& input, View<float> sums) {
            return std::make_unique<Kind>(job, input, sums, options);
          }};
}

// A sparse allreduce that is given a dense array if the density is high, as the library itself does.
WayEntry kept_input_entry(std::string const& name, AllreduceOptions const& options) {
  auto entry = sparse_entry<SparseAllreduce>(name, options);
  entry.make = [options, of_list = entry.make](Job const& job, Input const& input,
                                               View<float> sums) -> std::unique_ptr<Way> {
    if (input.density < comm::kDenseFromDensity) return of_list(job, input, sums);
    return std::make_unique<DenseAllreduce>(job, input, options);
  };
  return entry;
}

// The first run has no residuals. After a hundred runs with the same input fewer bytes are sent than with changing
// gradients.
WayEntry top_k_entry() {
  return {.name = "top_k_half",
          .is_dense = false,
          .by_default = false,  // the elements that are not sent stay in residuals
          .error_max = kRounding,
          .make = [](Job const& job, Input const& input,
                     View<float> sums) { return std::make_unique<TopK>(job, input, sums); },
          .runs_before_usual = 5};
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
  for (auto const format : {WireFormat::kFloat, WireFormat::kHalf}) {
    for (auto const& algorithm : between_hosts) {
      AllreduceOptions const options{algorithm.name, format};
      if (algorithm.sparse) {
        ways.push_back(kept_input_entry(algorithm.name, options));
      } else if (format == WireFormat::kFloat) {
        ways.push_back(sparse_entry<SparseAllreduce>(algorithm.name, options));
      }
    }
    ways.push_back(kept_input_entry("auto", {"auto", format}));
    ways.push_back(sparse_entry<Push>("push", {"auto", format}));
    ways.back().by_default = false;  // its result is smaller than that of the others
  }
  ways.push_back(sparse_entry<SparseAllreduce>("auto", {}));
  ways.back().name = "auto_list";
  ways.back().by_default = false;  // its input differs from that of the others
  ways.push_back(top_k_entry());
  return ways;
}

}  // namespace gpups::bench
