// SPDX-License-Identifier: Apache-2.0
// Sums over the ranks of a group, as the training thread sees them.
#include <utility>

#include "comm/collective/sum_integers.hpp"
#include "comm/group_impl.hpp"
#include "kernels/check.hpp"

namespace gpups {
namespace {

comm::Reducer& reducer_of(Group::Impl const& group, char const* call) {
  GPUPS_REQUIRE(group.reducer != nullptr,
                "{} was called on a membership without a Store (its protocol carries the sums): make the Store first, "
                "and keep it until all sums are waited for",
                call);
  return *group.reducer;
}

}  // namespace

// The group sums a copy: where an exception ends the step, the caller's array may go while sums are still under way.
struct Reduction::Impl {
  std::shared_ptr<comm::SumIntegers> sum;  // null: it is over; without values where the rank is alone
  View<std::int64_t> values;
};

Reduction Group::begin_allreduce(Stream& stream, View<std::int64_t> values) const {
  auto& reducer = reducer_of(*impl_, "begin_allreduce");
  for (Device const device : {stream.device(), values.empty() ? stream.device() : values.device()}) {
    GPUPS_REQUIRE(
        device == reducer.device(),
        "begin_allreduce was given an array or a stream on {} and the store is on {} (they are summed there): "
        "use an array and a stream of the store's device",
        to_string(device), to_string(reducer.device()));
  }
  GPUPS_REQUIRE(values.size() <= comm::kSumElementsMax,
                "{} integers are summed at once (the most is {}): do it in parts", values.size(),
                comm::kSumElementsMax);
  GPUPS_REQUIRE(impl_->allreduces < kAllreducesMax,
                "{} sums are under way (each takes memory on all ranks): wait for one before the next is begun",
                kAllreducesMax);
  auto reduction = std::make_shared<Reduction::Impl>();
  Array<std::int64_t> sums(stream.device(), size() > 1 ? values.size() : 0);
  if (size() > 1) copy<std::int64_t>(stream, sums, values);
  reduction->sum = std::make_shared<comm::SumIntegers>(std::move(sums));
  reduction->values = values;
  if (size() > 1) {
    reduction->sum->given = stream.record();
    reducer.begin_collective(reduction->sum);
  }
  ++impl_->allreduces;
  return Reduction(std::move(reduction));
}

void Group::wait_allreduce(Stream& stream, Reduction const& reduction) const {
  auto const& impl = reduction.impl();
  GPUPS_REQUIRE(impl != nullptr && impl->sum != nullptr,
                "wait_allreduce was given a sum that is over (it has been written): begin another");
  auto& reducer = reducer_of(*impl_, "wait_allreduce");
  if (size() > 1) {
    reducer.wait_collective(*impl->sum);
    stream.after(impl->sum->ended);
    copy<std::int64_t>(stream, impl->values, impl->sum->values());
    stream.wait();
  }
  impl->sum.reset();
  --impl_->allreduces;
}

}  // namespace gpups
