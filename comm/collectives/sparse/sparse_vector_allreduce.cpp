// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/sparse/sparse_vector_allreduce.hpp"

#include <memory>
#include <utility>

#include "comm/collectives/allreduce/dense.hpp"
#include "comm/collectives/sparse/streams.hpp"
#include "kernels/sparse/encode_stream.hpp"
#include "kernels/sparse/sum_streams.hpp"
#include "kernels/sum/sum_arrays.hpp"

namespace gpups::comm {
namespace {

// Fills the array block by block, as the sum of one stream.
void fill_on_host(Stream& stream, SparseView vector, View<float> into) {
  check_last_index(vector.size, vector.indices);
  auto const listed = kernels::view_in_place(stream, {vector.indices, vector.values, 0, vector.size});
  kernels::sum<float>(stream, kernels::SumToDense<float>{{&listed.view, 1}, into});
}

CoTask<> fill_on_gpu(Communicator& comm, SparseView vector, View<float> into) {
  Array<std::uint32_t> const indices(Device::host(), vector.indices.size());
  copy<std::uint32_t>(comm.stream(), indices, vector.indices);
  co_await comm.stream_done();
  check_indices(vector.size, indices);
  memory::fill_bytes(comm.stream(), into.data(), 0, into.bytes());
  kernels::add_elements(comm.stream(), {.indices = vector.indices, .values = vector.values, .into = into});
}

// Returns this rank's vector on the host, to be sent in `format`.
CoTask<StreamInput<float>> on_host(Communicator& comm, SparseAllreduce sum, WireFormat format) {
  Stream& stream = comm.stream();
  StreamInput<float> terms{.stream = host_stream(stream),
                           .indices = sum.vector.indices,
                           .values = sum.vector.values,
                           .size = sum.vector.size,
                           .form = form_of(format),
                           .keep = sum.keep};
  if (!stream.device().is_host()) {
    struct Lists {
      Array<std::uint32_t> indices;
      Array<float> values;
    };
    std::size_t const count = sum.vector.indices.size();
    auto const lists = std::make_shared<Lists>(
        Lists{Array<std::uint32_t>(Device::host(), count), Array<float>(Device::host(), count)});
    copy<std::uint32_t>(stream, lists->indices, sum.vector.indices);
    copy<float>(stream, lists->values, sum.vector.values);
    co_await comm.stream_done();
    terms.indices = lists->indices;
    terms.values = lists->values;
    terms.keep = lists;
  }
  check_last_index(terms.size, terms.indices);
  co_return terms;
}

// Returns the result on the device of the caller.
CoTask<ReducedVector> on_device_of_caller(Communicator& comm, ReducedVector sum) {
  Stream& stream = comm.stream();
  if (stream.device().is_host()) co_return sum;
  ReducedVector there{.first = sum.first,
                      .size = sum.size,
                      .sparse = sum.sparse,
                      .indices = Array<std::uint32_t>(stream.device(), sum.indices.size()),
                      .values = Array<float>(stream.device(), sum.values.size())};
  copy<std::uint32_t>(stream, there.indices, sum.indices);
  copy<float>(stream, there.values, sum.values);
  co_await comm.stream_done();
  co_return there;
}

bool is_sparse(Streams const& streams, std::uint64_t size) {
  std::uint64_t count = 0;
  for (auto const& stream : streams.views()) count += stream.header().count;
  return static_cast<double>(count) < kDenseFromDensity * static_cast<double>(size);
}

// Returns the sum of the elements in `result`, as a list or as an array.
ReducedVector with_result(Communicator& comm, StreamSum<float>& total, ReducedVector result) {
  result.sparse = is_sparse(total.streams(), result.size);
  if (result.sparse) {
    auto entries = total.entries(comm);
    result.indices = std::move(entries.indices);
    result.values = std::move(entries.values);
  } else {
    result.values = Array<float>(Device::host(), result.size);
    total.write(comm, result.values);
  }
  return result;
}

// This rank's array on the host, and the host memory that receives the sums.
struct HostArray {
  StreamInput<float> terms;
  View<float> sums;
};

CoTask<HostArray> on_host(Communicator& comm, DenseAllreduce sum, WireFormat format) {
  Stream& stream = comm.stream();
  HostArray host{.terms = {.stream = host_stream(stream),
                           .size = sum.terms.size(),
                           .form = form_of(format),
                           .keep = sum.keep,
                           .array = sum.terms},
                 .sums = sum.values};
  if (stream.device().is_host()) co_return host;
  auto const values = std::make_shared<Array<float>>(Device::host(), sum.terms.size());
  copy<float>(stream, *values, sum.terms);
  co_await comm.stream_done();
  host.terms.keep = values;
  host.terms.array = *values;
  host.sums = *values;
  co_return host;
}

// Copies the sums to the array of the caller.
CoTask<> copy_back(Communicator& comm, View<float> into, View<float const> sums) {
  if (into.data() == sums.data()) co_return;
  copy<float>(comm.stream(), into, sums);
  co_await comm.stream_done();
}

}  // namespace

CoTask<ReducedVector> allreduce_densified(Communicator& comm, SparseAllreduce sum,
                                          CoTask<> (*sum_dense)(Communicator&, DenseAllreduce)) {
  auto const values = std::make_shared<Array<float>>(comm.stream().device(), sum.vector.size);
  if (comm.stream().device().is_host()) {
    fill_on_host(comm.stream(), sum.vector, *values);
  } else {
    co_await fill_on_gpu(comm, sum.vector, *values);
  }
  DenseAllreduce const of{.values = *values, .keep = values};
  co_await sum_dense(comm, of);
  co_return ReducedVector{.first = 0, .size = sum.vector.size, .values = std::move(*values)};
}

kernels::ValueForm form_of(WireFormat format) {
  switch (format) {
    case WireFormat::kHalf:
      return {kernels::StreamValues::kHalf, 0};
    case WireFormat::kBFloat16:
      return {kernels::StreamValues::kBFloat16, 0};
    case WireFormat::kInt8:
      return {kernels::StreamValues::kInt8, 0};
    default:
      return {kernels::StreamValues::kFloat, 0};
  }
}

CoTask<ReducedVector> allreduce_sparse_vector(Communicator& comm, SparseAllreduce sum, StreamAlgorithm algorithm) {
  StreamInput<float> const terms = co_await on_host(comm, sum, sum.format);
  auto total = co_await algorithm(comm, terms);
  ReducedVector result = with_result(comm, total, {.first = 0, .size = terms.size});
  co_return co_await on_device_of_caller(comm, std::move(result));
}

CoTask<ReducedVector> dsar_sparse_vector(Communicator& comm, SparseAllreduce sum) {
  StreamInput<float> const terms = co_await on_host(comm, sum, WireFormat::kFloat);
  ReducedVector result{.first = 0, .size = terms.size};
  auto const sums = std::make_shared<Array<float>>(Device::host(), result.size);
  DsarOutput const owners{.into = *sums,
                          .keep = sums,
                          .format = wire_format(sum.format),
                          .rounding_key = {.seed = comm.sequence_number()}};  // another one for each sum
  co_await dsar_split_allgather(comm, terms, owners);
  result.values = std::move(*sums);
  co_return co_await on_device_of_caller(comm, std::move(result));
}

// The sums may overwrite the terms, because the terms were copied into streams before.
CoTask<> allreduce_array_as_stream(Communicator& comm, DenseAllreduce sum, StreamAlgorithm algorithm) {
  HostArray const host = co_await on_host(comm, sum, sum.format);
  auto total = co_await algorithm(comm, host.terms);
  total.write(comm, host.sums);
  co_await copy_back(comm, sum.values, host.sums);
}

CoTask<> dsar_array(Communicator& comm, DenseAllreduce sum) {
  HostArray host = co_await on_host(comm, sum, WireFormat::kFloat);
  host.terms.keeps_array = host.sums.data() != host.terms.array.data();
  DsarOutput const owners{.into = host.sums,
                          .keep = host.terms.keep,
                          .format = wire_format(sum.format),
                          .rounding_key = {.seed = comm.sequence_number()}};  // another one for each sum
  co_await dsar_split_allgather(comm, host.terms, owners);
  co_await copy_back(comm, sum.values, host.sums);
}

CoTask<ReducedVector> reduce_scatter_sparse_vector(Communicator& comm, SparseAllreduce sum) {
  StreamInput<float> const terms = co_await on_host(comm, sum, sum.format);
  auto total = co_await sparse_reduce_scatter<float>(comm, terms);
  auto const& header = total.streams()[0].header();
  ReducedVector result = with_result(comm, total, {.first = header.first, .size = header.size});
  co_return co_await on_device_of_caller(comm, std::move(result));
}

}  // namespace gpups::comm
