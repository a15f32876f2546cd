// SPDX-License-Identifier: Apache-2.0
// Algorithms that sum vectors with few elements that are not zero over the ranks, as sparse streams. All work with any
// number of ranks, and every rank gets the same bits. T is float, or std::int64_t for whole units of a grid.
//
// Where values lose something by their form on the wire, or elements are dropped, the rank that does it adds what is
// lost to its residual: the sum and the residuals of all ranks are what was given, exactly so for units.
//
// k elements on each of P ranks, K in the sum, w = bytes of a value and its place; bytes that each rank sends:
//   sparse_allgather       (P - 1) k w, and P - 1 messages
//   ssar_recursive_doubling log2 P messages of growing streams: (k + ... + K) w
//   ssar_split_allgather          (P - 1)/P (k + K) w, and 2 (P - 1) messages
//   dsar_split_allgather    (P - 1)/P (k w + N b), with b bytes for a number of the sum
//   spardl       2 (P - 1)/P k w whatever P, by keeping only k elements of the sum
#pragma once

#include <memory>

#include "comm/collectives/sparse/streams.hpp"
#include "kernels/wire/format.hpp"

namespace gpups::comm {

// Of the host: a communicator's stream, or one with as many threads.
inline Stream host_stream(Stream const& stream) {
  return stream.device().is_host() ? stream : Stream(Device::host(), stream.threads());
}

// A rank's part: a list of elements, or an array of which those count that are not 0.
template <class T>
struct StreamInput {
  Stream stream;                      // of the host: where all is, and whose threads do the work
  View<std::uint32_t const> indices;  // (n), ascending
  View<T const> values;               // (n)
  std::uint64_t size;                 // of the vector
  kernels::ValueForm form;
  View<T> residual = {};             // (size), or empty: nobody needs what is lost
  std::shared_ptr<void const> keep;  // owns all
  View<T const> array = {};          // (size), where there is no list
  bool array_stays = false;          // as it is: the sums are not written over it
};

// The sum, the same on all ranks: streams whose ranges follow each other; those of one range are its terms.
template <class T>
class StreamSum {
 public:
  StreamSum(Stream stream, Streams streams) : stream_(std::move(stream)), streams_(std::move(streams)) {}
  Streams const& streams() const { return streams_; }

  // Both throw PeerError where a stream that another rank sent turns out to be wrong.
  void write(Communicator const& comm, View<T> into, bool add = false);  // (size): into = the sum, or +=
  struct SumElements {
    Array<std::uint32_t> indices;
    Array<T> values;
  };
  SumElements entries(Communicator const& comm);

 private:
  Stream stream_;
  Streams streams_;
};

// Every rank gets the streams of all, and adds them up.
template <class T>
CoTask<StreamSum<T>> sparse_allgather(Communicator& comm, StreamInput<T> terms);

// SparCML's SSAR_Recursive_double (Renggli et al., SC 2019).
template <class T>
CoTask<StreamSum<T>> ssar_recursive_doubling(Communicator& comm, StreamInput<T> terms);

// SparCML's SSAR_Split_allgather: each rank sums one slice, and gives it to all.
template <class T>
CoTask<StreamSum<T>> ssar_split_allgather(Communicator& comm, StreamInput<T> terms);

// The first half of it: the terms of this rank's slice, in order of the ranks.
template <class T>
CoTask<StreamSum<T>> sparse_reduce_scatter(Communicator& comm, StreamInput<T> terms);

inline constexpr std::size_t kBucket = 512;  // numbers with one scale, where all of a slice are sent

// SparCML's DSAR_Split_allgather: sums that are to be dense. They go in a format of the wire, in buckets with a scale,
// rounded so that their mean error is zero where the format allows for it; what a slice's sums lose, its owner keeps.
struct DsarOutput {
  View<float> into;                  // (size): the sum
  std::shared_ptr<void const> keep;  // owns it
  kernels::Format format = kernels::Format::kFloat;
  kernels::RoundingKey rounding_key = {};
};
CoTask<> dsar_split_allgather(Communicator& comm, StreamInput<float> terms, DsarOutput owners);

// SparDL's reduce-scatter that makes sparse again (Zhao et al., ICDE 2024), with global residuals, and a gather: a rank
// sends the most / ranks largest elements of each slice and forgets none of the others. REQUIRES: a list.
template <class T>
CoTask<StreamSum<T>> spardl(Communicator& comm, StreamInput<T> terms, std::size_t k);

}  // namespace gpups::comm
