// SPDX-License-Identifier: Apache-2.0
// Types of Group's collectives: wire formats, algorithms, options, sparse vectors, and handles of sums in flight.
//
//   AllreduceOptions const options{.algorithm = "auto", .format = WireFormat::kHalf};
//   CollectiveRequest const sum = group.begin_allreduce(stream, values, options);
//   ... other work ...
//   group.wait_allreduce(stream, sum);  // `values` now holds the sum over all ranks
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "gpups/array.hpp"

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
// The rule applies to whatever the algorithm sends: terms, and partial sums. So the sum of 40,000 on each of two ranks
// is 80,000 in kHalf with an algorithm that sends terms only, and 65,504 with one that sends the sum.
enum class WireFormat : std::uint8_t { kFloat, kHalf, kBFloat16, kE4M3, kE5M2, kInt8, kInt4, kInt2 };
// Returns the name of a format, such as "float", "half" or "int8".
char const* name_of(WireFormat format);

// Options of an allreduce of floats, equal on all ranks.
struct AllreduceOptions {
  // A name of allreduce_algorithms(), or "auto": the algorithm of least modelled time. The model has the size and the
  // density of the vectors, the number of ranks, and the costs of the links (latency, bandwidth, merging, coding),
  // which are measured once and cached; see Group::explain_allreduces(). With equal costs "auto" gives equal bits in
  // every run. The environment variable GPUPS_ALLREDUCE_ALGORITHM replaces "auto".
  std::string algorithm = "auto";
  // A named algorithm uses this format and must support it. "auto" may use it, or a format whose largest error is at
  // most as large: kFloat, or kBFloat16 in place of a format with scales. The format is thus the largest loss that the
  // caller accepts. To get an expected error of zero over many sums, name "dsar_split_allgather".
  WireFormat format = WireFormat::kFloat;
};

// An algorithm of allreduce_algorithms().
struct AllreduceAlgorithm {
  char const* name;
  char const* description;  // a few words
  bool sparse;              // sends only nonzero elements, in any format; otherwise all elements, as floats
  bool by_nccl = false;     // available only if NCCL connects the devices of all ranks: Group::wait_connect_devices()
};
// Returns all algorithms. Every algorithm sums arrays and sparse vectors.
std::span<AllreduceAlgorithm const> allreduce_algorithms();

// A sparse vector: `size` floats of which the listed ones may be nonzero. Above about 25 % density a dense array is
// usually faster.
struct SparseView {
  std::uint64_t size = 0;               // at most 2^32
  View<std::uint32_t const> indices{};  // (count), strictly ascending
  View<float const> values{};           // (count)
  // Optional owner of both arrays. If it is set, the collective reads the arrays in place, and they must not change
  // until the collective is done. If it is null, the collective copies the arrays.
  std::shared_ptr<void const> keep{};
};

// Elements first .. first + size - 1 of a sum of vectors.
struct ReducedVector {
  std::uint64_t first = 0, size = 0;
  bool sparse = false;             // the elements that are not listed are zero
  Array<std::uint32_t> indices{};  // (count), strictly ascending, indices of the whole vector; empty if not sparse
  Array<float> values{};           // (count) if sparse, else (size)
};

// The handle of a collective in flight. Copies are cheap and refer to the same collective.
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
