// SPDX-License-Identifier: Apache-2.0
#include "tests/support/raw_peer.hpp"

#include <cstring>

#include "comm/group/of_process.hpp"

namespace gpups::test {
namespace {

class HandTurner final : public comm::Turner {
 public:
  HandTurner(std::function<bool()> const& on_idle, std::function<void()>& turn_all) : on_idle_(on_idle) {
    turn_all = [this] {
      while (turn_()) {
      }
    };
  }
  void start(std::function<bool()> turn) override { turn_ = std::move(turn); }
  void wake() override {}
  void stop() override {
    turn_ = [] { return false; };
  }
  bool wait(std::function<bool()> const& done, double) override {
    while (!done()) {
      if (!turn_() && !on_idle_()) return done();
    }
    return true;
  }

 private:
  std::function<bool()> const& on_idle_;
  std::function<bool()> turn_ = [] { return false; };
};

}  // namespace

RawPeer::RawPeer() : stream_(Device::host(), 1) {
  auto const impls = comm::group_of_process(2, nullptr, [&](Rank rank) {
    std::function<void()> unused;
    return std::make_unique<HandTurner>(on_idle, rank == Rank{0} ? turn_all_ : unused);
  });
  group_ = Group(impls[0]);
  transport_ = std::move(impls[1]->transport);
  payload_ = std::move(impls[1]->payload);
}

RawPeer::~RawPeer() {
  payload_.reset();  // before what it offers goes
}

void RawPeer::send_bytes(std::string const& body) {
  bytes_sent_ += body.size();
  transport_->send(Rank{0}, body);
}

void RawPeer::offer(std::uint64_t tag, std::vector<std::uint64_t> words, std::size_t bytes) {
  bytes_sent_ += bytes;
  data_.push_back(std::move(words));
  payload_->send(stream_, Rank{0}, tag, data_.back().data(), bytes);
}

void RawPeer::send_data(std::uint64_t tag, std::size_t bytes, unsigned char fill) {
  std::vector<std::uint64_t> words(bytes / 8 + 1);
  std::memset(words.data(), fill, words.size() * 8);
  offer(tag, std::move(words), bytes);
}

void RawPeer::send_data(std::uint64_t tag, std::vector<std::uint8_t> const& bytes) {
  std::vector<std::uint64_t> words(bytes.size() / 8 + 1);
  if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
  offer(tag, std::move(words), bytes.size());
}

void RawPeer::take_data(std::uint64_t tag, std::size_t bytes) {
  if (!wanted_.insert(tag).second) return;
  payload_->receive(stream_, Rank{0}, tag, bytes, [this, tag, bytes] {
    wanted_.erase(tag);
    data_.emplace_back(bytes / 8 + 1);
    return data_.back().data();
  });
}

std::optional<cache::Message> RawPeer::receive() {
  auto const received = transport_->receive();
  if (!received) return std::nullopt;
  return cache::decode(received->body);
}

}  // namespace gpups::test
