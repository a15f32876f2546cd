// SPDX-License-Identifier: Apache-2.0
#include "comm/bulk/bulk_transport.hpp"

#include <chrono>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "comm/base/peer_error.hpp"
#include "comm/base/wakeup.hpp"
#include "comm/bulk/flow_control.hpp"
#include "comm/bulk/rendezvous.hpp"
#include "gpups/array.hpp"
#include "gpups/error.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

// A bulk transport over active messages. Transfers between devices are left to RendezvousTransfers.
class Ucx final : public BulkTransport {
 public:
  Ucx(std::shared_ptr<ActiveMessages> ucx, std::shared_ptr<DeviceFabric> fabric)
      : ucx_(std::move(ucx)),
        unexpected_(static_cast<std::size_t>(ucx_->size())),
        peers_(static_cast<std::size_t>(ucx_->size())),
        rendezvous_(
            ucx_, std::move(fabric), [this](Rank peer, char const* what) { reject(peer, what); }, [this] { wake_(); }) {
    for (auto const kind : {AmKind::kBulkOffer, AmKind::kFabricOffer}) {
      ucx_->handle(kind, [this](AmHeader const& header, AmArrival const& arrival) {
        ucx_->drop(arrival);
        on_arrival_of(header, {nullptr, static_cast<std::size_t>(header.bytes), false, header});
      });
    }
    ucx_->handle(AmKind::kData,
                 [this](AmHeader const& header, AmArrival const& arrival) { on_arrival_of(header, arrival); });
    ucx_->on_peer_error(this, [this](Rank peer, std::string const& what) {
      fail(peer, fmt::format("messages from rank {} cannot be used: {}", number(peer), what));
    });
    ucx_->handle(AmKind::kBulkRejected, [this](AmHeader const& header, AmArrival const& arrival) {
      std::string const why = peer_text({static_cast<char const*>(arrival.data), arrival.remote ? 0 : arrival.bytes});
      ucx_->drop(arrival);
      why.empty() ? reject(header.from, "it rejected data without a reason") : fail(header.from, why);
    });
    ucx_->handle(AmKind::kBulkWithdrawn, [this](AmHeader const& header, AmArrival const& arrival) {
      ucx_->drop(arrival);
      auto const withdrawn = unexpected_.take({header.from, header.number});
      if (withdrawn) ucx_->drop(withdrawn->handle);
    });
    ucx_->handle(AmKind::kBulkCredit, [this](AmHeader const& header, AmArrival const& arrival) {
      ucx_->drop(arrival);
      bool const is_possible = peers_[number(header.from)].credits.acknowledge({header.number, header.bytes});
      is_possible ? announce_more(header.from) : reject(header.from, "it returned credits for more than was sent");
    });
  }

  // Blocks until copies from and to memory of this rank have ended, for at most a second.
  ~Ucx() override {
    wake_.set(nullptr);
    withdraw_sends();
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (copying() && std::chrono::steady_clock::now() < end) {
      if (!ucx_->progress()) std::this_thread::yield();
    }
    std::lock_guard lock(ucx_->mutex());
    if (copying()) ucx_->abandon();
    *alive_ = false;
    ucx_->on_peer_error(this, nullptr);
    ucx_->handle(AmKind::kData, nullptr);
    ucx_->handle(AmKind::kBulkRejected, nullptr);
    ucx_->handle(AmKind::kBulkWithdrawn, nullptr);
    ucx_->handle(AmKind::kBulkCredit, nullptr);
    ucx_->handle(AmKind::kBulkOffer, nullptr);
    ucx_->handle(AmKind::kFabricOffer, nullptr);
    unexpected_.each([this](UnexpectedArrival const& arrival) { ucx_->drop(arrival.handle); });
  }

  Transfer send(Stream& stream, Rank to, std::uint64_t tag, void const* data, std::size_t bytes) override {
    std::lock_guard lock(ucx_->mutex());
    Transfer const number{++transfers_};
    PostedSend send{number, to, tag, data, bytes, stream, {}, {}};
    if (!stream.device().is_host() && !rendezvous_.handles(stream.device(), bytes)) {
      send.staged = stage(stream.device(), bytes);
      memory::copy(stream, send.staged.get(), Device::host(), data, stream.device(), bytes);
      send.data = send.staged.get();
    }
    send.ready = stream.record();
    if (send.ready.done()) {
      offer(std::move(send));
    } else {
      waiting_.push_back(std::move(send));
    }
    return number;
  }

  Transfer receive(Stream& stream, Rank from, std::uint64_t tag, std::size_t bytes, Allocate allocate) override {
    std::lock_guard lock(ucx_->mutex());
    Transfer const number{++transfers_};
    Id const id{from, tag};
    [[maybe_unused]] bool const fresh =
        posted_receives_.emplace(id, PostedReceive{stream, number, bytes, std::move(allocate)}).second;
    GPUPS_ASSERT(fresh && "a tag is for one transfer at a time");
    if (auto arrival = unexpected_.take(id)) {
      if (!arrival->handle.remote) arrival->handle.data = arrival->copy.data();  // unused if it is only announced
      take(id, arrival->handle);
    }
    return number;
  }

  bool can_allreduce(Device device) const override { return rendezvous_.has_fabric(device); }
  Transfer sum(Stream& stream, std::uint64_t tag, FabricSum const& arrays) override {
    std::lock_guard lock(ucx_->mutex());
    Transfer const number{++transfers_};
    rendezvous_.sum(tag, arrays, stream, [this, number] {
      done_.insert(number);
      wake_();
    });
    return number;
  }

  bool serves_others() const override { return rendezvous_.orders_transfers(); }
  bool progress() override {
    bool const moved = ucx_->progress();
    std::lock_guard lock(ucx_->mutex());
    if (failure_) std::rethrow_exception(failure_);
    if (error_) throw *error_;
    bool const copying = rendezvous_.progress() || !waiting_.empty() || !staged_copies_.empty();
    if (error_) throw *error_;
    for (auto& send : std::exchange(waiting_, {})) {
      if (send.ready.done()) {
        offer(std::move(send));
      } else {
        waiting_.push_back(std::move(send));
      }
    }
    std::erase_if(staged_copies_, [this](StagedCopy& copy) {
      if (!copy.copied.done()) return false;
      unstage(std::move(copy.staged), copy.bytes);
      done_.insert(copy.number);
      return true;
    });
    return moved || copying;
  }

  bool done(Transfer transfer) override {
    std::lock_guard lock(ucx_->mutex());
    return done_.erase(transfer) != 0;
  }
  std::vector<Transfer> take_done() override {
    std::lock_guard lock(ucx_->mutex());
    if (done_.empty()) return {};
    auto const done = std::exchange(done_, {});
    return {done.begin(), done.end()};
  }
  void on_arrival(std::function<void()> wake) override { wake_.set(std::move(wake)); }

 private:
  using Id = UnexpectedArrivals::Id;  // the other rank, and the tag
  struct PostedSend {
    Transfer number;
    Rank to;
    std::uint64_t tag;
    void const* data;
    std::size_t bytes;
    Stream stream;
    Event ready;
    kernels::PinnedPtr staged;  // if the data are on a GPU and small
  };
  struct PostedReceive {
    Stream stream;
    Transfer number;
    std::size_t bytes;
    Allocate allocate;
  };
  // A receive whose data are arriving.
  struct ReceiveRequest {
    Stream stream;
    Transfer number;
    std::size_t bytes;
    void* data;
    kernels::PinnedPtr staged;  // if the destination is on a GPU
  };
  struct Peer {
    SendCredits credits;                 // of this rank to the peer
    std::deque<PostedSend> unannounced;  // sends without credit
    ConsumedCredits consumed;
    bool credit_in_flight = false;
  };
  // A copy from staging memory to a GPU.
  struct StagedCopy {
    Transfer number;
    std::size_t bytes;
    kernels::PinnedPtr staged;
    Event copied;
  };

  // The worker calls back when an operation ends, perhaps after this object is destroyed.
  template <class F>
  auto guarded(F then) {
    return [alive = alive_, then = std::move(then)] {
      if (*alive) then();
    };
  }

  // Pinned memory for data of a GPU. That of small data, which are most, is used again.
  kernels::PinnedPtr stage(Device device, std::size_t bytes) {
    return bytes <= kEagerBytesMax ? staging_.take(device) : kernels::allocate_pinned(device, bytes);
  }
  void unstage(kernels::PinnedPtr buffer, std::size_t bytes) {
    if (bytes <= kEagerBytesMax) staging_.give_back(std::move(buffer));
  }

  void offer(PostedSend send) {
    Rank const to = send.to;
    peers_[number(to)].unannounced.push_back(std::move(send));
    announce_more(to);
  }
  void announce_more(Rank to) {
    Peer& peer = peers_[number(to)];
    while (!peer.unannounced.empty() && peer.credits.may_announce()) {
      auto const send = std::make_shared<PostedSend>(std::move(peer.unannounced.front()));
      peer.unannounced.pop_front();
      announce(peer.credits, send);
    }
  }
  void announce(SendCredits& credits, std::shared_ptr<PostedSend> const& send) {
    if (rendezvous_.handles(send->stream.device(), send->bytes)) {
      credits.add_rendezvous();
      offers_.emplace(send->to, send->tag);
      return rendezvous_.send({send->to, send->tag}, send->data, send->bytes, send->stream,
                              [this, send] { end_send(*send, false); });
    }
    bool const eager = send->bytes == 0 || (send->bytes <= kEagerBytesMax && credits.may_send_eager(send->bytes));
    eager ? credits.add_eager(send->bytes) : credits.add_rendezvous();
    ++open_;
    offers_.emplace(send->to, send->tag);
    ucx_->send(eager ? AmProtocol::kEager : AmProtocol::kRendezvous, send->to, AmKind::kData, send->tag, eager,
               send->data, send->bytes, guarded([this, send, eager] {
                 --open_;
                 end_send(*send, eager);
               }));
  }
  void end_send(PostedSend& send, bool was_eager) {
    if (send.staged != nullptr) unstage(std::move(send.staged), send.bytes);
    offers_.erase({send.to, send.tag});
    done_.insert(send.number);
    wake_();
    if (was_eager) return;  // the receiver returns a credit
    peers_[number(send.to)].credits.remove_rendezvous();
    announce_more(send.to);
  }

  // Counts an eager transfer that was received, and returns credits. One credit message at a time, so that they do not
  // pile up at a peer that does not read them.
  void count_consumed(Rank from, std::size_t bytes) {
    peers_[number(from)].consumed.add(bytes);
    return_credits(from);
  }
  void return_credits(Rank from) {
    Peer& peer = peers_[number(from)];
    if (peer.credit_in_flight || !peer.consumed.should_return()) return;
    peer.credit_in_flight = true;
    Amount const taken = peer.consumed.take();
    ucx_->send(AmProtocol::kEager, from, AmKind::kBulkCredit, taken.count, taken.bytes, nullptr, 0,
               guarded([this, from] {
                 peers_[number(from)].credit_in_flight = false;
                 return_credits(from);
               }));
  }

  void on_arrival_of(AmHeader const& header, AmArrival const& arrival) {
    Id const id{header.from, header.number};
    if (posted_receives_.contains(id)) return take(id, arrival);
    char const* const wrong = unexpected_.add(id, arrival);
    if (wrong == nullptr) return;
    ucx_->drop(arrival);
    reject(header.from, wrong);
  }

  void reject(Rank peer, char const* wrong) {
    fail(peer, fmt::format("rank {} broke the protocol ({}): run the same build and configuration on all ranks",
                           number(peer), wrong));
  }
  // Records the first error, which progress() throws.
  void fail(Rank peer, std::string const& why) {
    if (!error_) error_.emplace(peer, why);
    wake_();
  }

  void take(Id const& id, AmArrival const& arrival) {
    auto const want = posted_receives_.extract(id);
    auto const& [stream, number, bytes, allocate] = want.mapped();
    if (arrival.bytes != bytes) {
      std::string const why = size_mismatch(id.first, arrival.bytes, ucx_->rank(), bytes);
      ucx_->drop(arrival);
      ucx_->send(id.first, AmKind::kBulkRejected, id.second, 0, why);
      return fail(id.first, why);
    }
    ReceiveRequest taken{stream, number, bytes, nullptr, {}};
    try {
      taken.data = allocate();
      if (arrival.header.kind != AmKind::kData) {
        bool const offers_fabric = arrival.header.kind == AmKind::kFabricOffer;
        return rendezvous_.receive(id, offers_fabric, taken.data, bytes, stream, [this, transfer = number] {
          done_.insert(transfer);
          wake_();
        });
      }
      if (!stream.device().is_host()) taken.staged = stage(stream.device(), bytes);
    } catch (...) {  // exceptions must not pass through UCX; progress() throws this one
      failure_ = std::current_exception();
      ucx_->drop(arrival);
      return wake_();
    }
    void* const to = taken.staged == nullptr ? taken.data : taken.staged.get();
    auto const kept = std::make_shared<ReceiveRequest>(std::move(taken));
    bool const was_eager = arrival.header.bytes != 0;
    if (arrival.remote) {
      ++open_;
      ucx_->fetch(arrival, to, guarded([this, kept, was_eager, from = id.first] {
                    --open_;
                    end(*kept);
                    if (was_eager) count_consumed(from, kept->bytes);
                  }));
    } else {
      if (bytes > 0) std::memcpy(to, arrival.data, bytes);
      end(*kept);
      if (was_eager) count_consumed(id.first, bytes);
    }
  }

  void end(ReceiveRequest& taken) {
    if (taken.staged == nullptr) {
      done_.insert(taken.number);
    } else {
      memory::copy(taken.stream, taken.data, taken.stream.device(), taken.staged.get(), Device::host(), taken.bytes);
      staged_copies_.push_back({taken.number, taken.bytes, std::move(taken.staged), taken.stream.record()});
    }
    wake_();
  }

  void withdraw_sends() {
    std::lock_guard lock(ucx_->mutex());
    for (auto const& [to, tag] : offers_) ucx_->send(to, AmKind::kBulkWithdrawn, tag, 0, {});
  }
  bool copying() {
    std::lock_guard lock(ucx_->mutex());
    return open_ > 0 || !staged_copies_.empty() || rendezvous_.busy();
  }

  std::shared_ptr<ActiveMessages> const ucx_;
  std::shared_ptr<bool> const alive_ = std::make_shared<bool>(true);
  std::uint64_t transfers_ = 0;
  std::set<Id> offers_;  // announced, and not yet received
  std::map<Id, PostedReceive> posted_receives_;
  UnexpectedArrivals unexpected_;
  std::vector<Peer> peers_;          // by rank
  std::vector<PostedSend> waiting_;  // until the work of their streams is done
  std::vector<StagedCopy> staged_copies_;
  Staging staging_{kEagerBytesMax};
  std::set<Transfer> done_;
  std::size_t open_ = 0;  // pending operations of UCX
  std::optional<PeerError> error_;
  std::exception_ptr failure_;
  Callback wake_;
  RendezvousTransfers rendezvous_;
};

}  // namespace

std::unique_ptr<BulkTransport> make_ucx_bulk_transport(std::shared_ptr<ActiveMessages> ucx,
                                                       std::shared_ptr<DeviceFabric> fabric) {
  return std::make_unique<Ucx>(std::move(ucx), std::move(fabric));
}

}  // namespace gpups::comm
