// SPDX-License-Identifier: Apache-2.0
// A script chooses the messages that arrive over a link, and the calls of its transport and bulk transport: each call
// succeeds or throws gpups::Error, no arrived message is lost, and claims of a peer take no more memory than is
// allowed.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "comm/bulk/bulk_transport.hpp"
#include "comm/transport/transport.hpp"
#include "gpups/error.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/support/fake_active_messages.hpp"

namespace gpups::fuzz {
namespace {

using comm::AmKind;

constexpr std::uint32_t kRanks = 3;

class Scenario {
 public:
  explicit Scenario(Script& script)
      : script_(script),
        messages_(std::make_shared<test::FakeActiveMessages>(static_cast<int>(kRanks))),
        transport_(comm::make_ucx_transport(messages_, nullptr)),
        bulk_(comm::make_ucx_bulk_transport(messages_)) {}
  // Operations end after the transport is destroyed, and while the destructor of the bulk transport waits for them.
  ~Scenario() {
    transport_.reset();
    messages_->ends_itself = true;
    bulk_.reset();
  }

  void play() {
    while (!script_.over()) {
      try {
        act(script_.byte() % 16);
      } catch (Error const&) {  // an error is a valid result
      }
      if (messages_->sent.size() > kSentMax) messages_->sent.clear();
    }
  }

 private:
  static constexpr std::size_t kSentMax = 4096, kWantBytesMax = std::size_t{1} << 17;
  using Id = std::pair<Rank, std::uint64_t>;
  struct Open {
    comm::Transfer transfer;
    Id id;
    bool sends;
    std::unique_ptr<std::vector<std::byte>> data;
  };

  Rank rank() { return Rank{script_.byte() % kRanks}; }
  std::uint64_t tag() { return script_.rarely(16) ? script_.number() : script_.byte() % 4; }
  std::size_t bytes() { return script_.rarely(32) ? script_.number() : script_.byte() % 8; }

  void act(int action) {
    switch (action) {
      case 0:
      case 1:
        return deliver(static_cast<AmKind>(script_.byte() % comm::kAmKinds));
      case 2:
      case 3:
        return deliver_remote(static_cast<AmKind>(script_.byte() % comm::kAmKinds));
      case 4:
        return script_.byte() % 2 == 0 ? messages_->deliver_message(rank(), script_.text(40))
                                       : messages_->deliver_remote_message(rank(), bytes());
      case 5: {  // many, as from a sender that ignores credits
        auto const from = rank();
        for (int left = 2 * script_.byte(); left > 0; --left) messages_->deliver_message(from, "x");
        return;
      }
      case 6: {
        auto const to = rank();
        for (int left = 1 + script_.byte() % 64; left > 0; --left) transport_->send(to, "y");
        return;
      }
      case 7:
      case 8:
        while (transport_->receive()) {
        }
        return;
      case 9:
        messages_->end_one();
        return;
      case 10:
        return send();
      case 11:
      case 12:
        return receive();
      case 13:
        return progress();
      case 14:
        if (script_.rarely(4)) return messages_->change(rank());
        script_.byte() % 2 == 0 ? transport_->leave() : transport_->fail(rank(), script_.text(40));
        return;
      default:
        messages_->end_all();
        return;
    }
  }

  void deliver(AmKind kind) {
    auto const from = rank();
    auto const number = tag();
    auto const count = bytes();
    auto body = script_.text(40);
    if (script_.rarely(16)) body.resize(std::min<std::size_t>(script_.number(), comm::kEagerBytesMax));
    messages_->deliver(from, kind, number, count, std::move(body));
  }
  void deliver_remote(AmKind kind) {
    auto const from = rank();
    auto const number = tag();
    auto const count = bytes();
    messages_->deliver_remote(from, kind, number, count, bytes());
  }

  bool is_open(Id const& id, bool sends) const {
    return std::any_of(open_.begin(), open_.end(),
                       [&](Open const& open) { return open.id == id && open.sends == sends; });
  }
  void send() {
    Id const id{rank(), tag()};
    if (is_open(id, true)) return;
    auto data = std::make_unique<std::vector<std::byte>>(std::min(bytes(), kWantBytesMax));
    auto const transfer = bulk_->send(stream_, id.first, id.second, data->data(), data->size());
    open_.push_back({transfer, id, true, std::move(data)});
  }
  void receive() {
    Id const id{rank(), tag()};
    if (is_open(id, false)) return;
    auto const size = bytes();
    auto data = std::make_unique<std::vector<std::byte>>();
    auto const where = [into = data.get(), size]() -> void* {
      if (size > kWantBytesMax) throw Error("the fuzz target has no memory for so many bytes: receive less");
      into->resize(size);
      return into->data();
    };
    auto const transfer = bulk_->receive(stream_, id.first, id.second, size, where);
    open_.push_back({transfer, id, false, std::move(data)});
  }
  void progress() {
    bulk_->progress();
    std::erase_if(open_, [this](Open const& open) { return bulk_->done(open.transfer); });
  }

  Script& script_;
  Stream stream_{Device::host(), 1};
  std::vector<Open> open_;  // outlives the bulk transport
  std::shared_ptr<test::FakeActiveMessages> messages_;
  std::unique_ptr<comm::Transport> transport_;
  std::unique_ptr<comm::BulkTransport> bulk_;
};

}  // namespace
}  // namespace gpups::fuzz

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  gpups::fuzz::Script script(data, size);
  gpups::fuzz::Scenario(script).play();
  return 0;
}
