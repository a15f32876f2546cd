// SPDX-License-Identifier: Apache-2.0
#include "tests/support/raw_peer.hpp"

#include <cstring>

#include "comm/collectives/collective_channel.hpp"
#include "comm/group/group_impl.hpp"

namespace gpups::test {
namespace {

// Makes progress only when the test calls `progress_all`, or while rank 0 waits.
class ManualDriver final : public comm::ProgressDriver {
 public:
  ManualDriver(std::function<bool()> const& on_idle, std::function<void()>& progress_all) : on_idle_(on_idle) {
    progress_all = [this] {
      while (progress_()) {
      }
    };
  }
  void start(std::function<bool()> progress) override { progress_ = std::move(progress); }
  void wake() override {}
  void stop() override {
    progress_ = [] { return false; };
  }
  bool wait(std::function<bool()> const& done, double) override {
    while (!done()) {
      if (!progress_() && !on_idle_()) return done();
    }
    return true;
  }

 private:
  std::function<bool()> const& on_idle_;
  std::function<bool()> progress_ = [] { return false; };
};

}  // namespace

RawPeer::RawPeer() : stream_(Device::host(), 1) {
  auto const impls = comm::make_thread_group(2, nullptr, [&](Rank rank) {
    std::function<void()> unused;
    return std::make_unique<ManualDriver>(on_idle, rank == Rank{0} ? progress_all_ : unused);
  });
  group_ = Group(impls[0]);
  transport_ = std::move(impls[1]->transport);
  bulk_ = std::move(impls[1]->bulk);
}

RawPeer::~RawPeer() {
  bulk_.reset();  // before the data that it sends is destroyed
}

void RawPeer::send_bytes(std::string const& message) {
  bytes_sent_ += message.size();
  transport_->send(Rank{0}, message);
}

void RawPeer::send_on(ChannelId channel, std::string const& body) {
  send_bytes(std::string(1, static_cast<char>(channel)) + body);
}

void RawPeer::send_header(std::uint64_t sequence_number, std::string const& header) {
  send_on(ChannelId::kCollectives, encode(comm::CollectiveMessage{sequence_number, header}));
}

void RawPeer::offer(std::uint64_t tag, std::vector<std::uint64_t> words, std::size_t bytes) {
  bytes_sent_ += bytes;
  data_.push_back(std::move(words));
  bulk_->send(stream_, Rank{0}, tag, data_.back().data(), bytes);
}

void RawPeer::send_data(std::uint64_t tag, std::size_t bytes, unsigned char fill, ChannelId channel) {
  std::vector<std::uint64_t> words(bytes / 8 + 1);
  std::memset(words.data(), fill, words.size() * 8);
  offer(tag_of(channel, tag), std::move(words), bytes);
}

void RawPeer::send_data(std::uint64_t tag, std::vector<std::uint8_t> const& bytes) {
  std::vector<std::uint64_t> words(bytes.size() / 8 + 1);
  if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
  offer(tag_of(ChannelId::kStore, tag), std::move(words), bytes.size());
}

void RawPeer::receive_data(std::uint64_t tag, std::size_t bytes, ChannelId channel) {
  tag = tag_of(channel, tag);
  if (!posted_receives_.insert(tag).second) return;
  bulk_->receive(stream_, Rank{0}, tag, bytes, [this, tag, bytes] {
    posted_receives_.erase(tag);
    data_.emplace_back(bytes / 8 + 1);
    return data_.back().data();
  });
}

std::optional<RawPeer::Received> RawPeer::receive_any() {
  auto const message = transport_->receive();
  if (!message) return std::nullopt;
  Received received{.channel = static_cast<ChannelId>(message->body.at(0)), .body = message->body.substr(1)};
  if (received.body.empty()) return received;
  if (received.channel == ChannelId::kStore) {
    received.of_store = cache::decode(received.body);
  } else {
    received.of_collective = comm::decode_header(comm::decode_collective(received.body).header);
  }
  return received;
}

std::optional<cache::Message> RawPeer::receive() {
  auto received = receive_any();
  return received ? std::move(received->of_store.value()) : std::optional<cache::Message>();
}

}  // namespace gpups::test
