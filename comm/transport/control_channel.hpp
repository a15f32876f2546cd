// SPDX-License-Identifier: Apache-2.0
// Blocking messages between all ranks over their transport, for set-up and diagnosis.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/transport/transport.hpp"

namespace gpups::comm {

// Only it may use the transport while it exists. All functions throw PeerError if a rank has left or does not answer
// within `timeout_s`.
class ControlChannel {
 public:
  explicit ControlChannel(Transport& transport, double timeout_s = 60);

  int rank() const { return static_cast<int>(number(transport_.rank())); }
  int size() const { return transport_.size(); }
  double timeout_s() const { return timeout_s_; }
  void set_timeout(double timeout_s) { timeout_s_ = timeout_s; }

  void wait_send(int to, std::string const& body);
  std::string wait_receive(int from);  // the next message of `from`; messages of other ranks are kept
  // Returns the bodies of all ranks, in rank order, on rank 0; nothing on other ranks.
  std::vector<std::string> wait_gather_to_root(std::string const& mine);
  // Returns the body of rank 0 on all ranks.
  std::string wait_broadcast(std::string const& body);
  // Returns the bodies of all ranks, in rank order, on all ranks.
  std::vector<std::string> wait_allgather(std::string const& mine);

  // Returns the messages that have arrived and were not received, in order for each sender. They belong to ranks that
  // have ended their ControlChannel and continue to use the transport.
  std::deque<TransportMessage> take_unread();

  // Sends and receives without blocking; returns whether messages have arrived. Call it while waiting for something
  // else than this channel; the blocking functions call it themselves.
  bool poll();

 private:
  Transport& transport_;
  double timeout_s_;
  std::vector<std::deque<std::string>> received_;  // by rank
};

// A transport that first returns messages which a ControlChannel has received before on the same transport.
class ReplayingTransport final : public Transport {
 public:
  // received: the messages to return first, in order for each sender.
  ReplayingTransport(std::unique_ptr<Transport> transport, std::deque<TransportMessage> received)
      : transport_(std::move(transport)), received_(std::move(received)) {}

  Rank rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  bool send(Rank to, std::string const& body) override { return transport_->send(to, body); }
  std::optional<TransportMessage> receive() override {
    if (received_.empty()) return transport_->receive();
    TransportMessage message = std::move(received_.front());
    received_.pop_front();
    return message;
  }
  void on_arrival(std::function<void()> wake) override { transport_->on_arrival(std::move(wake)); }
  void leave() override { transport_->leave(); }
  void fail(Rank at_fault, std::string const& why) override { transport_->fail(at_fault, why); }

 private:
  std::unique_ptr<Transport> const transport_;
  std::deque<TransportMessage> received_;
};

}  // namespace gpups::comm
