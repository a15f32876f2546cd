// SPDX-License-Identifier: Apache-2.0
// What a stream and its siblings have done since a point in time, for tests of the cost of calls.
#pragma once

#include <cstdint>
#include <ostream>

#include "kernels/runtime/stream_impl.hpp"

namespace gpups::test {

struct StreamCalls {
  std::uint64_t launches = 0, waits = 0, host_copies = 0;

  bool operator==(StreamCalls const&) const = default;
  friend std::ostream& operator<<(std::ostream& out, StreamCalls const& calls) {
    return out << calls.launches << " launches, " << calls.waits << " waits, " << calls.host_copies << " host copies";
  }
};

// Counts from its construction on.
class StreamCallCounter {
 public:
  explicit StreamCallCounter(Stream const& stream) : stream_(stream), before_(now()) {}
  StreamCalls calls() const {
    StreamCalls const n = now();
    return {n.launches - before_.launches, n.waits - before_.waits, n.host_copies - before_.host_copies};
  }

 private:
  StreamCalls now() const {
    auto const& counters = *stream_.impl().counters;
    return {counters.launches, counters.waits, counters.host_copies};
  }

  Stream stream_;
  StreamCalls before_;
};

}  // namespace gpups::test
