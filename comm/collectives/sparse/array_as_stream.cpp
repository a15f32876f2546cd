// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/sparse/array_as_stream.hpp"

#include <memory>
#include <utility>

namespace gpups::comm {
namespace {

// This rank's array on the host, and where the sums go there.
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

// The sums where the caller has its array.
CoTask<> copy_back(Communicator& comm, View<float> into, View<float const> sums) {
  if (into.data() == sums.data()) co_return;
  copy<float>(comm.stream(), into, sums);
  co_await comm.stream_done();
}

}  // namespace

// When the sums are written, all that is sent of the terms has been copied into streams.
CoTask<> allreduce_array_as_stream(Communicator& comm, DenseAllreduce sum, StreamAlgorithm algorithm) {
  HostArray const host = co_await on_host(comm, sum, sum.format);
  auto total = co_await algorithm(comm, host.terms);
  total.write(comm, host.sums);
  co_await copy_back(comm, sum.values, host.sums);
}

CoTask<> dsar_array(Communicator& comm, DenseAllreduce sum) {
  HostArray host = co_await on_host(comm, sum, WireFormat::kFloat);
  host.terms.array_stays = host.sums.data() != host.terms.array.data();
  DsarOutput const owners{.into = host.sums,
                          .keep = host.terms.keep,
                          .format = wire_format(sum.format),
                          .rounding_key = {.seed = comm.sequence_number()}};  // of each sum its own
  co_await dsar_split_allgather(comm, host.terms, owners);
  co_await copy_back(comm, sum.values, host.sums);
}

}  // namespace gpups::comm
