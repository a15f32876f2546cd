// SPDX-License-Identifier: Apache-2.0
// An operation of NCCL on one rank, as messages to and from other ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/emulator/nccl/mailbox.hpp"

namespace gpups::emulator {

// A call of ncclSend, ncclRecv, or ncclAllReduce of floats or of integers of 64 bits.
struct NcclOperation {
  enum class Kind : std::uint8_t { kSend, kReceive, kSum } kind;
  void const* source;  // null: receives only
  void* target;        // null: sends only; of a sum it may be the source
  std::size_t bytes;
  int peer;  // of a send or a receive
  bool sums_integers = false;
};

// An operation that runs. A sum sends its terms to all other ranks, and adds those of all ranks in their order, so all
// ranks get the same bits.
class RunningOperation {
 public:
  // Sends. Throws KernelError if memory of the operation was freed.
  RunningOperation(NcclOperation const& operation, Mailbox& mailbox, int me, int ranks);
  // Returns whether all messages were received, here and by the other ranks.
  bool is_over();
  // Writes what was received. Throws KernelError if memory of the operation was freed, or another rank has sent a
  // different number of bytes.
  void finish();

 private:
  using Bytes = std::vector<std::uint8_t>;
  struct Outgoing {
    int to;
    Mailbox::Number number;
  };
  struct Incoming {
    int from;
    Mailbox::Number number;
    std::optional<Bytes> data;
  };

  NcclOperation const operation_;
  Mailbox& mailbox_;
  int const me_;
  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;  // in the order of ranks; a sum's own terms are among them
};

}  // namespace gpups::emulator
