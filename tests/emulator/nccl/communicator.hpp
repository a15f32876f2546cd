// SPDX-License-Identifier: Apache-2.0
// A rank of an emulated NCCL communicator. Operations are queued on streams, and wait there for other ranks; the
// operations between two ranks match in their order. All functions are called with the lock of the runtime held, see
// runtime/state.hpp.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tests/emulator/nccl/mailbox.hpp"
#include "tests/emulator/nccl/operation.hpp"

namespace gpups::emulator {

// The operations of a group, which run at the same time.
struct NcclBatch {
  std::vector<NcclOperation> operations;
  cudaStream_t stream;
};

class NcclRank : public std::enable_shared_from_this<NcclRank> {
 public:
  // name: that of the communicator. place: the device and its machine; no two ranks may have the same one.
  NcclRank(std::string const& name, int me, int ranks, int device, std::string place);

  int me() const { return me_; }
  int ranks() const { return ranks_; }
  int device() const { return device_; }
  // What was wrong in the last call or operation that failed; empty: nothing.
  std::string const& error() const { return error_; }
  // Prints what is wrong, and returns the result.
  ncclResult_t fail(ncclResult_t result, std::string const& what);

  // Queues a batch, at once or after some calls of poll(), see Options::nccl_polls.
  void add(NcclBatch batch);
  // Returns ncclInProgress until all ranks have joined and all batches are queued. Returns the error of an operation.
  ncclResult_t poll();
  // Operations end soon, whether or not they are complete.
  void abort() { aborted_ = true; }

 private:
  bool has_joined();
  void queue_added();
  void queue(NcclBatch batch);

  Mailbox mailbox_;
  int const me_, ranks_, device_;
  std::string const place_;
  std::vector<int> awaited_;  // ranks that have not joined
  std::deque<NcclBatch> added_;
  int polls_ = 0;  // since the first of added_ could be queued
  bool aborted_ = false;
  ncclResult_t result_ = ncclSuccess;
  std::string error_;
};

}  // namespace gpups::emulator
