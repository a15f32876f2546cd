// SPDX-License-Identifier: Apache-2.0
#include "comm/payload/local.hpp"

#include <utility>

#include "comm/payload/exchange.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {
namespace {

class Local final : public Payload {
 public:
  Local(Rank rank, std::shared_ptr<Exchange> exchange, std::shared_ptr<Network> network)
      : rank_(rank), exchange_(std::move(exchange)), network_(std::move(network)) {}
  ~Local() override { exchange_->close(rank_); }

  Transfer send(Stream& stream, Rank to, std::uint64_t tag, void const* data, std::size_t bytes) override {
    auto const offer = std::make_shared<Offer>(Offer{.from = rank_,
                                                     .to = to,
                                                     .tag = tag,
                                                     .number = next(),
                                                     .ready = stream.record(),
                                                     .data = data,
                                                     .device = stream.device(),
                                                     .bytes = bytes});
    exchange_->offer(offer);
    carry(to, *offer, [exchange = exchange_, offer] { exchange->arrive(offer); });
    return offer->number;
  }

  Transfer receive(Stream& stream, Rank from, std::uint64_t tag, std::size_t bytes, Where where) override {
    Transfer const number = next();
    exchange_->want(rank_, from, tag, {stream, number, bytes, std::move(where)});
    return number;
  }

  bool adds(Device) const override { return false; }
  Transfer sum(Stream&, std::uint64_t, View<float const>, View<float>) override {
    GPUPS_ASSERT(false && "nothing adds up between threads");
    return {};
  }

  bool progress() override {
    if (network_) network_->poll();
    exchange_->check(rank_);
    Exchange::Moved const moved = exchange_->move(rank_);
    for (auto const& offer : moved.over) {
      carry(offer->from, *offer, [exchange = exchange_, offer] { exchange->sent(*offer); });
    }
    for (auto const& offer : moved.refused) {
      carry(offer->from, *offer, [exchange = exchange_, offer] { exchange->refused(*offer); });
    }
    exchange_->check(rank_);
    return moved.any;
  }

  bool done(Transfer transfer) override { return exchange_->done(rank_, transfer); }
  std::vector<Transfer> take_done() override { return exchange_->take_done(rank_); }
  void on_arrival(std::function<void()> wake) override { exchange_->on_arrival(rank_, std::move(wake)); }

 private:
  Transfer next() { return Transfer{++transfers_}; }

  template <class Arrive>
  void carry(Rank to, Offer const& offer, Arrive arrive) {
    if (network_) {
      network_->carry(Network::Order::kFree, rank_, to, offer.tag ^ (offer.bytes << 32), std::move(arrive));
    } else {
      arrive();
    }
  }

  Rank const rank_;
  std::shared_ptr<Exchange> const exchange_;
  std::shared_ptr<Network> const network_;
  std::uint64_t transfers_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Payload>> make_local_payloads(int ranks, std::shared_ptr<Network> network) {
  auto const exchange = std::make_shared<Exchange>(ranks);
  std::vector<std::unique_ptr<Payload>> ends;
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(ranks); ++rank) {
    ends.push_back(std::make_unique<Local>(Rank{rank}, exchange, network));
  }
  return ends;
}

}  // namespace gpups::comm
