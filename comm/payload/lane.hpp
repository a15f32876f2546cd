// SPDX-License-Identifier: Apache-2.0
// A way of its own for bulk data between devices of one kind, such as NCCL between GPUs. It has no tags: what is sent
// and what is received must be named in the same order on both sides, and in batches that fit over all ranks.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "gpups/stream.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

class Lane {
 public:
  virtual ~Lane() = default;  // ends what is under way, without waiting for other ranks

  // Where data have to be to go this way.
  virtual Device device() const = 0;
  // The order of its work.
  virtual Stream& stream() = 0;

  // One transfer, as this rank sees it.
  struct Part {
    Rank peer;
    bool sends;
    void* data;
    std::size_t bytes;
  };
  // Queues the parts on stream(); they go on at the same time. Each rank of a part calls this with its side of it, and
  // any two ranks call it for the batches that they share in the same order. The result says whether all have ended.
  using Over = std::function<bool()>;
  virtual Over move(std::span<Part const> parts) = 0;

  // Throws Error where something of what was queued has failed, and will not end.
  virtual void check() = 0;
  // What is under way ends soon, well or not, and nothing is begun any more. Any thread.
  virtual void abort() noexcept = 0;
};

}  // namespace gpups::comm
