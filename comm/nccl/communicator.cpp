// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/communicator.hpp"

#include <nccl.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/base/deadline.hpp"
#include "kernels/base/check.hpp"
#include "kernels/runtime/cuda_runtime.hpp"

namespace gpups::comm {
namespace {

constexpr char const* kTimeoutError =
    "NCCL has not finished {} within {} s (another rank does not take part): look at the output of all ranks";

ncclComm_t comm_of(void* native) { return static_cast<ncclComm_t>(native); }
CUstream_st* stream_of(Stream const& stream) { return static_cast<CUstream_st*>(stream.native()); }

void check_nccl(ncclResult_t result, char const* doing, ncclComm_t comm = nullptr) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  char const* const more = ncclGetLastError(comm);
  throw Error(fmt::format("NCCL reports '{}' while {} ({}): set NCCL_DEBUG=INFO, and look at `gpu_train doctor`",
                          ncclGetErrorString(result), doing, more == nullptr ? "" : more));
}

}  // namespace

std::string make_nccl_id() {
  ncclUniqueId id;
  check_nccl(ncclGetUniqueId(&id), "creating an id");
  return {id.internal, sizeof id.internal};
}

NcclCommunicator::NcclCommunicator(std::string const& id, Rank me, int ranks, Device device,
                                   std::function<void()> const& progress, double timeout_s)
    : device_(device), timeout_s_(timeout_s) {
  ncclUniqueId native_id;
  GPUPS_REQUIRE(id.size() == sizeof native_id.internal,
                "the NCCL id has {} bytes instead of {} (ranks use different builds): run the same build on all ranks",
                id.size(), sizeof native_id.internal);
  std::memcpy(native_id.internal, id.data(), id.size());
  cuda::CurrentDevice const current(device_.index);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  auto const result = ncclCommInitRankConfig(&comm, ranks, native_id, static_cast<int>(number(me)), &config);
  native_ = comm;
  try {
    check_nccl(result, "connecting GPUs", comm);
    wait_ready("connecting GPUs", progress);
  } catch (Error const&) {
    abort();
    throw;
  }
}

NcclCommunicator::~NcclCommunicator() { abort(); }

void NcclCommunicator::abort() noexcept {
  aborted_ = true;  // before the lock, so that a thread that holds it while it waits ends
  std::lock_guard lock(mutex_);
  if (native_ == nullptr) return;
  (void)ncclCommAbort(comm_of(std::exchange(native_, nullptr)));
}

// Returns whether the call that was started has ended. Throws Error if it has failed.
bool NcclCommunicator::is_ready(char const* doing) {
  ncclResult_t state = ncclSuccess;
  check_nccl(ncclCommGetAsyncError(comm_of(native_), &state), doing, comm_of(native_));
  check_nccl(state, doing, comm_of(native_));
  if (state == ncclSuccess) return true;
  if (aborted_) throw Error(fmt::format("NCCL was given up while {} (a rank is lost): see the other errors", doing));
  return false;
}

void NcclCommunicator::wait_ready(char const* doing, std::function<void()> const& progress) {
  Deadline deadline(timeout_s_);
  while (!is_ready(doing)) {
    progress();
    GPUPS_REQUIRE(deadline.wait(), kTimeoutError, doing, timeout_s_);
  }
}

bool NcclCommunicator::ready() {
  std::lock_guard lock(mutex_);
  if (begun_ == nullptr) return true;
  check_open(begun_);
  if (is_ready(begun_)) {
    begun_ = nullptr;
    return true;
  }
  GPUPS_REQUIRE(std::chrono::steady_clock::now() < give_up_, kTimeoutError, begun_, timeout_s_);
  return false;
}

NcclCommunicator::Time NcclCommunicator::deadline() const {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(timeout_s_));
}

void NcclCommunicator::check_time(Time end) const {
  GPUPS_REQUIRE(std::chrono::steady_clock::now() < end, kTimeoutError, "the queued operations", timeout_s_);
}

bool NcclCommunicator::is_aborted() const {
  std::lock_guard lock(mutex_);
  return native_ == nullptr;
}

void NcclCommunicator::check_open(char const* doing) const {
  if (native_ != nullptr) return;
  throw Error(fmt::format("NCCL was given up before {} (a rank is lost): see the other errors", doing));
}

template <class Call>
void NcclCommunicator::begin(char const* doing, Call call) {
  std::lock_guard lock(mutex_);
  check_open(doing);
  GPUPS_ASSERT(begun_ == nullptr);
  cuda::CurrentDevice const current(device_.index);
  call(comm_of(native_));
  begun_ = doing;
  give_up_ = deadline();
}

void NcclCommunicator::move(Stream& on, std::span<DeviceFabric::P2pOp const> parts) {
  constexpr char const* kOperation = "sending and receiving";
  begin(kOperation, [&](ncclComm_t comm) {
    check_nccl(ncclGroupStart(), kOperation, comm);
    ncclResult_t first = ncclSuccess;
    for (auto const& part : parts) {
      int const peer = static_cast<int>(number(part.peer));
      auto const result = part.sends ? ncclSend(part.data, part.bytes, ncclUint8, peer, comm, stream_of(on))
                                     : ncclRecv(part.data, part.bytes, ncclUint8, peer, comm, stream_of(on));
      bool const is_fine = result == ncclSuccess || result == ncclInProgress;
      if (!is_fine && first == ncclSuccess) first = result;
    }
    auto const ended = ncclGroupEnd();  // also after an error: otherwise the group would stay open
    check_nccl(first, kOperation, comm);
    check_nccl(ended, kOperation, comm);
  });
}

void NcclCommunicator::sum(Stream& on, FabricSum const& arrays) {
  constexpr char const* kOperation = "summing";
  if (arrays.count == 0) return;
  auto const number = arrays.number == FabricSum::Number::kFloat ? ncclFloat32 : ncclInt64;
  begin(kOperation, [&](ncclComm_t comm) {
    check_nccl(ncclAllReduce(arrays.terms, arrays.sums, arrays.count, number, ncclSum, comm, stream_of(on)), kOperation,
               comm);
  });
}

void NcclCommunicator::check() {
  std::lock_guard lock(mutex_);
  check_open("checking for errors");
  ncclResult_t state = ncclSuccess;
  check_nccl(ncclCommGetAsyncError(comm_of(native_), &state), "checking for errors", comm_of(native_));
  check_nccl(state, "running queued operations", comm_of(native_));
}

namespace {

// A fabric that gives NCCL one operation at a time.
class NcclFabric final : public DeviceFabric {
 public:
  NcclFabric(std::string const& id, Rank me, int ranks, Device device, std::function<void()> const& progress,
             double timeout_s)
      : communicator_(id, me, ranks, device, progress, timeout_s), stream_(device) {}
  ~NcclFabric() override {
    communicator_.abort();
    try {
      stream_.wait();
    } catch (Error const&) {  // NOLINT: the fabric was given up, and its caller reports why
    }
  }

  Device device() const override { return communicator_.device(); }
  Stream& stream() override { return stream_; }
  IsDone move(std::span<P2pOp const> parts) override {
    return queue([this, all = std::vector(parts.begin(), parts.end())] { communicator_.move(stream_, all); });
  }
  IsDone sum(FabricSum const& arrays) override {
    return queue([this, arrays] { communicator_.sum(stream_, arrays); });
  }
  // NCCL may fail because a rank is lost. The failure detector knows the rank, so it gets some time to report it first.
  void check() override {
    constexpr std::chrono::seconds kReportGrace(1);
    if (failure_ && std::chrono::steady_clock::now() >= failure_end_) std::rethrow_exception(failure_);
    if (is_given_up()) return;
    try {
      communicator_.check();
      queue_calls();
      check_time();
    } catch (Error const&) {
      if (is_given_up()) return;
      failure_ = std::current_exception();
      failure_end_ = std::chrono::steady_clock::now() + kReportGrace;
      communicator_.abort();
    }
  }
  void abort() noexcept override { communicator_.abort(); }
  bool is_given_up() const override { return communicator_.is_given_up(); }

 private:
  // An operation; NCCL gets one at a time.
  struct Call {
    std::function<void()> begin;  // null: it has been called
    std::optional<Event> queued{};
  };
  void queue_calls() {
    for (; !calls_.empty(); calls_.pop_front()) {
      auto const& next = calls_.front();
      if (next->begin) next->begin();
      next->begin = nullptr;
      if (!communicator_.ready()) return;
      next->queued = stream_.record();
      running_.push_back({next, communicator_.deadline()});
    }
  }
  // All ranks were ready for the queued operations, so they must end within the timeout.
  void check_time() {
    while (!running_.empty() && running_.front().call->queued->done()) running_.pop_front();
    if (!running_.empty()) communicator_.check_time(running_.front().end);
  }
  IsDone queue(std::function<void()> begin) {
    auto const call = calls_.emplace_back(std::make_shared<Call>(Call{std::move(begin)}));
    return [this, call] { return call->queued ? call->queued->done() : communicator_.is_aborted(); };
  }

  NcclCommunicator communicator_;
  Stream stream_;
  std::deque<std::shared_ptr<Call>> calls_;  // not queued yet
  struct Running {
    std::shared_ptr<Call> call;
    NcclCommunicator::Time end;
  };
  std::deque<Running> running_;
  std::exception_ptr failure_;
  NcclCommunicator::Time failure_end_;
};

}  // namespace

std::unique_ptr<DeviceFabric> make_nccl_fabric(std::string const& id, Rank me, int ranks, Device device,
                                               std::function<void()> const& progress, double timeout_s) {
  return std::make_unique<NcclFabric>(id, me, ranks, device, progress, timeout_s);
}

}  // namespace gpups::comm
