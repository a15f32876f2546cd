// SPDX-License-Identifier: Apache-2.0
#include "comm/payload/ucx.hpp"

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

#include "comm/payload/ahead.hpp"
#include "comm/payload/offered.hpp"
#include "comm/payload/sizes.hpp"
#include "comm/peer_text.hpp"
#include "comm/waker.hpp"
#include "gpups/array.hpp"
#include "gpups/error.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {
namespace {

// What may wait here of one rank before it is wanted: twice what it may be ahead. Who sends more does not keep to the
// rules.
constexpr std::size_t kEarlyMax = 2 * kOffersMax;
constexpr std::size_t kEarlyBytesMax = 2 * kAheadBytesMax;

class Ucx final : public Payload {
 public:
  Ucx(std::shared_ptr<UcxCarrier> link, std::shared_ptr<Lane> lane)
      : link_(std::move(link)),
        peers_(static_cast<std::size_t>(link_->size())),
        offered_(
            link_, std::move(lane), [this](Rank peer, char const* what) { refuse(peer, what); }, [this] { wake_(); }) {
    for (auto const kind : {UcxKind::kDataOffer, UcxKind::kLaneOffer}) {
      link_->handle(kind, [this](UcxHeader const& header, UcxArrival const& arrival) {
        link_->drop(arrival);
        came(header, {nullptr, static_cast<std::size_t>(header.bytes), false, header});
      });
    }
    link_->handle(UcxKind::kData,
                  [this](UcxHeader const& header, UcxArrival const& arrival) { came(header, arrival); });
    link_->on_wrong(this, [this](Rank peer, std::string const& what) {
      fail(peer, fmt::format("rank {} cannot be gone on with: {}", number(peer), what));
    });
    link_->handle(UcxKind::kDataRefused, [this](UcxHeader const& header, UcxArrival const& arrival) {
      std::string const why = peer_text({static_cast<char const*>(arrival.data), arrival.remote ? 0 : arrival.bytes});
      link_->drop(arrival);
      why.empty() ? refuse(header.from, "it refused data without a reason") : fail(header.from, why);
    });
    link_->handle(UcxKind::kDataWithdrawn, [this](UcxHeader const& header, UcxArrival const& arrival) {
      link_->drop(arrival);
      auto const found = arrived_.find({header.from, header.number});
      if (found != arrived_.end()) link_->drop(claim(found).where);
    });
    link_->handle(UcxKind::kDataTaken, [this](UcxHeader const& header, UcxArrival const& arrival) {
      link_->drop(arrival);
      bool const is_possible = peers_[number(header.from)].ahead.taken({header.number, header.bytes});
      is_possible ? begin_more(header.from) : refuse(header.from, "it has taken more than was sent");
    });
  }

  // Whoever copies from memory of this end is waited for, but no longer than a second.
  ~Ucx() override {
    wake_.set(nullptr);
    withdraw();
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (copying() && std::chrono::steady_clock::now() < end) {
      if (!link_->progress()) std::this_thread::yield();
    }
    std::lock_guard lock(link_->mutex());
    if (copying()) link_->abandon();
    *alive_ = false;
    link_->on_wrong(this, nullptr);
    link_->handle(UcxKind::kData, nullptr);
    link_->handle(UcxKind::kDataRefused, nullptr);
    link_->handle(UcxKind::kDataWithdrawn, nullptr);
    link_->handle(UcxKind::kDataTaken, nullptr);
    link_->handle(UcxKind::kDataOffer, nullptr);
    link_->handle(UcxKind::kLaneOffer, nullptr);
    for (auto const& [id, arrival] : arrived_) link_->drop(arrival.where);
  }

  Transfer send(Stream& stream, Rank to, std::uint64_t tag, void const* data, std::size_t bytes) override {
    std::lock_guard lock(link_->mutex());
    Transfer const number{++transfers_};
    Send send{number, to, tag, data, bytes, stream, {}, {}};
    if (!stream.device().is_host() && !offered_.takes(stream.device(), bytes)) {
      send.staged = Array<std::byte>(Device::host(), bytes);
      memory::copy(stream, send.staged.data(), Device::host(), data, stream.device(), bytes);
      send.data = send.staged.data();
    }
    send.ready = stream.record();
    if (send.ready.done()) {
      offer(std::move(send));
    } else {
      waiting_.push_back(std::move(send));
    }
    return number;
  }

  Transfer receive(Stream& stream, Rank from, std::uint64_t tag, std::size_t bytes, Where where) override {
    std::lock_guard lock(link_->mutex());
    Transfer const number{++transfers_};
    Id const id{from, tag};
    [[maybe_unused]] bool const fresh = wants_.emplace(id, Want{stream, number, bytes, std::move(where)}).second;
    GPUPS_ASSERT(fresh && "one transfer of a tag at a time");
    if (auto const found = arrived_.find(id); found != arrived_.end()) {
      Arrived arrival = claim(found);
      if (!arrival.where.remote) arrival.where.data = arrival.copy.data();  // not used of what is only offered
      take(id, arrival.where);
    }
    return number;
  }

  bool adds(Device device) const override { return offered_.has_lane(device); }
  Transfer sum(Stream& stream, std::uint64_t tag, View<float const> terms, View<float> sums) override {
    std::lock_guard lock(link_->mutex());
    Transfer const number{++transfers_};
    offered_.sum(tag, terms, sums, stream, [this, number] {
      done_.insert(number);
      wake_();
    });
    return number;
  }

  bool progress() override {
    bool const moved = link_->progress();
    std::lock_guard lock(link_->mutex());
    if (failure_) std::rethrow_exception(failure_);
    if (error_) throw *error_;
    bool const copying = offered_.progress() || !waiting_.empty() || !unstaging_.empty();
    if (error_) throw *error_;
    for (auto& send : std::exchange(waiting_, {})) {
      if (send.ready.done()) {
        offer(std::move(send));
      } else {
        waiting_.push_back(std::move(send));
      }
    }
    std::erase_if(unstaging_, [this](Unstaging const& copy) {
      if (!copy.over.done()) return false;
      done_.insert(copy.number);
      return true;
    });
    return moved || copying;
  }

  bool done(Transfer transfer) override {
    std::lock_guard lock(link_->mutex());
    return done_.erase(transfer) != 0;
  }
  std::vector<Transfer> take_done() override {
    std::lock_guard lock(link_->mutex());
    if (done_.empty()) return {};
    auto const done = std::exchange(done_, {});
    return {done.begin(), done.end()};
  }
  void on_arrival(std::function<void()> wake) override { wake_.set(std::move(wake)); }

 private:
  using Id = std::pair<Rank, std::uint64_t>;  // the other rank, and the tag
  struct Send {
    Transfer number;
    Rank to;
    std::uint64_t tag;
    void const* data;
    std::size_t bytes;
    Stream stream;
    Event ready;
    Array<std::byte> staged;
  };
  struct Want {
    Stream stream;
    Transfer number;
    std::size_t bytes;
    Where where;
  };
  // What is being brought.
  struct Taken {
    Stream stream;
    Transfer number;
    std::size_t bytes;
    void* data;
    Array<std::byte> staged;  // for a GPU
  };
  // What has come before it was wanted: a copy of what is small, else where it is.
  struct Arrived {
    UcxArrival where;
    std::string copy;
  };
  struct Peer {
    Ahead ahead;                 // as a sender
    std::deque<Send> unoffered;  // there are too many
    Amount early;                // as a receiver: what has come before it was wanted
    Untold untold;
    bool telling = false;
  };
  // On its way from staging memory to a GPU.
  struct Unstaging {
    Transfer number;
    Array<std::byte> staged;
    Event over;
  };

  // An operation's end is called back by the link, which may outlive this object.
  template <class F>
  auto guarded(F then) {
    return [alive = alive_, then = std::move(then)] {
      if (*alive) then();
    };
  }

  void offer(Send send) {
    Rank const to = send.to;
    peers_[number(to)].unoffered.push_back(std::move(send));
    begin_more(to);
  }
  void begin_more(Rank to) {
    Peer& peer = peers_[number(to)];
    while (!peer.unoffered.empty() && peer.ahead.may_offer()) {
      auto const send = std::make_shared<Send>(std::move(peer.unoffered.front()));
      peer.unoffered.pop_front();
      begin(peer.ahead, send);
    }
  }
  void begin(Ahead& ahead, std::shared_ptr<Send> const& send) {
    if (offered_.takes(send->stream.device(), send->bytes)) {
      ahead.waits();
      offers_.emplace(send->to, send->tag);
      return offered_.send({send->to, send->tag}, send->data, send->bytes, send->stream,
                           [this, send] { end_send(*send, false); });
    }
    bool const at_once = send->bytes == 0 || (send->bytes <= kEagerBytesMax && ahead.may_go_at_once(send->bytes));
    at_once ? ahead.goes_at_once(send->bytes) : ahead.waits();
    ++open_;
    offers_.emplace(send->to, send->tag);
    link_->send(at_once ? UcxWay::kAtOnce : UcxWay::kOnDemand, send->to, UcxKind::kData, send->tag, at_once, send->data,
                send->bytes, guarded([this, send, at_once] {
                  --open_;
                  end_send(*send, at_once);
                }));
  }
  void end_send(Send const& send, bool was_at_once) {
    offers_.erase({send.to, send.tag});
    done_.insert(send.number);
    wake_();
    if (was_at_once) return;  // its receiver tells
    peers_[number(send.to)].ahead.waits_no_more();
    begin_more(send.to);
  }

  // What went at once has been taken. One note at a time: whoever does not read them gets no pile of them.
  void count_taken(Rank from, std::size_t bytes) {
    peers_[number(from)].untold.taken(bytes);
    tell_taken(from);
  }
  void tell_taken(Rank from) {
    Peer& peer = peers_[number(from)];
    if (peer.telling || !peer.untold.is_worth_telling()) return;
    peer.telling = true;
    Amount const taken = peer.untold.tell();
    link_->send(UcxWay::kAtOnce, from, UcxKind::kDataTaken, taken.count, taken.bytes, nullptr, 0, guarded([this, from] {
                  peers_[number(from)].telling = false;
                  tell_taken(from);
                }));
  }

  void came(UcxHeader const& header, UcxArrival const& arrival) {
    Id const id{header.from, header.number};
    if (wants_.contains(id)) return take(id, arrival);
    Amount& early = peers_[number(header.from)].early;
    bool const is_copied = header.kind == UcxKind::kData && !arrival.remote;
    std::size_t const copied = is_copied ? arrival.bytes : 0;
    char const* wrong = nullptr;
    if (arrived_.contains(id)) wrong = "it sent the same data twice";
    if (early.count == kEarlyMax || early.bytes + copied > kEarlyBytesMax) wrong = "it sent too much unasked";
    if (wrong != nullptr) {
      link_->drop(arrival);
      return refuse(header.from, wrong);
    }
    early.add(copied);
    std::string copy;
    if (copied > 0) copy.assign(static_cast<char const*>(arrival.data), copied);
    arrived_.emplace(id, Arrived{arrival, std::move(copy)});
  }

  Arrived claim(std::map<Id, Arrived>::iterator found) {
    Amount& early = peers_[number(found->first.first)].early;
    --early.count;
    early.bytes -= found->second.copy.size();
    Arrived arrival = std::move(found->second);
    arrived_.erase(found);
    return arrival;
  }

  void refuse(Rank peer, char const* wrong) {
    fail(peer, fmt::format("rank {} cannot be gone on with ({}): run the same build and configuration on all ranks",
                           number(peer), wrong));
  }
  // The first error is what progress() throws.
  void fail(Rank peer, std::string const& why) {
    if (!error_) error_.emplace(peer, why);
    wake_();
  }

  void take(Id const& id, UcxArrival const& arrival) {
    auto const want = wants_.extract(id);
    auto const& [stream, number, bytes, where] = want.mapped();
    if (arrival.bytes != bytes) {
      std::string const why = sizes_differ(id.first, arrival.bytes, link_->rank(), bytes);
      link_->drop(arrival);
      link_->send(id.first, UcxKind::kDataRefused, id.second, 0, why);
      return fail(id.first, why);
    }
    Taken taken{stream, number, bytes, nullptr, {}};
    try {
      taken.data = where();
      if (arrival.header.kind != UcxKind::kData) {
        bool const may_go_by_lane = arrival.header.kind == UcxKind::kLaneOffer;
        return offered_.receive(id, may_go_by_lane, taken.data, bytes, stream, [this, transfer = number] {
          done_.insert(transfer);
          wake_();
        });
      }
      if (!stream.device().is_host()) taken.staged = Array<std::byte>(Device::host(), bytes);
    } catch (...) {  // UCX is between this and progress()
      failure_ = std::current_exception();
      link_->drop(arrival);
      return wake_();
    }
    void* const to = taken.staged.empty() ? taken.data : taken.staged.data();
    auto const kept = std::make_shared<Taken>(std::move(taken));
    bool const was_at_once = arrival.header.bytes != 0;
    if (arrival.remote) {
      ++open_;
      link_->fetch(arrival, to, guarded([this, kept, was_at_once, from = id.first] {
                     --open_;
                     end(*kept);
                     if (was_at_once) count_taken(from, kept->bytes);
                   }));
    } else {
      if (bytes > 0) std::memcpy(to, arrival.data, bytes);
      end(*kept);
      if (was_at_once) count_taken(id.first, bytes);
    }
  }

  void end(Taken& taken) {
    if (taken.staged.empty()) {
      done_.insert(taken.number);
    } else {
      memory::copy(taken.stream, taken.data, taken.stream.device(), taken.staged.data(), Device::host(), taken.bytes);
      unstaging_.push_back({taken.number, std::move(taken.staged), taken.stream.record()});
    }
    wake_();
  }

  void withdraw() {
    std::lock_guard lock(link_->mutex());
    for (auto const& [to, tag] : offers_) link_->send(to, UcxKind::kDataWithdrawn, tag, 0, {});
  }
  bool copying() {
    std::lock_guard lock(link_->mutex());
    return open_ > 0 || !unstaging_.empty() || offered_.busy();
  }

  std::shared_ptr<UcxCarrier> const link_;
  std::shared_ptr<bool> const alive_ = std::make_shared<bool>(true);
  std::uint64_t transfers_ = 0;
  std::set<Id> offers_;  // sent, and not yet taken
  std::map<Id, Want> wants_;
  std::map<Id, Arrived> arrived_;
  std::vector<Peer> peers_;    // by rank
  std::vector<Send> waiting_;  // for work of their streams
  std::vector<Unstaging> unstaging_;
  std::set<Transfer> done_;
  std::size_t open_ = 0;  // operations of UCX
  std::optional<PeerError> error_;
  std::exception_ptr failure_;
  Waker wake_;
  Offered offered_;
};

}  // namespace

std::unique_ptr<Payload> make_ucx_payload(std::shared_ptr<UcxCarrier> link, std::shared_ptr<Lane> lane) {
  return std::make_unique<Ucx>(std::move(link), std::move(lane));
}

}  // namespace gpups::comm
