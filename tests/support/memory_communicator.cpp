// SPDX-License-Identifier: Apache-2.0
#include "tests/support/memory_communicator.hpp"

#include <fmt/core.h>

#include <stdexcept>
#include <string>

#include "gpups/error.hpp"
#include "kernels/sum/sum_arrays.hpp"

namespace gpups::test {

using comm::Completion;

class MemoryCommunicators::End final : public comm::Communicator {
 public:
  End(MemoryCommunicators& all, Rank me, int ranks) : Communicator(me, ranks, all.stream_), all_(all) {}

  std::uint64_t sequence_number() const override { return all_.runs_; }
  bool can_allreduce() const override { return true; }
  [[noreturn]] void throw_peer_error(Rank peer, std::string const& what) const override {
    throw PeerError(peer, fmt::format("rank {} {}", number(peer), what));
  }

 protected:
  comm::SendRequest post_send(Rank to, View<std::uint8_t const> bytes, std::shared_ptr<void const> keep,
                              SizeMode size) override {
    auto& sent = all_.sent_[number(me())];
    ++sent.messages;
    sent.bytes += bytes.size();
    auto const sending = std::make_shared<Completion>();
    all_.pairs_[{me(), to}].messages.push_back({bytes, std::move(keep), sending, size == SizeMode::kKnown});
    return comm::SendRequest(sending);
  }
  std::shared_ptr<Completion> post_receive(Rank from, std::size_t bytes_max, Device device) override {
    return add_receive(from, {bytes_max, {}, device, false, nullptr, std::make_shared<Completion>()});
  }
  std::shared_ptr<Completion> post_receive_fixed(Rank from, View<std::uint8_t> to,
                                                 std::shared_ptr<void const> keep) override {
    return add_receive(from, {to.size(), to, to.device(), true, std::move(keep), std::make_shared<Completion>()});
  }
  std::shared_ptr<Completion> post_allreduce(comm::FabricSum const& arrays, std::shared_ptr<void const> keep) override {
    auto completion = std::make_shared<Completion>();
    all_.sums_.push_back({arrays, std::move(keep), completion});
    return completion;
  }
  std::shared_ptr<Completion> stream_completion() override {
    stream().wait();
    auto completion = std::make_shared<Completion>();
    completion->done = true;
    return completion;
  }

 private:
  std::shared_ptr<Completion> add_receive(Rank from, PendingReceive const& pending) {
    all_.pairs_[{from, me()}].receives.push_back(pending);
    return pending.receiving;
  }
  MemoryCommunicators& all_;
};

MemoryCommunicators::MemoryCommunicators(int ranks, std::uint64_t seed, Device device)
    : stream_(device, 1), random_(seed), sent_(static_cast<std::size_t>(ranks)) {
  for (int rank = 0; rank < ranks; ++rank) {
    ends_.push_back(std::make_unique<End>(*this, Rank{static_cast<std::uint32_t>(rank)}, ranks));
  }
}
MemoryCommunicators::~MemoryCommunicators() = default;

void MemoryCommunicators::run(std::function<comm::CoTask<>(comm::Communicator&)> const& body) {
  ++runs_;
  std::vector<comm::CoTask<>> tasks;
  for (auto const& end : ends_) tasks.push_back(body(*end));
  for (auto& task : tasks) task.start();
  while (deliver_one() || fabric_allreduce()) {
  }
  for (auto& task : tasks) {
    if (task.done()) task.result();
  }
  for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
    if (!tasks[rank].done())
      throw std::logic_error(fmt::format("rank {} waits for a message that no rank sends", rank));
  }
  for (auto const& [ranks, pair] : std::exchange(pairs_, {})) {
    if (pair.messages.empty()) continue;
    throw std::logic_error(
        fmt::format("rank {} did not receive a message of rank {}", number(ranks.second), number(ranks.first)));
  }
}

bool MemoryCommunicators::deliver_one() {
  std::vector<std::pair<Rank, Pair*>> possible;
  for (auto& [ranks, pair] : pairs_) {
    if (!pair.messages.empty() && !pair.receives.empty()) possible.emplace_back(ranks.first, &pair);
  }
  if (possible.empty()) return false;
  auto const [from, pair] = possible[random_() % possible.size()];
  deliver(from, *pair);
  return true;
}

// Sums if all ranks have called allreduce. Returns whether it did.
bool MemoryCommunicators::fabric_allreduce() {
  if (sums_.size() < ends_.size()) return false;
  auto const sums = std::exchange(sums_, {});
  std::size_t const count = sums.front().arrays.count;
  std::vector<View<float const>> terms;
  for (auto const& sum : sums) terms.emplace_back(static_cast<float const*>(sum.arrays.terms), count, stream_.device());
  Array<float> const total(stream_.device(), count);
  kernels::sum_arrays(stream_, {.arrays = terms, .sums = total});
  for (auto const& sum : sums) {
    copy<float>(stream_, View<float>(static_cast<float*>(sum.arrays.sums), count, stream_.device()), total);
  }
  stream_.wait();
  for (auto const& sum : sums) sum.completion->end();
  return true;
}

void MemoryCommunicators::deliver(Rank from, Pair& pair) {
  auto const message = std::move(pair.messages.front());
  auto const receive = std::move(pair.receives.front());
  pair.messages.pop_front();
  pair.receives.pop_front();
  if (message.size_is_known != receive.size_is_known) {
    throw std::logic_error("one side uses a fixed size for the message, and the other side does not");
  }
  bool const fits =
      receive.size_is_known ? message.bytes.size() == receive.to.size() : message.bytes.size() <= receive.bytes_max;
  if (!fits) {
    throw PeerError(from, fmt::format("rank {} sends {} bytes where {} are expected", number(from),
                                      message.bytes.size(), receive.bytes_max));
  }
  if (receive.size_is_known) {
    copy<std::uint8_t>(stream_, receive.to, message.bytes);
  } else {
    receive.receiving->bytes = comm::Bytes(receive.device, message.bytes.size());
    copy<std::uint8_t>(stream_, receive.receiving->bytes, message.bytes);
  }
  stream_.wait();
  if (on_arrival) on_arrival(from, receive.size_is_known ? receive.to : receive.receiving->bytes.view());
  message.sending->end();
  receive.receiving->end();
}

MemoryCommunicators::Sent MemoryCommunicators::sent() const {
  Sent all;
  for (auto const& of_one : sent_) {
    all.messages += of_one.messages;
    all.bytes += of_one.bytes;
  }
  return all;
}

}  // namespace gpups::test
