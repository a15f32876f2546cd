// SPDX-License-Identifier: Apache-2.0
// A link of rank 0 whose peers are simulated by the test. The test delivers messages and decides when sends and fetches
// complete. The program aborts if an arrival is dropped twice, or neither fetched nor dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "comm/ucx/active_messages.hpp"

namespace gpups::test {

class FakeActiveMessages final : public comm::ActiveMessages {
 public:
  explicit FakeActiveMessages(int size) : size_(size), handlers_(comm::kAmKinds) {}
  // Completes all operations. No arrival may be left.
  ~FakeActiveMessages() override {
    end_all();
    if (!here_.empty()) die("an arrival was forgotten");
  }

  // -- the peers' side --

  struct Sent {
    Rank to;
    comm::AmKind kind;
    std::uint64_t number;
    std::uint64_t count;
    std::size_t bytes;
    comm::AmProtocol protocol = comm::AmProtocol::kEager;
  };
  void deliver(Rank from, comm::AmKind kind, std::uint64_t number, std::uint64_t count, std::string body = {}) {
    give({body.data(), body.size(), false, {from, kind, number, count}});
  }
  // Delivers the sender's next message.
  void deliver_message(Rank from, std::string body) {
    deliver(from, comm::AmKind::kMessage, messages_[from]++, 0, std::move(body));
  }
  void deliver_remote_message(Rank from, std::size_t bytes) {
    deliver_remote(from, comm::AmKind::kMessage, messages_[from]++, 0, bytes);
  }
  // Delivers the header of data that stays at the sender and has `bytes` bytes by its own statement.
  void deliver_remote(Rank from, comm::AmKind kind, std::uint64_t number, std::uint64_t count, std::size_t bytes) {
    void* const handle = reinterpret_cast<void*>(++handles_);  // NOLINT: it is only compared
    here_[handle] = bytes;
    give({handle, bytes, true, {from, kind, number, count}});
  }
  // Completes the oldest operation. Returns false if there is none.
  bool end_one() {
    if (open_.empty()) return false;
    auto const operation = std::move(open_.front());
    open_.pop_front();
    if (operation.to != nullptr) std::memset(operation.to, 'x', operation.bytes);
    if (operation.then) operation.then();
    return true;
  }
  void end_all() {
    while (end_one()) {
    }
  }
  std::vector<Sent> sent;    // messages that rank 0 has sent
  bool ends_itself = false;  // whether progress() completes operations
  std::size_t bytes_requested() const { return bytes_requested_; }
  std::size_t in_flight() const { return open_.size(); }

  // -- rank 0's side --

  Rank rank() const override { return Rank{0}; }
  int size() const override { return size_; }
  void handle(comm::AmKind kind, Handler handler) override {
    handlers_[static_cast<std::size_t>(kind)] = std::move(handler);
  }
  void send(comm::AmProtocol protocol, Rank to, comm::AmKind kind, std::uint64_t number, std::uint64_t count,
            void const*, std::size_t bytes, std::function<void()> then) override {
    sent.push_back({to, kind, number, count, bytes, protocol});
    open_.push_back({nullptr, 0, std::move(then)});
  }
  void send(Rank to, comm::AmKind kind, std::uint64_t number, std::uint64_t count, std::string body) override {
    sent.push_back({to, kind, number, count, body.size(), comm::AmProtocol::kEager});
  }
  void fetch(comm::AmArrival const& arrival, void* to, std::function<void()> fetched) override {
    drop(arrival);
    bytes_requested_ += arrival.bytes;
    open_.push_back({to, arrival.bytes, std::move(fetched)});
  }
  bool reaches(Device device) const override { return device.is_host(); }
  void drop(comm::AmArrival const& arrival) override {
    if (arrival.remote && here_.erase(arrival.data) != 1) die("an arrival was dropped or fetched twice");
  }
  bool progress() override { return ends_itself && end_one(); }
  void on_broken(std::function<void(Rank, std::string const&)> broken) override { broken_ = std::move(broken); }
  void on_peer_error(void const* listener, OnPeerError wrong) override {
    on_wrong_.erase(listener);
    if (wrong) on_wrong_.emplace(listener, std::move(wrong));
  }
  void abandon() override {}
  // Reports that a message of `peer` was changed on its way.
  void change(Rank peer) {
    for (auto const& [listener, callback] : on_wrong_) callback(peer, "it was changed");
  }
  void break_connection(Rank peer) { broken_(peer, "it broke"); }
  std::recursive_mutex& mutex() override { return mutex_; }

 private:
  struct Operation {
    void* to;  // null: a send
    std::size_t bytes;
    std::function<void()> then;
  };
  void give(comm::AmArrival const& arrival) {
    std::lock_guard lock(mutex_);
    comm::AmHeader const& header = arrival.header;
    auto const& handler = handlers_[static_cast<std::size_t>(header.kind)];
    handler ? handler(header, arrival) : drop(arrival);
  }
  [[noreturn]] static void die(char const* what) {
    std::fprintf(stderr, "%s\n", what);
    std::abort();
  }

  int const size_;
  std::recursive_mutex mutex_;
  std::vector<Handler> handlers_;
  std::map<void*, std::size_t> here_;  // remote arrivals that are neither fetched nor dropped
  std::uintptr_t handles_ = 0;
  std::map<Rank, std::uint64_t> messages_;  // by sender: the number of its next message
  std::deque<Operation> open_;
  std::size_t bytes_requested_ = 0;
  std::function<void(Rank, std::string const&)> broken_;
  std::map<void const*, OnPeerError> on_wrong_;
};

}  // namespace gpups::test
