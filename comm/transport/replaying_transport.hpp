// SPDX-License-Identifier: Apache-2.0
// A transport that first returns messages which a ControlChannel has received before on the same transport.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "comm/transport/transport.hpp"

namespace gpups::comm {

// Wraps a transport.
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
