// SPDX-License-Identifier: Apache-2.0
#include "tests/support/memory_mesh.hpp"

#include <fmt/core.h>

#include <stdexcept>
#include <string>

#include "gpups/error.hpp"
#include "kernels/sum_arrays.hpp"

namespace gpups::test {

using comm::Delivery;

class MemoryMeshes::End final : public comm::Mesh {
 public:
  End(MemoryMeshes& all, Rank me, int ranks) : Mesh(me, ranks, all.stream_), all_(all) {}

  std::uint64_t number_of_run() const override { return all_.runs_; }
  bool adds() const override { return true; }
  [[noreturn]] void refuse(Rank peer, std::string const& what) const override {
    throw PeerError(peer, fmt::format("rank {} {}", number(peer), what));
  }

 protected:
  comm::Sending offer(Rank to, View<std::uint8_t const> bytes, std::shared_ptr<void const> keep, Size size) override {
    auto& sent = all_.sent_[number(me())];
    ++sent.messages;
    sent.bytes += bytes.size();
    auto const sending = std::make_shared<Delivery>();
    all_.pairs_[{me(), to}].messages.push_back({bytes, std::move(keep), sending, size == Size::kKnown});
    return comm::Sending(sending);
  }
  std::shared_ptr<Delivery> want(Rank from, std::size_t bytes_max, Device device) override {
    return wanted(from, {bytes_max, {}, device, false, nullptr, std::make_shared<Delivery>()});
  }
  std::shared_ptr<Delivery> want_exactly(Rank from, View<std::uint8_t> to, std::shared_ptr<void const> keep) override {
    return wanted(from, {to.size(), to, to.device(), true, std::move(keep), std::make_shared<Delivery>()});
  }
  std::shared_ptr<Delivery> want_sum(View<float const> terms, View<float> sums,
                                     std::shared_ptr<void const> keep) override {
    auto delivery = std::make_shared<Delivery>();
    all_.sums_.push_back({terms, sums, std::move(keep), delivery});
    return delivery;
  }
  std::shared_ptr<Delivery> await_stream() override {
    stream().wait();
    auto delivery = std::make_shared<Delivery>();
    delivery->over = true;
    return delivery;
  }

 private:
  std::shared_ptr<Delivery> wanted(Rank from, Want const& want) {
    all_.pairs_[{from, me()}].wants.push_back(want);
    return want.receiving;
  }
  MemoryMeshes& all_;
};

MemoryMeshes::MemoryMeshes(int ranks, std::uint64_t seed, Device device)
    : stream_(device, 1), random_(seed), sent_(static_cast<std::size_t>(ranks)) {
  for (int rank = 0; rank < ranks; ++rank) {
    ends_.push_back(std::make_unique<End>(*this, Rank{static_cast<std::uint32_t>(rank)}, ranks));
  }
}
MemoryMeshes::~MemoryMeshes() = default;

void MemoryMeshes::run(std::function<comm::Task<>(comm::Mesh&)> const& body) {
  ++runs_;
  std::vector<comm::Task<>> tasks;
  for (auto const& end : ends_) tasks.push_back(body(*end));
  for (auto& task : tasks) task.start();
  while (deliver_one() || add_up()) {
  }
  for (auto& task : tasks) {
    if (task.done()) task.result();
  }
  for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
    if (!tasks[rank].done()) throw std::logic_error(fmt::format("rank {} waits for what nobody sends", rank));
  }
  for (auto const& [ranks, pair] : std::exchange(pairs_, {})) {
    if (pair.messages.empty()) continue;
    throw std::logic_error(
        fmt::format("rank {} did not take what rank {} sent it", number(ranks.second), number(ranks.first)));
  }
}

bool MemoryMeshes::deliver_one() {
  std::vector<std::pair<Rank, Pair*>> possible;
  for (auto& [ranks, pair] : pairs_) {
    if (!pair.messages.empty() && !pair.wants.empty()) possible.emplace_back(ranks.first, &pair);
  }
  if (possible.empty()) return false;
  auto const [from, pair] = possible[random_() % possible.size()];
  deliver(from, *pair);
  return true;
}

// Where all ranks wait for that.
bool MemoryMeshes::add_up() {
  if (sums_.size() < ends_.size()) return false;
  auto const wanted = std::exchange(sums_, {});
  std::vector<View<float const>> terms;
  for (auto const& sum : wanted) terms.push_back(sum.terms);
  Array<float> const total(stream_.device(), terms.front().size());
  kernels::sum_arrays(stream_, {.arrays = terms, .sums = total});
  for (auto const& sum : wanted) copy<float>(stream_, sum.sums, total);
  stream_.wait();
  for (auto const& sum : wanted) sum.delivery->end();
  return true;
}

void MemoryMeshes::deliver(Rank from, Pair& pair) {
  auto const message = std::move(pair.messages.front());
  auto const want = std::move(pair.wants.front());
  pair.messages.pop_front();
  pair.wants.pop_front();
  if (message.size_is_known != want.size_is_known) {
    throw std::logic_error("one side knows how large the message is, and the other does not");
  }
  bool const fits =
      want.size_is_known ? message.bytes.size() == want.to.size() : message.bytes.size() <= want.bytes_max;
  if (!fits) {
    throw PeerError(from, fmt::format("rank {} sends {} bytes where {} are expected", number(from),
                                      message.bytes.size(), want.bytes_max));
  }
  if (want.size_is_known) {
    copy<std::uint8_t>(stream_, want.to, message.bytes);
  } else {
    want.receiving->bytes = comm::Bytes(want.device, message.bytes.size());
    copy<std::uint8_t>(stream_, want.receiving->bytes, message.bytes);
  }
  stream_.wait();
  if (on_arrival) on_arrival(from, want.size_is_known ? want.to : want.receiving->bytes.view());
  message.sending->end();
  want.receiving->end();
}

MemoryMeshes::Sent MemoryMeshes::sent() const {
  Sent all;
  for (auto const& of_one : sent_) {
    all.messages += of_one.messages;
    all.bytes += of_one.bytes;
  }
  return all;
}

}  // namespace gpups::test
