// SPDX-License-Identifier: Apache-2.0
// Sums over the ranks of a group, as the training thread sees them.
#include <functional>
#include <utility>

#include "comm/collectives/allreduce/float_allreduce.hpp"
#include "comm/collectives/allreduce/integer_allreduce.hpp"
#include "comm/collectives/sparse/sparse_vector_allreduce.hpp"
#include "comm/collectives/sparse/streams.hpp"
#include "comm/group/group_impl.hpp"
#include "comm/group/start_collective.hpp"
#include "kernels/check.hpp"

namespace gpups {

struct CollectiveRequest::Impl {
  std::shared_ptr<comm::CollectiveTask> collective{};  // null: it is over
  std::shared_ptr<void const> place{};                 // its, while it is not
  std::function<void(Stream&)> write{};                // gives the sums to who began with a View
  std::function<ReducedVector()> take{};               // or else to who waits
};

namespace {

constexpr char const* kAllreduce = "begin_allreduce";

// Where the group has the algorithm for arrays on the device.
comm::Selector& selector_for(Group::Impl& group, Device device, AllreduceOptions const& options) {
  comm::Algorithm const* const algorithm = comm::algorithm_of(comm::with_environment(options));
  bool const is_alone = group.transport->size() == 1;
  GPUPS_REQUIRE(
      is_alone || algorithm == nullptr || algorithm->is_available(group.collectives().can_add_up(device)),
      "the algorithm \"nccl\" was asked for{} on {}, where NCCL does not connect the ranks (it cannot add up): use "
      "\"auto\", or give each rank a GPU of its own and call wait_connect_devices() first, which says by what "
      "they are connected",
      options.algorithm == "auto" ? " by GPUPS_ALLREDUCE_ALGORITHM" : "", to_string(device));
  return group.collectives().selector();
}

// An array of numbers that is to be summed.
template <class T>
void wait_check(Group::Impl& group, Stream& stream, View<T> values, char const* what) {
  comm::wait_check_collective(group, {stream.device(), comm::device_of(stream, values, kAllreduce, what)},
                              values.size(), what, kAllreduce);
}

// The group sums a copy: where an exception ends the step, the caller's array may go while sums are still under way.
template <class T>
Array<std::remove_const_t<T>> copy_of(Stream& stream, View<T> values) {
  Array<std::remove_const_t<T>> copied(stream.device(), values.size());
  copy<std::remove_const_t<T>>(stream, copied, values);
  return copied;
}

CollectiveRequest begin(Group::Impl& group, Stream& stream, CollectiveRequest::Impl request) {
  request.place = comm::start_collective(group, stream, request.collective);
  return CollectiveRequest(std::make_shared<CollectiveRequest::Impl>(std::move(request)));
}

template <class Sum, class T>
CollectiveRequest begin_writing(Group::Impl& group, Stream& stream, std::shared_ptr<Sum> const& sum, View<T> values) {
  auto const write = [sum, values](Stream& on) {
    copy<T>(on, values, sum->values());
    on.wait();
  };
  return begin(group, stream, {.collective = sum, .write = write});
}
template <class Sum>
CollectiveRequest begin_giving(Group::Impl& group, Stream& stream, std::shared_ptr<Sum> const& sum) {
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
  GPUPS_REQUIRE(
      !scatters || comm::has_stream_format(options.format),
      "begin_reduce_scatter was given the format {} (elements go as sparse streams, which do not have it): use "
      "float, half, bfloat or int8",
      name_of(options.format));
  GPUPS_REQUIRE(indices.size() == values.size() && indices.size() <= size,
                "a sparse vector of {} elements has {} indices and {} values (each element that is named has one): "
                "give as many of both",
                size, indices.size(), values.size());
  if (group.transport->size() == 1 && indices.device().is_host()) {  // else who sums looks at them
    comm::check_indices(size, indices);
  } else if (group.transport->size() == 1) {
    auto const on_host = to_host(stream, indices);
    comm::check_indices(size, View<std::uint32_t const>(on_host));
  }
  auto& selector = selector_for(group, stream.device(), options);
  bool const stays = keep != nullptr && group.transport->size() > 1;  // who is alone gets a vector of his own
  comm::SparseVector input_ready{.size = size};
  if (stays) {
    input_ready.kept = vector;
  } else {
    input_ready.indices = copy_of(stream, indices);
    input_ready.values = copy_of(stream, values);
  }
  return begin_giving(
      group, stream,
      std::make_shared<comm::SparseVectorAllreduce>(selector, operation, std::move(input_ready), options));
}

// Waits until the collective has ended, and gives what is inside.
CollectiveRequest::Impl wait_end(Group::Impl& group, Stream& stream, CollectiveRequest const& request,
                                 char const* call) {
  auto const& impl = request.impl();
  bool const writes = call == std::string_view("wait_allreduce");
  GPUPS_REQUIRE(impl != nullptr && impl->collective != nullptr,
                "{} was given a sum that is over (it has been written): begin another", call);
  GPUPS_REQUIRE(writes == (impl->write != nullptr),
                "{} was given a sum that was begun {} a View (there the sums are written, else they are handed out): "
                "call {}",
                call, writes ? "without" : "with", writes ? "wait_result" : "wait_allreduce");
  comm::wait_result(group, stream, *impl->collective);
  return std::exchange(*impl, {});
}

}  // namespace

CollectiveRequest Group::begin_allreduce(Stream& stream, View<std::int64_t> values) const {
  wait_check(*impl_, stream, values, "integers");
  return begin_writing(*impl_, stream, std::make_shared<comm::IntegerAllreduce>(copy_of(stream, values)), values);
}

CollectiveRequest Group::begin_allreduce(Stream& stream, View<float> values, AllreduceOptions const& options) const {
  wait_check(*impl_, stream, values, "floats");
  auto& selector = selector_for(*impl_, stream.device(), options);  // before there is a copy
  return begin_writing(*impl_, stream,
                       std::make_shared<comm::FloatAllreduce>(selector, copy_of(stream, values), options), values);
}

CollectiveRequest Group::begin_allreduce(Stream& stream, Array<float>&& values, AllreduceOptions const& options) const {
  wait_check(*impl_, stream, values.view(), "floats");
  return begin_giving(*impl_, stream,
                      std::make_shared<comm::FloatAllreduce>(selector_for(*impl_, stream.device(), options),
                                                             std::move(values), options));
}

CollectiveRequest Group::begin_allreduce(Stream& stream, View<float const> values, std::shared_ptr<void const> keep,
                                         AllreduceOptions const& options) const {
  wait_check(*impl_, stream, values, "floats");
  if (impl_->transport->size() == 1) return begin_allreduce(stream, copy_of(stream, values), options);
  return begin_giving(*impl_, stream,
                      std::make_shared<comm::FloatAllreduce>(selector_for(*impl_, stream.device(), options), values,
                                                             std::move(keep), options));
}

CollectiveRequest Group::begin_allreduce(Stream& stream, SparseView const& vector,
                                         AllreduceOptions const& options) const {
  return begin_vectors(*impl_, stream, comm::CollectiveKind::kSumSparse, vector, options);
}

CollectiveRequest Group::begin_reduce_scatter(Stream& stream, SparseView const& vector, WireFormat format) const {
  // The first half of that algorithm.
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
