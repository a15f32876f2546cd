// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/eventfd.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>

#include "comm/ucx/worker.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

// Sleeps in poll() on the event descriptor of UCX and on one for signal().
class UcxWakeupEvent final : public WakeupEvent {
 public:
  UcxWakeupEvent(UcxWorker& ucx, ucp_worker_h worker)
      : ucx_(ucx), worker_(worker), signaled_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    GPUPS_REQUIRE(signaled_ >= 0 && ucp_worker_get_efd(worker_, &arrived_) == UCS_OK,
                  "a rank cannot wait for messages without an event descriptor ({}): allow more open files (ulimit -n)",
                  std::strerror(errno));
  }
  ~UcxWakeupEvent() override { ::close(signaled_); }

  void signal() override {
    if (signaled_flag_.exchange(true)) return;
    if (sleeping_) write_one();
  }

  void wait() override {
    sleeping_ = true;
    if (!signaled_flag_.exchange(false) && arm()) {
      pollfd descriptors[2] = {{arrived_, POLLIN, 0}, {signaled_, POLLIN, 0}};
      ::poll(descriptors, 2, static_cast<int>(kWakeupWaitMax.count()));
    }
    sleeping_ = false;
    signaled_flag_ = false;
    std::uint64_t count;
    while (::read(signaled_, &count, sizeof count) > 0) {
    }
  }

 private:
  // Returns false if a message has arrived meanwhile.
  bool arm() {
    std::lock_guard lock(ucx_.mutex());
    return ucp_worker_arm(worker_) == UCS_OK;
  }
  void write_one() {
    std::uint64_t const one = 1;
    while (::write(signaled_, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }

  UcxWorker& ucx_;
  ucp_worker_h const worker_;
  int const signaled_;  // an eventfd
  int arrived_ = -1;
  std::atomic<bool> signaled_flag_ = false, sleeping_ = false;
};

}  // namespace

std::unique_ptr<WakeupEvent> make_ucx_wakeup_event(UcxWorker& ucx, ucp_worker* worker) {
  return std::make_unique<UcxWakeupEvent>(ucx, worker);
}

}  // namespace gpups::comm
