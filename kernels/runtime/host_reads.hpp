// SPDX-License-Identifier: Apache-2.0
// Results of queued work that the host reads with one wait and, from a GPU, with one transfer.
//
//   HostReads reads(stream);
//   std::vector<std::uint32_t> counts;
//   reads.add<std::uint32_t>(counts_there, counts);
//   reads.wait();  // `counts` is valid
#pragma once

#include <cstddef>
#include <vector>

#include "gpups/array.hpp"

namespace gpups::kernels {

class HostReads {
 public:
  explicit HostReads(Stream& stream) : stream_(stream) {}

  // Adds an array, which wait() copies to `to`. Both must live, and `to` must not be changed, until then.
  template <class T>
  void add(View<T const> from, std::vector<T>& to) {
    to.resize(from.size());
    if (!from.empty()) all_.push_back({from.data(), to.data(), from.bytes()});
  }

  // Copies the added arrays as they are when the work that is queued now is done. Blocks until then, unless there is no
  // array with elements.
  void wait();

 private:
  struct HostRead {
    void const* from;
    void* to;
    std::size_t bytes;
  };
  Stream& stream_;
  std::vector<HostRead> all_;
};

}  // namespace gpups::kernels
