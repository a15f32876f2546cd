// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/nccl/operation.hpp"

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "tests/emulator/machine/device_memory.hpp"
#include "tests/emulator/ptx/program.hpp"

namespace gpups::emulator {
namespace {

using Kind = NcclOperation::Kind;

void check_allocated(NcclOperation const& operation) {
  for (void const* const data : {operation.source, static_cast<void const*>(operation.target)}) {
    if (data == nullptr || find_allocation(data, operation.bytes)) continue;
    throw KernelError{cudaErrorIllegalAddress,
                      fmt::format("memory was freed before a queued operation of NCCL of {} bytes was executed, {}",
                                  operation.bytes, describe_address(data))};
  }
}

template <class T>
void add_terms(void* sums, std::vector<std::uint8_t> const& terms) {
  std::vector<T> all(terms.size() / sizeof(T)), more(all.size());
  std::memcpy(all.data(), sums, terms.size());
  std::memcpy(more.data(), terms.data(), terms.size());
  std::ranges::transform(all, more, all.begin(), std::plus());
  std::memcpy(sums, all.data(), terms.size());
}

}  // namespace

RunningOperation::RunningOperation(NcclOperation const& operation, Mailbox& mailbox, int me, int ranks)
    : operation_(operation), mailbox_(mailbox), me_(me) {
  check_allocated(operation_);
  auto const* const source = static_cast<std::uint8_t const*>(operation_.source);
  for (int rank = 0; rank < ranks; ++rank) {
    if (operation_.kind == Kind::kSum && rank == me_) {
      incoming_.push_back({rank, 0, Bytes(source, source + operation_.bytes)});
    } else if (operation_.kind == Kind::kSum || rank == operation_.peer) {
      if (operation_.kind != Kind::kReceive) {
        outgoing_.push_back({rank, mailbox_.next_sent(rank)});
        mailbox_.send(rank, outgoing_.back().number, {source, operation_.bytes});
      }
      if (operation_.kind != Kind::kSend) incoming_.push_back({rank, mailbox_.next_received(rank), {}});
    }
  }
}

bool RunningOperation::is_over() {
  for (Incoming& one : incoming_) {
    if (!one.data) one.data = mailbox_.receive(one.from, one.number);
  }
  return std::ranges::all_of(incoming_, [](Incoming const& one) { return one.data.has_value(); }) &&
         std::ranges::all_of(outgoing_, [&](Outgoing const& one) { return mailbox_.is_received(one.to, one.number); });
}

void RunningOperation::finish() {
  check_allocated(operation_);
  for (Incoming const& one : incoming_) {
    if (one.data->size() == operation_.bytes) continue;
    throw KernelError{cudaErrorIllegalAddress, fmt::format("rank {} expects {} bytes of rank {}, which sends {}", me_,
                                                           operation_.bytes, one.from, one.data->size())};
  }
  for (Incoming const& one : incoming_) {
    if (&one == &incoming_.front()) {
      std::memcpy(operation_.target, one.data->data(), operation_.bytes);
    } else if (operation_.sums_integers) {
      add_terms<std::uint64_t>(operation_.target, *one.data);
    } else {
      add_terms<float>(operation_.target, *one.data);
    }
  }
}

}  // namespace gpups::emulator
