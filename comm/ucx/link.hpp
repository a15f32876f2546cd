// SPDX-License-Identifier: Apache-2.0
// This process's end of a UCX network: sends to the other ranks, and hands on what arrives. Shared memory between ranks
// of one machine, RDMA or TCP between machines: UCX chooses.
//
// Any thread may call it; what arrives is handed on by whoever calls progress(). Peers that fail are not found out here
// (shared memory cannot tell): that is the watch's work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/bell.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

enum class UcxKind : std::uint32_t {
  kMessage,        // a message of the transport
  kCredit,         // number messages of bytes have been received: there is room again
  kCreditWanted,   // there is no room: say soon what has been received
  kEnd,            // the sender has left, because of rank number, and why
  kData,           // a transfer of the payload, number being its tag
  kDataRefused,    // the transfer has not the size that the receiver expects
  kDataWithdrawn,  // a transfer that has not been taken goes with its sender
};
inline constexpr std::size_t kUcxKinds = 7;

// What lies before everything that is sent, as it lies in memory.
struct UcxHeader {
  std::uint64_t session;  // of the job; what has another one is a stranger's, and dropped
  Rank from;
  UcxKind kind;
  std::uint64_t number;
  std::uint64_t bytes;
};

// What has arrived. The bytes are here until the handler returns, or still with the sender: then handle says which they
// are, and the receiver has to fetch() or drop() them.
struct UcxArrival {
  void* data;
  std::size_t bytes;
  bool remote;
};

class UcxLink {
 public:
  struct Peer {
    std::string address;
    bool same_machine;
  };
  // Throws Error where UCX cannot start.
  UcxLink();
  // Ends the connections once what was sent has arrived, for a second at most. What is still under way then is left to
  // the end of the process, and so is all of it after abandon().
  ~UcxLink();

  // For others to connect to.
  std::string const& address() const { return address_; }
  // Peers in rank order, this one included.
  void connect(Rank me, std::uint64_t session, std::vector<Peer> const& peers);

  Rank rank() const { return me_; }
  int size() const { return static_cast<int>(endpoints_.size()); }

  // Who takes what arrives. Handlers are called with the lock held and must not call progress().
  using Handler = std::function<void(UcxHeader const& header, UcxArrival const& arrival)>;
  void handle(UcxKind kind, Handler handler);

  // Sends; the bytes stay as they are until `sent` has been called, here or by progress(). It is not called where the
  // connection has failed.
  void send(Rank to, UcxKind kind, std::uint64_t number, std::uint64_t count, void const* data, std::size_t bytes,
            std::function<void()> sent);
  // The same for bytes that are kept alive here.
  void send(Rank to, UcxKind kind, std::uint64_t number, std::uint64_t count, std::string body);
  // Brings the bytes of a remote arrival. `fetched` is called, here or by progress(), when they are there.
  void fetch(UcxArrival const& arrival, void* to, std::function<void()> fetched);
  void drop(UcxArrival const& arrival);

  // Moves what can be moved now; true if anything was.
  bool progress();
  // Operations that are not over.
  std::size_t open() const { return open_; }
  // Called once for each rank whose connection has failed, with what UCX says of it.
  void on_broken(std::function<void(Rank peer, std::string const& what)> broken) { broken_ = std::move(broken); }
  // There is no point in ending connections in order.
  void abandon() { abandoned_ = true; }

  // For the thread that calls progress(): sleeps until there is something to do.
  std::unique_ptr<Bell> make_bell();

  std::recursive_mutex& mutex() { return mutex_; }

 private:
  struct Native;
  struct Operation;
  friend struct Native;
  void begin_send(Rank to, Operation* operation, void const* data, std::size_t bytes);
  bool close();

  std::recursive_mutex mutex_;
  std::unique_ptr<Native> native_;
  std::string address_;
  Rank me_{};
  std::uint64_t session_ = 0;
  std::vector<void*> endpoints_;
  std::vector<Handler> handlers_;
  std::function<void(Rank, std::string const&)> broken_;
  std::vector<UcxArrival> unclaimed_;  // of a kind that nobody takes any more; their senders wait
  std::size_t open_ = 0;
  void* handling_ = nullptr;  // what a handler has been given
  bool arrived_ = false;
  bool abandoned_ = false;
};

}  // namespace gpups::comm
