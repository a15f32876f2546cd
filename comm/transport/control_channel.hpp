// SPDX-License-Identifier: Apache-2.0
// A conversation of all ranks over their transport, for programs that look at a group instead of training with it.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "comm/transport/transport.hpp"

namespace gpups::comm {

// While it lives nobody else may use the transport. All methods throw PeerError where a rank has left, or does not
// answer in time.
class ControlChannel {
 public:
  explicit ControlChannel(Transport& transport, double timeout_s = 60);

  int rank() const { return static_cast<int>(number(transport_.rank())); }
  int size() const { return transport_.size(); }
  double timeout_s() const { return timeout_s_; }
  void set_timeout(double timeout_s) { timeout_s_ = timeout_s; }

  void wait_send(int to, std::string const& body);
  std::string wait_receive(int from);  // the next of this rank; what comes from others is kept for later
  // What each has to say, in rank order, at rank 0; nothing elsewhere.
  std::vector<std::string> wait_gather_to_root(std::string const& mine);
  // What rank 0 has to say, at all ranks.
  std::string wait_broadcast(std::string const& body);
  // What each has to say, in rank order, at all ranks.
  std::vector<std::string> wait_allgather(std::string const& mine);

  // What has come and nobody has asked for, those of each sender in order: of ranks that have ended their
  // ControlChannel, and gone on over the same transport.
  std::deque<TransportMessage> take_unread();

 private:
  bool poll();  // what has arrived

  Transport& transport_;
  double timeout_s_;
  std::vector<std::deque<std::string>> received_;  // by rank
};

}  // namespace gpups::comm
