// SPDX-License-Identifier: Apache-2.0
// Communicators between ranks of one thread, for tests of collectives: messages arrive in an order that a seed decides,
// and every one is counted.
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

class MemoryCommunicators {
 public:
  explicit MemoryCommunicators(int ranks, std::uint64_t seed = 1, Device device = Device::host());
  ~MemoryCommunicators();

  // Runs `body` as all ranks until all have returned. Throws what the first of them throws, and where all of them wait.
  void run(std::function<comm::CoTask<>(comm::Communicator&)> const& body);

  // Called with what each message brings, on the host, before its receiver sees it: may change it.
  std::function<void(Rank from, View<std::uint8_t> bytes)> on_arrival;

  // What a rank has sent.
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
  // What is on its way from one rank to another, and wanted there.
  struct Pair {
    std::deque<Message> messages;
    std::deque<PendingReceive> wants;
  };

  struct Sum {
    View<float const> terms;
    View<float> sums;
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
  std::uint64_t runs_ = 0;                       // so far
  std::map<std::pair<Rank, Rank>, Pair> pairs_;  // by sender and receiver
  std::vector<Sum> sums_;                        // that ranks wait for
};

}  // namespace gpups::test
