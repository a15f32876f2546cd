// SPDX-License-Identifier: Apache-2.0
// What can be summed over the ranks of a group, and how: see Group::begin_allreduce().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "gpups/array.hpp"

namespace gpups {

// How floats go over the wire. The codes of 8 bits and fewer have a scale for each block of values. What rounding takes
// off is lost: a sum keeps no residual of it for the next one. TopKAllreduce does, also where it sends all elements
// (density 1). Numbers are rounded to the nearest, but for the sums that "dsar_split_allgather" sends as integers:
// these at random, so that their mean error is zero.
//
// What a format has no number for, on the host and on GPUs alike; kFloat sends all as it is:
//   kHalf      beyond 65,504 in magnitude: is cut off to that, with its sign. Infinite or NaN: is NaN
//   kBFloat16    beyond 3.3895e38, the largest bfloat: likewise
//   the others a block with anything from 2^127 on, infinite or NaN: all of it is NaN. Blocks have up to 512 places,
//              or where no zeros are sent 65,536
// No error says so. It happens to whatever travels: a rank's numbers, and their sums on the way to the other ranks.
// Algorithms differ in which sums travel, so of 40,000 on each of two ranks one makes 80,000 in halves, another 65,504.
enum class WireFormat : std::uint8_t { kFloat, kHalf, kBFloat16, kE4M3, kE5M2, kInt8, kInt4, kInt2 };
// As in "float", "half" and "int8".
char const* name_of(WireFormat format);

// How arrays of floats are summed. The same on all ranks.
struct AllreduceOptions {
  // One of allreduce_algorithms(), or "auto": the one of least modelled time. The model knows the length, the number of
  // ranks, how many elements are not zero on the rank that has most of them, and what the links cost. Costs are
  // measured once and kept in a file; with equal costs equal inputs give the same bits in every run (docs/exchange.md).
  // The environment variable GPUPS_ALLREDUCE_ALGORITHM replaces "auto" by another name, for all sums of a job. A name
  // that there is not is an Error, and ranks whose variables differ get a PeerError that names two of them.
  std::string algorithm = "auto";
  // A named algorithm sends numbers in this format, which it must have. "auto" sends them in it where that is fastest,
  // and else in one whose largest errors are no larger: as floats, or in an algorithm that has both, as bfloats in
  // place of a format with scales. An algorithm that the environment names sends floats if it lacks the format. Where
  // the mean error of many sums must be zero, name "dsar_split_allgather".
  WireFormat format = WireFormat::kFloat;
};

// A way to sum arrays and sparse vectors over ranks.
struct AllreduceAlgorithm {
  char const* name;
  char const* description;  // it does, in a few words
  bool sparse;              // sends elements that are not zero, in any of several formats; else all, as floats
  bool by_nccl = false;     // only where NCCL connects the devices of all ranks: see Group::wait_connect_devices()
};
std::span<AllreduceAlgorithm const> allreduce_algorithms();

// A vector of `size` floats that are zero but where it says what they are. With a quarter, arrays are often faster.
struct SparseView {
  std::uint64_t size = 0;               // at most 2^32
  View<std::uint32_t const> indices{};  // (count), ascending, each once
  View<float const> values{};           // (count)
  // Owns both, if it is given: then a sum reads them where they are, and they stay as they are until it is over. Else
  // the sum makes a copy.
  std::shared_ptr<void const> keep{};
};

// Elements first .. first + size - 1 of a sum of vectors.
struct ReducedVector {
  std::uint64_t first = 0, size = 0;
  bool sparse = false;             // the elements that are not named are zero
  Array<std::uint32_t> indices{};  // (count), ascending, of the whole vector; empty where it is not sparse
  Array<float> values{};           // (count), or (size)
};

// A sum over the ranks that has been begun. Cheap to copy; a copy is the same sum.
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
