// SPDX-License-Identifier: Apache-2.0
#include "comm/ucx/bell.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "comm/ucx/link.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {
namespace {

class UcxBell final : public Bell {
 public:
  UcxBell(UcxLink& link, ucp_worker_h worker)
      : link_(link), worker_(worker), rung_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    GPUPS_REQUIRE(rung_ >= 0 && ucp_worker_get_efd(worker_, &arrived_) == UCS_OK,
                  "a rank cannot sleep until something arrives ({}): allow more open files (ulimit -n)",
                  std::strerror(errno));
  }
  ~UcxBell() override { ::close(rung_); }

  void ring() override {
    if (ringing_.exchange(true)) return;
    if (sleeping_) write_one();
  }

  void wait() override {
    sleeping_ = true;
    if (!ringing_.exchange(false) && arm()) {
      pollfd descriptors[2] = {{arrived_, POLLIN, 0}, {rung_, POLLIN, 0}};
      ::poll(descriptors, 2, static_cast<int>(kBellLongest.count()));
    }
    sleeping_ = false;
    ringing_ = false;
    std::uint64_t count;
    while (::read(rung_, &count, sizeof count) > 0) {
    }
  }

 private:
  // False where something has arrived meanwhile.
  bool arm() {
    std::lock_guard lock(link_.mutex());
    return ucp_worker_arm(worker_) == UCS_OK;
  }
  void write_one() {
    std::uint64_t const one = 1;
    while (::write(rung_, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }

  UcxLink& link_;
  ucp_worker_h const worker_;
  int const rung_;  // an event of the kernel
  int arrived_ = -1;
  std::atomic<bool> ringing_ = false, sleeping_ = false;
};

}  // namespace

std::unique_ptr<Bell> make_ucx_bell(UcxLink& link, ucp_worker* worker) {
  return std::make_unique<UcxBell>(link, worker);
}

}  // namespace gpups::comm
