// SPDX-License-Identifier: Apache-2.0
// Windows over UCX: remote writes by shared memory, RDMA or TCP. They have a worker of their own, so that the
// connections of transport and bulk transport do not change.
#include <ucp/api/ucp.h>

#include <atomic>
#include <cstring>
#include <list>
#include <mutex>
#include <utility>

#include "comm/base/host_name.hpp"
#include "comm/base/serialization.hpp"
#include "comm/onesided/window.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

constexpr std::size_t kLineBytes = 64;
// Bounds of pending puts, whose data are copied meanwhile.
constexpr std::size_t kPutsMax = 1024, kPutBytesMax = std::size_t{8} << 20;

void check(ucs_status_t status, char const* what) {
  GPUPS_REQUIRE(
      status == UCS_OK,
      "UCX cannot {} ({}; ranks could not write to the memory of other ranks): look at `gpu_train doctor`, or set "
      "UCX_TLS",
      what, ucs_status_string(status));
}

// What is needed to write to the memory of one rank. Its memory starts with a cache line for the notification of each
// rank.
struct RemoteWindow {
  ucp_ep_h endpoint = nullptr;
  ucp_rkey_h key = nullptr;
  std::uint64_t notifications = 0, memory = 0;  // addresses in its address space
};

class Ucx final : public Window {
 public:
  Ucx(Rank me, std::size_t bytes, Allgather const& allgather) : me_(me), bytes_(bytes) {
    start();
    auto const all = [&] {
      // Get the number of ranks first: it determines the size of the notifications.
      std::size_t const ranks = allgather({}).size();
      map(ranks);
      return allgather(remote_access_info());
    }();
    for (std::string const& other : all) connect_to(other);
    (void)allgather({});  // no rank writes before all are ready
  }
  ~Ucx() override {
    std::lock_guard lock(mutex_);
    for (RemoteWindow& other : remotes_) close(other);
    if (memory_ != nullptr) (void)ucp_mem_unmap(context_, memory_);
    ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }

  int size() const override { return static_cast<int>(remotes_.size()); }
  std::span<std::byte> memory() override { return {at_ + notification_bytes(), bytes_}; }

  bool put(Rank to, std::size_t offset, std::span<std::byte const> data) override {
    GPUPS_ASSERT(offset % 8 == 0 && data.size() % 8 == 0 && offset + data.size() <= bytes_);
    return write(to, remotes_[number(to)].memory + offset, data);
  }
  bool notify(Rank to, std::uint64_t value) override {
    std::lock_guard lock(mutex_);
    if (is_full(sizeof value)) return false;
    check(ucp_worker_fence(worker_), "order writes");
    std::span const bytes(reinterpret_cast<std::byte const*>(&value), sizeof value);
    return write(to, remotes_[number(to)].notifications + kLineBytes * number(me_), bytes);
  }
  std::uint64_t notified(Rank from) const override {
    auto& note = *reinterpret_cast<std::uint64_t*>(at_ + kLineBytes * number(from));
    return std::atomic_ref(note).load(std::memory_order_acquire);
  }

  bool progress() override {
    std::lock_guard lock(mutex_);
    bool moved = false;
    while (ucp_worker_progress(worker_) != 0) moved = true;
    flush_ended();
    return moved;
  }
  bool idle() const override {
    std::lock_guard lock(mutex_);
    return puts_.empty() && flushing_ == nullptr && !unflushed_;
  }

 private:
  struct Put {
    std::vector<std::byte> data;
    void* request;
  };

  void start() {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_RMA;
    check(ucp_init(&params, nullptr, &context_), "start");
    ucp_worker_params_t worker{};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // any thread that holds the lock
    check(ucp_worker_create(context_, &worker, &worker_), "create a worker");
  }

  void map(std::size_t ranks) {
    remotes_.reserve(ranks);
    ranks_ = ranks;
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    params.length = kLineBytes + notification_bytes() + bytes_;
    params.flags = UCP_MEM_MAP_ALLOCATE;  // UCX chooses memory that it accesses fast
    check(ucp_mem_map(context_, &params, &memory_), "register memory");
    ucp_mem_attr_t attributes{};
    attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
    check(ucp_mem_query(memory_, &attributes), "get the address of memory");
    auto const first = reinterpret_cast<std::uintptr_t>(attributes.address);
    at_ = static_cast<std::byte*>(attributes.address) + (kLineBytes - first % kLineBytes) % kLineBytes;
    std::memset(at_, 0, notification_bytes() + bytes_);
  }

  std::string remote_access_info() {
    ucp_address_t* address = nullptr;
    void* key = nullptr;
    std::size_t address_bytes = 0, key_bytes = 0;
    check(ucp_worker_get_address(worker_, &address, &address_bytes), "get its address");
    check(ucp_rkey_pack(context_, memory_, &key, &key_bytes), "get the key of its memory");
    Writer writer;
    writer.put_text(machine_name());
    writer.put_text({reinterpret_cast<char const*>(address), address_bytes});
    writer.put_text({static_cast<char const*>(key), key_bytes});
    writer.put<std::uint64_t>(bytes_);
    writer.put<std::uint64_t>(reinterpret_cast<std::uint64_t>(at_));
    ucp_worker_release_address(worker_, address);
    ucp_rkey_buffer_release(key);
    return writer.take();
  }

  void connect_to(std::string const& info) {
    Reader reader(info);
    bool const same_machine = reader.get_text() == machine_name();
    std::string const address(reader.get_text()), key(reader.get_text());
    auto const bytes = reader.get<std::uint64_t>();
    GPUPS_REQUIRE(bytes == bytes_,
                  "rank {} has a window of {} bytes and rank {} has one of {} (writes could exceed the smaller one): "
                  "use the same size on all ranks",
                  remotes_.size(), bytes, number(me_), bytes_);
    auto const at = reader.get<std::uint64_t>();
    reader.end();
    RemoteWindow other{.notifications = at, .memory = at + notification_bytes()};
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.address = reinterpret_cast<ucp_address_t const*>(address.data());
    // As in UcxWorker: UCX does not use its shared memory transports if failures of peers are to be reported.
    params.err_mode = same_machine ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER;
    check(ucp_ep_create(worker_, &params, &other.endpoint), "connect");
    check(ucp_ep_rkey_unpack(other.endpoint, key.data(), &other.key), "use the key of another rank");
    remotes_.push_back(other);
  }

  // A single put may exceed the bound in bytes.
  bool is_full(std::size_t more) const {
    return puts_.size() >= kPutsMax || (!puts_.empty() && put_bytes_ + more > kPutBytesMax);
  }

  bool write(Rank to, std::uint64_t address, std::span<std::byte const> data) {
    std::lock_guard lock(mutex_);
    if (is_full(data.size())) return false;
    Put put{.data = {data.begin(), data.end()}, .request = nullptr};
    ucp_request_param_t how{};
    RemoteWindow const& other = remotes_[number(to)];
    put.request = ucp_put_nbx(other.endpoint, put.data.data(), data.size(), address, other.key, &how);
    unflushed_ = true;
    if (!UCS_PTR_IS_PTR(put.request)) {
      check(UCS_PTR_STATUS(put.request), "write to the memory of another rank");
      return true;
    }
    put_bytes_ += data.size();
    puts_.push_back(std::move(put));
    return true;
  }

  // Removes completed puts and flushes. A completed put may still be on its way; a flush ends when it has arrived.
  void flush_ended() {
    for (auto put = puts_.begin(); put != puts_.end();) {
      ucs_status_t const status = ucp_request_check_status(put->request);
      if (status == UCS_INPROGRESS) {
        ++put;
        continue;
      }
      ucp_request_free(put->request);
      put_bytes_ -= put->data.size();
      put = puts_.erase(put);
      check(status, "write to the memory of another rank");
    }
    if (flushing_ != nullptr && ucp_request_check_status(flushing_) != UCS_INPROGRESS) {
      ucs_status_t const status = ucp_request_check_status(flushing_);
      ucp_request_free(std::exchange(flushing_, nullptr));
      check(status, "write to the memory of another rank");
    }
    if (flushing_ != nullptr || !unflushed_ || !puts_.empty()) return;
    unflushed_ = false;
    ucp_request_param_t const how{};
    void* const request = ucp_worker_flush_nbx(worker_, &how);
    if (UCS_PTR_IS_PTR(request)) {
      flushing_ = request;
    } else {
      check(UCS_PTR_STATUS(request), "write to the memory of another rank");
    }
  }

  void close(RemoteWindow& other) {
    ucp_rkey_destroy(other.key);
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = UCP_EP_CLOSE_FLAG_FORCE;
    void* const request = ucp_ep_close_nbx(other.endpoint, &how);
    if (!UCS_PTR_IS_PTR(request)) return;
    while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker_);
    ucp_request_free(request);
  }

  std::size_t notification_bytes() const { return ranks_ * kLineBytes; }

  Rank const me_;
  std::size_t const bytes_;
  std::size_t ranks_ = 0;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_mem_h memory_ = nullptr;
  std::byte* at_ = nullptr;
  std::vector<RemoteWindow> remotes_;  // by rank, including this one

  mutable std::recursive_mutex mutex_;  // protects the worker and all below
  std::list<Put> puts_;
  std::size_t put_bytes_ = 0;
  bool unflushed_ = false;  // there are puts since the start of the last flush
  void* flushing_ = nullptr;
};

}  // namespace

std::unique_ptr<Window> make_ucx_window(Rank me, std::size_t bytes, Allgather const& allgather) {
  return std::make_unique<Ucx>(me, bytes, allgather);
}

}  // namespace gpups::comm
