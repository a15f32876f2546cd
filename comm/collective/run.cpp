// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "comm/peer_text.hpp"
#include "gpups/error.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {
namespace {

// Whether a message whose size both ranks know has no header: it would not fit into one, or there is nothing in it.
bool comes_bare(std::size_t known_size) { return known_size == 0 || known_size > kInlineBytesMax; }

}  // namespace

Run::Run(Rank me, int ranks, Stream const& stream, CollectiveCarrier& carrier, std::uint64_t number_of_run,
         std::function<void(Run&)> moved)
    : Mesh(me, ranks, work_),
      work_(stream),
      carrier_(carrier),
      number_(number_of_run),
      moved_(std::move(moved)),
      host_stream_(stream),
      peers_(static_cast<std::size_t>(ranks)),
      unheard_(static_cast<std::size_t>(ranks) - 1) {
  use(stream);
}

void Run::use(Stream const& stream) {
  GPUPS_ASSERT(!begun());
  work_ = stream;
  host_stream_ = stream.device().is_host() ? stream : Stream(Device::host(), 1);
}

Run::~Run() {
  if (begun() && !task_.done()) work_.wait();
}

Run::Peer& Run::peer(Rank rank) {
  GPUPS_ASSERT(rank != me());
  return peers_[gpups::number(rank)];
}

template <class F>
void Run::each_other(F f) const {
  for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(ranks()); ++q) {
    if (Rank{q} != me()) f(Rank{q});
  }
}

void Run::refuse(Rank of, std::string const& what) const {
  throw PeerError(of, fmt::format("rank {} {} (every rank sums the same arrays in the same order): check that all "
                                  "ranks run the same program and configuration",
                                  gpups::number(of), what));
}

// Those whom the coroutine's first messages have not reached learn of the run after it has sent them.
void Run::begin(Signature const& signature, std::function<Task<>(Mesh&)> body) {
  auto const self = shared_from_this();
  signature_ = signature;
  body_ = std::move(body);
  task_ = body_(*this);
  task_.start();
  each_other([&](Rank q) {
    if (!peer(q).told) tell(q, std::nullopt);
  });
  each_other([&](Rank q) {
    if (peer(q).signature) agree(q);
  });
  each_other([&](Rank q) { match(q); });
  add_up_if_agreed();
  moved_(*this);
}

void Run::heard(Rank from, Header header) {
  auto const self = shared_from_this();
  Peer& its = peer(from);
  if (header.signature) {
    its.signature = std::move(header.signature);
    --unheard_;
    if (begun()) agree(from);
  }
  if (header.item) {
    if (header.item->index < its.next || its.unwanted.size() == kUnwantedMax) {
      refuse(from, fmt::format("sent message {} of {} {} where {} is its next and {} wait", header.item->index,
                               begun() ? name_of(operation()) : "allreduce", number_, its.next, its.unwanted.size()));
    }
    its.next = header.item->index + 1;
    its.unwanted.push_back(std::move(*header.item));
  }
  match(from);
  add_up_if_agreed();
  moved_(*this);
}

void Run::agree(Rank rank) {
  Signature const& its = *peer(rank).signature;
  if (its == *signature_) {
    ++agreed_;
    return;
  }
  bool const same_kind = its.operation == signature_->operation && its.how == signature_->how;
  refuse(rank, fmt::format("{} in {} {} where rank {} {}", peer_text(describe(its)), name_of(its.operation), number_,
                           gpups::number(me()),
                           same_kind ? fmt::format("sums {}", signature_->elements) : describe(*signature_)));
}

void Run::tell(Rank to, std::optional<Header::Item> item) {
  Peer& its = peer(to);
  Header header{.signature = std::nullopt, .item = std::move(item)};
  if (!std::exchange(its.told, true)) header.signature = signature_;
  carrier_.tell(to, number_, encode(header), header.item ? header.item->bytes.size() : 0);
}

Sending Run::offer(Rank to, View<std::uint8_t const> bytes, std::shared_ptr<void const> keep, Size size) {
  std::uint64_t const index = peer(to).sent++;
  if (size == Size::kTold || !comes_bare(bytes.size())) {
    Header::Item item{.index = index, .size = bytes.size()};
    bool const inside = bytes.device().is_host() && bytes.size() <= kInlineBytesMax;
    if (inside) item.bytes.assign(bytes.begin(), bytes.end());
    tell(to, std::move(item));
    if (inside) return Sending(nullptr);
  }
  auto const sending = std::make_shared<Delivery>();
  carrier_.send(stream_for(bytes.device()), to, {number_, index}, bytes, std::move(keep),
                [self = shared_from_this(), sending] {
                  sending->end();
                  self->moved_(*self);
                });
  return Sending(sending);
}

std::shared_ptr<Delivery> Run::want(Rank from, std::size_t bytes_max, Device device) {
  Peer& its = peer(from);
  its.wants.push_back(
      {.index = its.wanted++, .delivery = std::make_shared<Delivery>(), .bytes_max = bytes_max, .device = device});
  auto delivery = its.wants.back().delivery;
  match(from);
  return delivery;
}

std::shared_ptr<Delivery> Run::want_exactly(Rank from, View<std::uint8_t> to, std::shared_ptr<void const> keep) {
  Peer& its = peer(from);
  its.wants.push_back({.index = its.wanted++,
                       .delivery = std::make_shared<Delivery>(),
                       .bytes_max = to.size(),
                       .device = to.device(),
                       .to = to,
                       .keep = std::move(keep)});
  auto delivery = its.wants.back().delivery;
  match(from);
  return delivery;
}

// Nothing is taken from a rank before it is clear that it is in the same run.
void Run::match(Rank from) {
  Peer& its = peer(from);
  if (!begun() || !its.signature) return;
  while (match_one(from, its)) {
  }
}

bool Run::match_one(Rank from, Peer& its) {
  // What comes without a header may be taken before an earlier message has come.
  auto const bare = std::find_if(its.wants.begin(), its.wants.end(),
                                 [](Want const& want) { return want.to && comes_bare(want.to->size()); });
  if (bare != its.wants.end()) {
    Want want = std::move(*bare);
    its.wants.erase(bare);
    take(from, std::move(want), want.to->size());
    return true;
  }
  if (its.wants.empty() || its.unwanted.empty()) return false;
  Want want = std::move(its.wants.front());
  Header::Item const item = std::move(its.unwanted.front());
  its.wants.pop_front();
  its.unwanted.pop_front();
  bool const fits = want.to ? item.size == want.to->size() : item.size <= want.bytes_max;
  if (item.index != want.index || !fits) {
    refuse(from, fmt::format("sent message {} of {} {} with {} bytes, where {} with {}{} is awaited", item.index,
                             name_of(operation()), number_, item.size, want.index, want.to ? "" : "at most ",
                             want.bytes_max));
  }
  item.inside() ? put(want, item.bytes) : take(from, std::move(want), item.size);
  return true;
}

void Run::put(Want const& want, std::string const& bytes) {
  if (!want.to) want.delivery->bytes = Bytes(want.device, bytes.size());
  void* const to = want.to ? want.to->data() : want.delivery->bytes.data();
  memory::copy(stream_for(want.device), to, want.device, bytes.data(), Device::host(), bytes.size());
  want.delivery->end();
}

void Run::take(Rank from, Want want, std::size_t bytes) {
  ++peer(from).arriving;
  auto const where = [delivery = want.delivery, device = want.device, to = want.to, bytes]() -> void* {
    if (to) return to->data();
    delivery->bytes = Bytes(device, bytes);
    return delivery->bytes.data();
  };
  carrier_.take(stream_for(want.device), from, {number_, want.index}, bytes, where,
                [self = shared_from_this(), from, delivery = want.delivery, keep = want.keep] {
                  --self->peer(from).arriving;
                  delivery->end();
                  self->moved_(*self);
                });
}

std::shared_ptr<Delivery> Run::want_sum(View<float const> terms, View<float> sums, std::shared_ptr<void const> keep) {
  auto delivery = std::make_shared<Delivery>();
  add_up_ = [this, terms, sums, keep = std::move(keep), delivery] {
    carrier_.sum(stream(), number_, terms, sums, keep, [self = shared_from_this(), delivery] {
      delivery->end();
      self->moved_(*self);
    });
  };
  add_up_if_agreed();
  return delivery;
}

// What adds up might hang where ranks have arrays of different sizes.
void Run::add_up_if_agreed() {
  if (!add_up_ || agreed_ + 1 < static_cast<std::size_t>(ranks())) return;
  std::exchange(add_up_, nullptr)();
}

std::shared_ptr<Delivery> Run::await_stream() {
  auto event = stream().record();
  if (event.done()) return nullptr;
  auto const delivery = std::make_shared<Delivery>();
  awaited_work_.emplace_back(std::move(event), delivery);
  return delivery;
}

bool Run::progress() {
  if (awaited_work_.empty()) return false;
  auto const self = shared_from_this();
  for (auto& [event, delivery] : std::exchange(awaited_work_, {})) {
    if (event.done()) {
      delivery->end();
    } else {
      awaited_work_.emplace_back(std::move(event), std::move(delivery));
    }
  }
  moved_(*this);
  return true;
}

void Run::count_coding(std::uint64_t plain, std::uint64_t sent) {
  if (!plain_of_run_) return carrier_.count_coding(plain, sent);
  sent_in_run_ += sent;
}

bool Run::over() {
  if (!begun() || !task_.done()) return false;
  if (!std::exchange(harvested_, true)) {
    task_.result();
    if (plain_of_run_) carrier_.count_coding(*plain_of_run_, sent_in_run_);
  }
  each_other([&](Rank q) {
    GPUPS_ASSERT(peer(q).wants.empty() && peer(q).arriving == 0 &&
                 "a collective ends when it has all that it has asked for");
    if (!peer(q).unwanted.empty()) {
      refuse(q, fmt::format("sent more messages of {} {} than there are", name_of(operation()), number_));
    }
  });
  return unheard_ == 0;
}

// A rank that has not begun delays all others: it is named before those whose data has not come.
std::vector<Rank> Run::awaited() const {
  std::vector<Rank> ranks;
  auto const add_where = [&](auto const& slow) {
    if (!ranks.empty()) return;
    each_other([&](Rank q) {
      if (slow(peers_[gpups::number(q)])) ranks.push_back(q);
    });
  };
  add_where([](Peer const& its) { return !its.signature.has_value(); });
  add_where([](Peer const& its) { return !its.wants.empty() || its.arriving > 0; });
  add_where([](Peer const&) { return true; });  // that have not taken what this rank has sent
  return ranks;
}

}  // namespace gpups::comm
