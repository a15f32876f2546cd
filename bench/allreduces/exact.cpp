// SPDX-License-Identifier: Apache-2.0
// Group::begin_allreduce() of integers: the sum has the same bits in any order, but is twice as large as one of floats.
#include <cstdint>

#include "bench/allreduces/way.hpp"

namespace gpups::bench {
namespace {

constexpr float kUnits = 1073741824.0F;  // units of 1

class Exact final : public Way {
 public:
  Exact(Job const& job, Input const& input, View<float> sums) : job_(job), input_(input), sums_(sums) {}

  void wait_sum() override {
    Array<std::int64_t> const terms(Device::host(),
                                    sums_.size());  // allocated here, so that it uses memory only while it runs
    std::int64_t* const integers = terms.data();
    float const* const values = input_.dense.data();
    for (std::size_t i = 0; i < sums_.size(); ++i) integers[i] = static_cast<std::int64_t>(values[i] * kUnits);
    job_.group.wait_allreduce(job_.stream, job_.group.begin_allreduce(job_.stream, terms));
    float* const sums = sums_.data();
    for (std::size_t i = 0; i < sums_.size(); ++i) sums[i] = static_cast<float>(integers[i]) / kUnits;
  }
  Result result() override { return {sums_}; }

 private:
  Job job_;
  Input const& input_;
  View<float> sums_;
};

}  // namespace

std::unique_ptr<Way> make_exact(Job const& job, Input const& input, View<float> sums) {
  return std::make_unique<Exact>(job, input, sums);
}

}  // namespace gpups::bench
