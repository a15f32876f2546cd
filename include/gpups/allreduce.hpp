// SPDX-License-Identifier: Apache-2.0
// Types of Group's collectives: wire formats, algorithms, options, sparse vectors and requests.
//
//   AllreduceOptions const options{.algorithm = "auto", .format = WireFormat::kHalf};
//   CollectiveRequest const sum = group.begin_allreduce(stream, values, options);
//   do_other_work();
//   group.wait_allreduce(stream, sum);  // `values` now holds the sum over all ranks
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "gpups/array.hpp"
#include "gpups/compiler.hpp"

namespace gpups {

// The wire format of floats in a collective. Formats of 8 bits and fewer have one scale per block of up to 512 values
// (dense) or 65,536 values (sparse). Values are rounded to the nearest number of the format, except the sums that
// "dsar_split_allgather" sends as integers: these are rounded stochastically, so that their expected error is zero
// (QSGD, Alistarh et al., NeurIPS 2017). Rounding errors are lost; only TopKAllreduce keeps them in a residual.
//
// Values outside the range of a format are not an error. kFloat sends every value exactly, infinities and NaN included.
//   kHalf      magnitudes beyond 65,504 become 65,504 with the same sign; infinities and NaN become NaN
//   kBFloat16    the same with 3.3895e38, the largest bfloat16
//   all others a block with a magnitude of 2^127 or more, an infinity or a NaN becomes NaN as a whole
// The rule applies to all numbers that the algorithm sends: terms, and possibly partial sums. For example, the sum of
// 40,000 on each of two ranks in kHalf is 80,000 with an algorithm that sends only terms, and 65,504 with one that
// sends the sum.
enum class WireFormat : std::uint8_t { kFloat, kHalf, kBFloat16, kInt8, kInt4, kInt2 };
// Returns the name of a format, such as "float", "half" or "int8".
GPUPS_EXPORT char const* name_of(WireFormat format);

// Options of an allreduce of floats. They must be equal on all ranks; if they differ, the wait throws PeerError.
struct AllreduceOptions {
  // A name of allreduce_algorithms(), or "auto": the algorithm with the shortest modelled time. The model uses the size
  // and the density of the vectors, the number of ranks, and the link costs (latency, bandwidth, merging, coding),
  // see Group::explain_allreduces(). With equal link costs, "auto" gives equal bits in every run. The environment
  // variable GPUPS_ALLREDUCE_ALGORITHM replaces "auto".
  //
  // The first sum with "auto" measures the link costs, usually in less than .2 s. Rank 0 writes them to a small file
  // for later jobs on the same machines, in the folder GPUPS_CACHE_DIR, or XDG_CACHE_HOME/gpups, or HOME/.cache/gpups.
  // With an empty GPUPS_CACHE_DIR nothing is written. Simulated groups neither measure nor write.
  std::string algorithm = "auto";
  // The largest loss of precision that the caller accepts. A named algorithm uses this format and must support it.
  // "auto" may also use a format whose largest error is not larger: kFloat, or kBFloat16 instead of a format with
  // scales. For an expected error of zero over many sums, set the algorithm "dsar_split_allgather".
  WireFormat format = WireFormat::kFloat;
};

// An algorithm of allreduce_algorithms().
struct AllreduceAlgorithm {
  char const* name;
  char const* description;  // a few words
  bool sparse;              // sends only nonzero elements, in any format; otherwise all elements, as floats
  bool by_nccl = false;     // available only if NCCL connects the devices of all ranks: Group::wait_connect_devices()
};
// Returns all algorithms. Every algorithm can sum arrays and sparse vectors. docs/exchange.md compares them.
GPUPS_EXPORT std::span<AllreduceAlgorithm const> allreduce_algorithms();

// A sparse vector of `size` floats: elements whose indices are not listed are zero. Above a density of about 25 %, a
// dense array is usually faster.
//
//   SparseView const gradient{.size = 1'000'000, .indices = indices, .values = values};
//   CollectiveRequest const request = group.begin_allreduce(stream, gradient);
//   ReducedVector const sum = group.wait_result(stream, request);
struct SparseView {
  std::uint64_t size = 0;               // at most 2^32
  View<std::uint32_t const> indices{};  // (count), strictly ascending
  View<float const> values{};           // (count)
  // Optional owner of both arrays. If it is set, the collective reads the arrays in place, and they must not change
  // until the collective is done. If it is null, the collective copies the arrays.
  std::shared_ptr<void const> keep{};
};

// The result of a collective: elements first .. first + size - 1 of the sum, sparse or dense.
struct ReducedVector {
  std::uint64_t first = 0, size = 0;
  bool sparse = false;             // true: elements whose indices are not listed are zero
  Array<std::uint32_t> indices{};  // (count), strictly ascending, indices of the whole vector; empty if not sparse
  Array<float> values{};           // (count) if sparse, else (size)
};

// The handle of a collective in flight, from Group::begin_...(). Copies are cheap and refer to the same collective.
// Pass it to Group::wait_allreduce() or Group::wait_result() once.
class CollectiveRequest {
 public:
  CollectiveRequest() = default;

  struct Impl;
  explicit CollectiveRequest(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> const& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace gpups
