// SPDX-License-Identifier: Apache-2.0
// Communicators between ranks in one thread, for tests of collectives. A seed decides the order in which messages
// arrive, and messages are counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "comm/collectives/co_task.hpp"
#include "comm/collectives/communicator.hpp"

namespace gpups::test {

// The communicators of all ranks.
class MemoryCommunicators {
 public:
  explicit MemoryCommunicators(int ranks, std::uint64_t seed = 1, Device device = Device::host());
  ~MemoryCommunicators();

  // Runs `body` as all ranks until all have returned. Throws the first exception of a rank, and std::logic_error if a
  // rank waits for a message that no rank sends or does not receive a message.
  void run(std::function<comm::CoTask<>(comm::Communicator&)> const& body);

  // Called with the bytes of each message before its receiver gets it. May change the bytes, which are on the device of
  // the receive.
  std::function<void(Rank from, View<std::uint8_t> bytes)> on_arrival;

  // The messages and bytes that a rank has sent.
  struct Sent {
    std::size_t messages = 0, bytes = 0;
  };
  Sent sent(int rank) const { return sent_[static_cast<std::size_t>(rank)]; }
  Sent sent() const;  // all ranks together

 private:
  class End;
  struct Message {
    View<std::uint8_t const> bytes;
    std::shared_ptr<void const> keep;
    std::shared_ptr<comm::Completion> sending;
    bool size_is_known;
  };
  struct PendingReceive {
    std::size_t bytes_max;
    View<std::uint8_t> to;
    Device device;
    bool size_is_known;
    std::shared_ptr<void const> keep;
    std::shared_ptr<comm::Completion> receiving;
  };
  // Messages on their way from one rank to another, and posted receives.
  struct Pair {
    std::deque<Message> messages;
    std::deque<PendingReceive> receives;
  };

  struct Sum {
    comm::FabricSum arrays;
    std::shared_ptr<void const> keep;
    std::shared_ptr<comm::Completion> completion;
  };

  bool deliver_one();
  bool fabric_allreduce();
  void deliver(Rank from, Pair& pair);

  Stream stream_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<End>> ends_;
  std::vector<Sent> sent_;
  std::uint64_t runs_ = 0;                       // calls of run()
  std::map<std::pair<Rank, Rank>, Pair> pairs_;  // by sender and receiver
  std::vector<Sum> sums_;                        // posted allreduces
};

}  // namespace gpups::test
