// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/nccl/communicator.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include "tests/emulator/options.hpp"
#include "tests/emulator/runtime/state.hpp"

namespace gpups::emulator {

// The first message between two ranks has the sender's place.
NcclRank::NcclRank(std::string const& name, int me, int ranks, int device, std::string place)
    : mailbox_(name, me), me_(me), ranks_(ranks), device_(device), place_(std::move(place)) {
  auto const* const text = reinterpret_cast<std::uint8_t const*>(place_.data());
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == me) continue;
    mailbox_.send(rank, mailbox_.next_sent(rank), {text, place_.size()});
    (void)mailbox_.next_received(rank);
    awaited_.push_back(rank);
  }
}

ncclResult_t NcclRank::fail(ncclResult_t result, std::string const& what) {
  std::fprintf(stderr, "emulator: NCCL: %s\n", what.c_str());
  error_ = what;
  return result;
}

// A rank has joined when it has the places of all ranks, and they have its own: then none needs it in order to join.
bool NcclRank::has_joined() {
  std::erase_if(awaited_, [&](int rank) {
    auto const place = mailbox_.receive(rank, 0);
    if (place && std::ranges::equal(*place, place_)) {
      result_ = fail(ncclInvalidUsage, fmt::format("ranks {} and {} have the same GPU, {}", me_, rank, place_));
    }
    return place.has_value();
  });
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank != me_ && !mailbox_.is_received(rank, 0)) return false;
  }
  return awaited_.empty();
}

void NcclRank::add(NcclBatch batch) {
  if (added_.empty()) polls_ = 0;
  added_.push_back(std::move(batch));
  queue_added();
}

ncclResult_t NcclRank::poll() {
  if (result_ != ncclSuccess) return result_;
  if (!has_joined()) return result_ == ncclSuccess ? ncclInProgress : result_;
  ++polls_;
  queue_added();
  return added_.empty() ? result_ : ncclInProgress;
}

void NcclRank::queue_added() {
  while (!added_.empty() && polls_ >= options().nccl_polls) {
    polls_ = 0;
    NcclBatch batch = std::move(added_.front());
    added_.pop_front();
    queue(std::move(batch));
  }
}

namespace {

// The state of a batch in its stream.
struct RunningBatch {
  std::vector<RunningOperation> operations;  // empty: it has not started
  int polls = 0;

  // Returns whether all operations are over.
  bool advance() {
    if (++polls <= options().nccl_polls) return false;
    bool over = true;
    for (auto& operation : operations) over = operation.is_over() && over;  // all make progress
    return over;
  }
};

}  // namespace

// Messages get their numbers when the batch's turn in the stream has come.
void NcclRank::queue(NcclBatch batch) {
  cudaStream_t const stream = batch.stream;
  enqueue_polled(stream,
                 [self = shared_from_this(), batch = std::move(batch), running = std::make_shared<RunningBatch>()] {
                   if (self->aborted_) return true;
                   try {
                     if (running->operations.empty()) {
                       for (auto const& one : batch.operations) {
                         running->operations.emplace_back(one, self->mailbox_, self->me_, self->ranks_);
                       }
                     }
                     if (!running->advance()) return false;
                     for (auto& operation : running->operations) operation.finish();
                   } catch (std::exception const& error) {
                     self->result_ = self->fail(ncclSystemError, error.what());
                   } catch (KernelError const& error) {
                     self->result_ = self->fail(ncclUnhandledCudaError, error.what);
                     throw;
                   }
                   return true;
                 });
}

}  // namespace gpups::emulator
