// SPDX-License-Identifier: Apache-2.0
// Algorithms that sum sparse vectors over the ranks, as sparse streams. All work with any number of ranks, and every
// rank gets equal bits. T is float, or std::int64_t for whole units of a grid.
//
// A rank that rounds values for the wire or drops elements adds the loss to its residual: the sum and the residuals of
// all ranks add up to the input, exactly so for units.
//
// With k elements on each of P ranks, K elements in the sum, N elements in the vector, and w bytes for a value and its
// position, each rank sends:
//   sparse_allgather         (P - 1) k w, and P - 1 messages
//   ssar_recursive_doubling  log2 P messages of growing streams: (k + ... + K) w
//   ssar_split_allgather     (P - 1)/P (k + K) w, and 2 (P - 1) messages
//   dsar_split_allgather     (P - 1)/P (k w + N b), with b bytes for a number of the sum
//   spardl                   2 (P - 1)/P k w for any P, because it keeps only k elements of the sum
#pragma once

#include <memory>

#include "comm/collectives/sparse/streams.hpp"
#include "kernels/codec/format.hpp"

namespace gpups::comm {

// Returns the stream if it is on the host, else a host stream with as many threads.
inline Stream host_stream(Stream const& stream) {
  return stream.device().is_host() ? stream : Stream(Device::host(), stream.threads());
}

// A rank's input: a list of elements, or an array of which only the nonzero elements are sent.
template <class T>
struct StreamInput {
  Stream stream;                      // of the host, as are all arrays; its threads do the work
  View<std::uint32_t const> indices;  // (n), ascending
  View<T const> values;               // (n)
  std::uint64_t size;                 // of the vector
  kernels::ValueForm form;
  View<T> residual = {};             // (size): receives losses; empty: losses are dropped
  std::shared_ptr<void const> keep;  // owns all arrays
  View<T const> array = {};          // (size), in place of a list
  bool keeps_array = false;          // the sums are not written over the array
};

// The sum, equal on all ranks: streams whose ranges follow each other. Streams of the same range are terms that are
// added when the sum is read.
template <class T>
class StreamSum {
 public:
  StreamSum(Stream stream, Streams streams) : stream_(std::move(stream)), streams_(std::move(streams)) {}
  Streams const& streams() const { return streams_; }

  // Both throw PeerError if a stream of another rank turns out to be invalid.
  void write(Communicator const& comm, View<T> into, bool add = false);  // (size): into = the sum, or +=
  struct SumElements {
    Array<std::uint32_t> indices;
    Array<T> values;
  };
  // Returns the sum as a list.
  SumElements entries(Communicator const& comm);

 private:
  Stream stream_;
  Streams streams_;
};

// Every rank receives the streams of all ranks and adds them up.
template <class T>
CoTask<StreamSum<T>> sparse_allgather(Communicator& comm, StreamInput<T> terms);

// Recursive doubling of sparse streams: SparCML's SSAR_Recursive_double (Renggli et al., SC 2019).
template <class T>
CoTask<StreamSum<T>> ssar_recursive_doubling(Communicator& comm, StreamInput<T> terms);

// SparCML's SSAR_Split_allgather: each rank sums one slice and sends the sums to all ranks.
template <class T>
CoTask<StreamSum<T>> ssar_split_allgather(Communicator& comm, StreamInput<T> terms);

// The first half of it. Returns the terms of this rank's slice, in the order of the ranks.
template <class T>
CoTask<StreamSum<T>> sparse_reduce_scatter(Communicator& comm, StreamInput<T> terms);

inline constexpr std::size_t kBucket = 512;  // numbers with one scale, in sums that are sent as arrays

// The output of dsar_split_allgather().
struct DsarOutput {
  View<float> into;                                  // (size): receives the sum
  std::shared_ptr<void const> keep;                  // owns it
  kernels::Format format = kernels::Format::kFloat;  // of the sums on the wire
  kernels::RoundingKey rounding_key = {};
};
// SparCML's DSAR_Split_allgather: each rank sums one slice and sends the sums to all ranks as a dense array, in a wire
// format with one scale per bucket, rounded with zero mean error if the format allows it. The owner of a slice puts the
// rounding errors of its sums into its residual.
CoTask<> dsar_split_allgather(Communicator& comm, StreamInput<float> terms, DsarOutput owners);

// SparDL's reduce-scatter, which truncates partial sums, with global residuals, then an allgather (Zhao et al., ICDE
// 2024): a rank sends the k / ranks largest elements of each slice, and puts the others into its residual. REQUIRES: a
// list.
template <class T>
CoTask<StreamSum<T>> spardl(Communicator& comm, StreamInput<T> terms, std::size_t k);

}  // namespace gpups::comm
