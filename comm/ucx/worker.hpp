// SPDX-License-Identifier: Apache-2.0
// The UCX worker of a rank: its connections to other ranks. UCX chooses shared memory between ranks of one machine, and
// RDMA or TCP between machines.
//
// Thread-safe; handlers run in the thread that calls progress(). The worker does not detect lost peers, since UCX
// cannot do so over shared memory; the failure detector does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/wakeup.hpp"
#include "comm/ucx/active_messages.hpp"
#include "comm/ucx/header_mac.hpp"
#include "gpups/types.hpp"

struct ucp_worker;

namespace gpups::comm {

// ActiveMessages over UCX.
class UcxWorker final : public ActiveMessages {
 public:
  struct PeerAddress {
    std::string address;
    bool same_machine;
    HashKey key;  // the pair key
  };
  // Throws Error if UCX cannot start.
  UcxWorker();
  // Flushes and closes the connections, for at most a second. A worker with pending operations, or after abandon(), is
  // leaked until the end of the process.
  ~UcxWorker() override;

  // Returns the address to which other ranks connect.
  std::string const& address() const { return address_; }
  // Connects to all ranks. peers: in rank order, including this rank. Throws Error if UCX cannot connect to a rank.
  void connect(Rank me, std::uint64_t session, std::vector<PeerAddress> const& peers);

  Rank rank() const override { return me_; }
  int size() const override { return static_cast<int>(endpoints_.size()); }

  void handle(AmKind kind, Handler handler) override;
  void send(AmProtocol protocol, Rank to, AmKind kind, std::uint64_t number, std::uint64_t count, void const* data,
            std::size_t bytes, std::function<void()> sent) override;
  void send(Rank to, AmKind kind, std::uint64_t number, std::uint64_t count, std::string body) override;
  void fetch(AmArrival const& arrival, void* to, std::function<void()> fetched) override;
  void drop(AmArrival const& arrival) override;
  bool reaches(Device device) const override { return device.is_host() || reaches_gpus_; }
  bool progress() override;
  // Returns the number of pending operations.
  std::size_t open() const { return open_; }
  void on_broken(std::function<void(Rank peer, std::string const& what)> broken) override {
    std::lock_guard lock(mutex_);
    broken_ = std::move(broken);
  }
  void on_peer_error(void const* listener, OnPeerError wrong) override;
  void abandon() override { abandoned_ = true; }

  // Creates an event on which the thread that calls progress() sleeps.
  std::unique_ptr<WakeupEvent> make_wakeup_event();

  std::recursive_mutex& mutex() override { return mutex_; }

 private:
  struct Native;
  struct Operation;
  friend struct Native;
  void begin_send(AmProtocol protocol, Rank to, Operation* operation, void const* data, std::size_t bytes);
  std::optional<std::uint64_t> checksum_of(Rank to, AmKind kind, void const* data, std::size_t bytes) const;
  void failed(Rank peer, int status);  // status: ucs_status_t
  void wrong(Rank peer, std::string const& what);
  bool close();

  std::recursive_mutex mutex_;
  std::unique_ptr<Native> native_;
  std::string address_;
  Rank me_{};
  std::optional<HeaderMac> header_mac_;
  std::vector<bool> same_machine_;  // by rank
  std::vector<void*> endpoints_;
  std::vector<Handler> handlers_;
  std::function<void(Rank, std::string const&)> broken_;
  std::map<void const*, OnPeerError> on_wrong_;
  std::vector<AmArrival> unhandled_;  // remote messages without a handler; their senders wait
  std::size_t open_ = 0;
  void* handling_ = nullptr;  // the bytes of the message whose handler runs
  bool reaches_gpus_ = false;
  bool arrived_ = false;
  bool abandoned_ = false;
};

// Creates a wakeup event that UCX signals when data arrive. `ucx` owns `worker` and must outlive the event.
std::unique_ptr<WakeupEvent> make_ucx_wakeup_event(UcxWorker& ucx, ucp_worker* worker);

}  // namespace gpups::comm
