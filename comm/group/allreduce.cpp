// SPDX-License-Identifier: Apache-2.0
// The collectives of Group, for the thread that calls them.
#include <functional>
#include <utility>

#include "comm/collectives/allreduce/float_allreduce.hpp"
#include "comm/collectives/allreduce/integer_allreduce.hpp"
#include "comm/collectives/sparse/sparse_vector_allreduce.hpp"
#include "comm/collectives/sparse/streams.hpp"
#include "comm/group/group_impl.hpp"
#include "comm/group/start_collective.hpp"
#include "kernels/base/check.hpp"

namespace gpups {

struct CollectiveRequest::Impl {
  Group::Impl const* group{};                          // the membership that started it
  std::shared_ptr<comm::CollectiveTask> collective{};  // null after it was waited for
  std::shared_ptr<void const> place{};                 // keeps its place in InflightCollectives
  std::function<void(Stream&)> write{};                // writes the sums to the View, if it was started with one
  std::function<ReducedVector()> take{};               // returns the sums otherwise
};

namespace {

constexpr char const* kAllreduce = "begin_allreduce";

// Returns the selector. Throws Error if the options set an algorithm that cannot sum arrays on the device.
comm::Selector& selector_for(Group::Impl& group, Device device, AllreduceOptions const& options) {
  comm::Algorithm const* const algorithm = comm::algorithm_of(comm::with_environment(options));
  bool const is_alone = group.transport->size() == 1;
  GPUPS_REQUIRE(
      is_alone || algorithm == nullptr || algorithm->is_available(group.collectives().can_add_up(device)),
      "the algorithm \"nccl\" was requested{} on {}, but NCCL does not connect the ranks there (so it cannot sum): use "
      "\"auto\", or give each rank its own GPU and call wait_connect_devices() first, which returns what connects "
      "the ranks",
      options.algorithm == "auto" ? " by GPUPS_ALLREDUCE_ALGORITHM" : "", to_string(device));
  return group.collectives().selector();
}

// Checks an array that is to be summed.
template <class T>
void wait_check(Group::Impl& group, Stream& stream, View<T> values, char const* what) {
  comm::wait_check_collective(group, {stream.device(), comm::device_of(stream, values, kAllreduce, what)},
                              values.size(), what, kAllreduce);
}

// The group sums a copy: if an exception ends the step, the caller may free its array while the sum is in flight.
template <class T>
Array<std::remove_const_t<T>> copy_of(Stream& stream, View<T> values) {
  Array<std::remove_const_t<T>> copied(stream.device(), values.size());
  copy<std::remove_const_t<T>>(stream, copied, values);
  return copied;
}

CollectiveRequest begin(Group::Impl& group, Stream& stream, CollectiveRequest::Impl request) {
  request.group = &group;
  request.place = comm::start_collective(group, stream, request.collective);
  return CollectiveRequest(std::make_shared<CollectiveRequest::Impl>(std::move(request)));
}

template <class Sum, class T>
CollectiveRequest begin_in_place(Group::Impl& group, Stream& stream, std::shared_ptr<Sum> const& sum, View<T> values) {
  auto const write = [sum, values](Stream& on) {
    copy<T>(on, values, sum->values());
    on.wait();
  };
  return begin(group, stream, {.collective = sum, .write = write});
}
template <class Sum>
CollectiveRequest begin_returned(Group::Impl& group, Stream& stream, std::shared_ptr<Sum> const& sum) {
  return begin(group, stream, {.collective = sum, .take = [sum] { return sum->take(); }});
}

CollectiveRequest begin_vectors(Group::Impl& group, Stream& stream, comm::CollectiveKind operation,
                                SparseView const& vector, AllreduceOptions const& options) {
  auto const& [size, indices, values, keep] = vector;
  bool const scatters = operation == comm::CollectiveKind::kScatterSparse;
  char const* const call = scatters ? "begin_reduce_scatter" : kAllreduce;
  comm::wait_check_collective(group,
                              {stream.device(), comm::device_of(stream, indices, call, "indices"),
                               comm::device_of(stream, values, call, "values")},
                              size, "floats", call);
  GPUPS_REQUIRE(!scatters || comm::has_stream_format(options.format),
                "begin_reduce_scatter was given the format {} (it sends sparse streams, which do not support it): use "
                "float, half, bfloat or int8",
                name_of(options.format));
  GPUPS_REQUIRE(indices.size() == values.size() && indices.size() <= size,
                "a sparse vector of {} elements has {} indices and {} values (each index has one value, and at "
                "most one index is given per element): give as many indices as values",
                size, indices.size(), values.size());
  if (group.transport->size() == 1 && indices.device().is_host()) {  // otherwise the algorithm checks them
    comm::check_indices(size, indices);
  } else if (group.transport->size() == 1) {
    auto const on_host = to_host(stream, indices);
    comm::check_indices(size, View<std::uint32_t const>(on_host));
  }
  auto& selector = selector_for(group, stream.device(), options);
  bool const keeps_input = keep != nullptr && group.transport->size() > 1;  // a rank that is alone returns a copy
  comm::SparseVector input{.size = size};
  if (keeps_input) {
    input.kept = vector;
  } else {
    input.indices = copy_of(stream, indices);
    input.values = copy_of(stream, values);
  }
  return begin_returned(group, stream,
                        std::make_shared<comm::SparseVectorAllreduce>(selector, operation, std::move(input), options));
}

// Waits until the collective has ended, and moves out the content of the request.
CollectiveRequest::Impl wait_end(Group::Impl& group, Stream& stream, CollectiveRequest const& request,
                                 char const* call) {
  auto const& impl = request.impl();
  bool const writes = call == std::string_view("wait_allreduce");
  GPUPS_REQUIRE(impl != nullptr && impl->collective != nullptr,
                "{} was given no sum, or a sum that was waited for before: begin another", call);
  GPUPS_REQUIRE(writes == (impl->write != nullptr),
                "{} was given a sum that was begun {} a View (only sums of a View are written in place, others are "
                "returned): call {}",
                call, writes ? "without" : "with", writes ? "wait_result" : "wait_allreduce");
  GPUPS_REQUIRE(
      impl->group == &group,
      "{} was given a sum of another membership (only the rank that started a sum can wait for it): call it on "
      "the Group that started the sum",
      call);
  comm::wait_result(group, stream, *impl->collective);
  return std::exchange(*impl, {});
}

}  // namespace

CollectiveRequest Group::begin_allreduce(Stream& stream, View<std::int64_t> values) const {
  wait_check(*impl_, stream, values, "integers");
  return begin_in_place(*impl_, stream, std::make_shared<comm::IntegerAllreduce>(copy_of(stream, values)), values);
}

CollectiveRequest Group::begin_allreduce(Stream& stream, View<float> values, AllreduceOptions const& options) const {
  wait_check(*impl_, stream, values, "floats");
  auto& selector = selector_for(*impl_, stream.device(), options);  // before there is a copy
  return begin_in_place(*impl_, stream,
                        std::make_shared<comm::FloatAllreduce>(selector, copy_of(stream, values), options), values);
}

CollectiveRequest Group::begin_allreduce(Stream& stream, Array<float>&& values, AllreduceOptions const& options) const {
  wait_check(*impl_, stream, values.view(), "floats");
  return begin_returned(*impl_, stream,
                        std::make_shared<comm::FloatAllreduce>(selector_for(*impl_, stream.device(), options),
                                                               std::move(values), options));
}

CollectiveRequest Group::begin_allreduce(Stream& stream, View<float const> values, std::shared_ptr<void const> keep,
                                         AllreduceOptions const& options) const {
  wait_check(*impl_, stream, values, "floats");
  if (impl_->transport->size() == 1) return begin_allreduce(stream, copy_of(stream, values), options);
  return begin_returned(*impl_, stream,
                        std::make_shared<comm::FloatAllreduce>(selector_for(*impl_, stream.device(), options), values,
                                                               std::move(keep), options));
}

CollectiveRequest Group::begin_allreduce(Stream& stream, SparseView const& vector,
                                         AllreduceOptions const& options) const {
  return begin_vectors(*impl_, stream, comm::CollectiveKind::kSumSparse, vector, options);
}

CollectiveRequest Group::begin_reduce_scatter(Stream& stream, SparseView const& vector, WireFormat format) const {
  // A reduce-scatter is the first half of this algorithm.
  return begin_vectors(*impl_, stream, comm::CollectiveKind::kScatterSparse, vector,
                       {.algorithm = "ssar_split_allgather", .format = format});
}

void Group::wait_allreduce(Stream& stream, CollectiveRequest const& request) const {
  wait_end(*impl_, stream, request, "wait_allreduce").write(stream);
}

ReducedVector Group::wait_result(Stream& stream, CollectiveRequest const& request) const {
  return wait_end(*impl_, stream, request, "wait_result").take();
}

}  // namespace gpups
