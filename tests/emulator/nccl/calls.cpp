// SPDX-License-Identifier: Apache-2.0
// The functions of NCCL that gpups calls. Only non-blocking communicators are emulated.
#include <fmt/core.h>
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/emulator/machine/device_memory.hpp"
#include "tests/emulator/nccl/communicator.hpp"
#include "tests/emulator/runtime/state.hpp"

// NCCL's handle of a rank.
struct ncclComm {
  std::shared_ptr<gpups::emulator::NcclRank> rank;
};

namespace gpups::emulator {
namespace {

using Kind = NcclOperation::Kind;

// The calls between ncclGroupStart() and ncclGroupEnd() of this thread.
struct Group {
  int depth = 0;
  std::vector<std::pair<NcclRank*, NcclBatch>> batches;
};
thread_local Group group;

// Returns the name of the machine, or what NCCL uses in its place, and the device.
std::string place_of(int device) {
  char const* const given = std::getenv("NCCL_HOSTID");
  char host[256] = "this host";
  if (given == nullptr) (void)::gethostname(host, sizeof host - 1);
  return fmt::format("{}:{}", given == nullptr ? host : given, device);
}

// Returns what is wrong with memory of an operation; empty: nothing.
std::string check_memory(NcclRank const& rank, void const* data, std::size_t bytes) {
  if (data == nullptr) return {};
  auto const found = find_allocation(data, bytes);
  if (found && found->kind == MemoryKind::kDevice && found->device == rank.device()) return {};
  return fmt::format("{} bytes are not in memory of device {}: {}", bytes, rank.device(), describe_address(data));
}

std::string check(NcclRank const& rank, NcclOperation const& operation, cudaStream_t stream) {
  bool const has_peer = operation.kind != Kind::kSum;
  if (has_peer && (operation.peer < 0 || operation.peer >= rank.ranks() || operation.peer == rank.me())) {
    return fmt::format("rank {} has no peer {}", rank.me(), operation.peer);
  }
  if (device_of(stream) != rank.device()) {
    return fmt::format("a stream of device {} is used by a rank of device {}", device_of(stream), rank.device());
  }
  std::string const wrong = check_memory(rank, operation.source, operation.bytes);
  return wrong.empty() ? check_memory(rank, operation.target, operation.bytes) : wrong;
}

void end_group() {
  for (auto& [rank, batch] : std::exchange(group.batches, {})) rank->add(std::move(batch));
}

ncclResult_t add(ncclComm_t comm, NcclOperation const& operation, cudaStream_t stream) {
  RuntimeLock const lock(runtime_mutex());
  NcclRank& rank = *comm->rank;
  std::string const wrong = check(rank, operation, stream);
  if (!wrong.empty()) return rank.fail(ncclInvalidArgument, wrong);
  if (operation.bytes == 0) return ncclSuccess;  // has no message
  auto found = std::ranges::find_if(group.batches,
                                    [&](auto const& one) { return one.first == &rank && one.second.stream == stream; });
  if (found == group.batches.end()) found = group.batches.insert(found, {&rank, NcclBatch{{}, stream}});
  found->second.operations.push_back(operation);
  if (group.depth == 0) end_group();
  return ncclInProgress;
}

std::size_t bytes_of(std::size_t count, ncclDataType_t type) {
  return type == ncclFloat32 ? count * sizeof(float) : type == ncclInt64 ? count * sizeof(std::int64_t) : count;
}

// Returns whether the type, and the sum of its elements if there is one, can be emulated.
bool is_supported(ncclDataType_t type, bool sums) {
  return type == ncclFloat32 || type == ncclInt64 || (!sums && (type == ncclUint8 || type == ncclInt8));
}

}  // namespace
}  // namespace gpups::emulator

using namespace gpups::emulator;

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::string const name = fmt::format("emulated-nccl-{}-{:08x}", ::getpid(), std::random_device()());
  *id = {};
  std::memcpy(id->internal, name.data(), name.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int me, ncclConfig_t* config) {
  RuntimeLock const lock(runtime_mutex());
  *comm = nullptr;
  if (ranks < 1 || me < 0 || me >= ranks || config == nullptr || config->blocking != 0) return ncclInvalidArgument;
  auto const device = current_device();
  *comm = new ncclComm{std::make_shared<NcclRank>(id.internal, me, ranks, device, place_of(device))};
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
  RuntimeLock const lock(runtime_mutex());
  *result = comm->rank->poll();
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  RuntimeLock const lock(runtime_mutex());
  comm->rank->abort();
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  RuntimeLock const lock(runtime_mutex());
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth == 0) end_group();
  return ncclInProgress;
}

ncclResult_t ncclSend(void const* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (!is_supported(type, false)) return ncclInvalidArgument;
  return add(comm, {Kind::kSend, data, nullptr, bytes_of(count, type), peer}, stream);
}

ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (!is_supported(type, false)) return ncclInvalidArgument;
  return add(comm, {Kind::kReceive, nullptr, data, bytes_of(count, type), peer}, stream);
}

ncclResult_t ncclAllReduce(void const* terms, void* sums, std::size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t comm, cudaStream_t stream) {
  if (!is_supported(type, true) || operation != ncclSum) return ncclInvalidArgument;
  return add(comm, {Kind::kSum, terms, sums, bytes_of(count, type), -1, type == ncclInt64}, stream);
}

char const* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclInProgress:
      return "an operation is in progress";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclSystemError:
      return "system error";
    default:
      return "internal error";
  }
}

char const* ncclGetLastError(ncclComm_t comm) { return comm == nullptr ? "" : comm->rank->error().c_str(); }

}  // extern "C"
