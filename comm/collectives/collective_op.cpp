// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/collective_op.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "comm/base/peer_error.hpp"
#include "gpups/error.hpp"
#include "kernels/base/check.hpp"
#include "kernels/runtime/memory_scope.hpp"

namespace gpups::comm {
namespace {

// Whether a message of known size is sent without a header: it does not fit into one, or it is empty.
bool is_headerless(std::size_t known_size) { return known_size == 0 || known_size > kInlineBytesMax; }

}  // namespace

CollectiveOp::CollectiveOp(Rank me, int ranks, Stream const& stream, CollectiveTransport& transport,
                           std::uint64_t sequence_number, std::function<void(CollectiveOp&)> on_progress)
    : Communicator(me, ranks, work_stream_),
      work_stream_(stream),
      transport_(transport),
      number_(sequence_number),
      on_progress_(std::move(on_progress)),
      host_stream_(stream),
      peers_(static_cast<std::size_t>(ranks)),
      missing_signatures_(static_cast<std::size_t>(ranks) - 1) {
  use(stream);
}

void CollectiveOp::use(Stream const& stream) {
  GPUPS_ASSERT(!started());
  work_stream_ = stream;
  host_stream_ = stream.device().is_host() ? stream : Stream(Device::host(), 1);
}

CollectiveOp::~CollectiveOp() {
  if (started() && !task_.done()) work_stream_.wait();
}

CollectiveOp::PeerQueues& CollectiveOp::peer(Rank rank) {
  GPUPS_ASSERT(rank != me());
  return peers_[gpups::number(rank)];
}

template <class F>
void CollectiveOp::each_other(F f) const {
  for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(ranks()); ++q) {
    if (Rank{q} != me()) f(Rank{q});
  }
}

void CollectiveOp::throw_peer_error(Rank of, std::string const& what) const {
  throw PeerError(of, fmt::format("rank {} {} (all ranks must start the same collectives in the same order): check "
                                  "that all ranks run the same program and configuration",
                                  gpups::number(of), what));
}

// Ranks to which the coroutine has sent no header get one that has only the signature.
void CollectiveOp::begin(Signature const& signature, std::function<CoTask<>(Communicator&)> body) {
  auto const self = shared_from_this();
  kernels::MemoryScope const scope(work_stream_);
  signature_ = signature;
  body_ = std::move(body);
  task_ = body_(*this);
  task_.start();
  each_other([&](Rank q) {
    if (!peer(q).header_sent) send_header(q, std::nullopt);
  });
  each_other([&](Rank q) {
    if (peer(q).signature) check_signature(q);
  });
  each_other([&](Rank q) { match(q); });
  start_allreduce_if_matching();
  on_progress_(*this);
}

void CollectiveOp::on_header(Rank from, CollectiveHeader header) {
  auto const self = shared_from_this();
  kernels::MemoryScope const scope(work_stream_);
  PeerQueues& its = peer(from);
  if (header.signature) {
    its.signature = std::move(header.signature);
    --missing_signatures_;
    if (started()) check_signature(from);
  }
  if (header.message) {
    if (header.message->index < its.next || its.unexpected.size() == kUnexpectedMax) {
      throw_peer_error(from, fmt::format("sent message {} of {} {} where {} is due, and {} messages of it are unread",
                                         header.message->index, started() ? name_of(operation()) : "allreduce", number_,
                                         its.next, its.unexpected.size()));
    }
    its.next = header.message->index + 1;
    its.unexpected.push_back(std::move(*header.message));
  }
  match(from);
  start_allreduce_if_matching();
  on_progress_(*this);
}

void CollectiveOp::check_signature(Rank rank) {
  Signature const& its = *peer(rank).signature;
  if (its == *signature_) {
    ++matching_ranks_;
    return;
  }
  throw_peer_error(rank, fmt::format("{} in {} {} where rank {} {}", peer_text(describe(its)), name_of(its.operation),
                                     number_, gpups::number(me()), describe(*signature_)));
}

void CollectiveOp::send_header(Rank to, std::optional<CollectiveHeader::MessagePart> message) {
  PeerQueues& its = peer(to);
  CollectiveHeader header{.signature = std::nullopt, .message = std::move(message)};
  if (!std::exchange(its.header_sent, true)) header.signature = signature_;
  transport_.send_header(to, number_, encode(header), header.message ? header.message->bytes.size() : 0);
}

SendRequest CollectiveOp::post_send(Rank to, View<std::uint8_t const> bytes, std::shared_ptr<void const> keep,
                                    SizeMode size) {
  std::uint64_t const index = peer(to).sent++;
  if (size == SizeMode::kInHeader || !is_headerless(bytes.size())) {
    CollectiveHeader::MessagePart message{.index = index, .size = bytes.size()};
    bool const is_inline = bytes.device().is_host() && bytes.size() <= kInlineBytesMax;
    if (is_inline) message.bytes.assign(bytes.begin(), bytes.end());
    send_header(to, std::move(message));
    if (is_inline) return SendRequest(nullptr);
  }
  auto const sending = std::make_shared<Completion>();
  transport_.send(stream_for(bytes.device()), to, {number_, index}, bytes, std::move(keep),
                  [self = shared_from_this(), sending] { self->complete(*sending); });
  return SendRequest(sending);
}

std::shared_ptr<Completion> CollectiveOp::post_receive(Rank from, std::size_t bytes_max, Device device) {
  PeerQueues& its = peer(from);
  its.posted.push_back({.index = its.posted_count++,
                        .completion = std::make_shared<Completion>(),
                        .bytes_max = bytes_max,
                        .device = device});
  auto completion = its.posted.back().completion;
  match(from);
  return completion;
}

std::shared_ptr<Completion> CollectiveOp::post_receive_fixed(Rank from, View<std::uint8_t> to,
                                                             std::shared_ptr<void const> keep) {
  PeerQueues& its = peer(from);
  its.posted.push_back({.index = its.posted_count++,
                        .completion = std::make_shared<Completion>(),
                        .bytes_max = to.size(),
                        .device = to.device(),
                        .to = to,
                        .keep = std::move(keep)});
  auto completion = its.posted.back().completion;
  match(from);
  return completion;
}

// Gives messages of a rank to receives only after its signature was found to be equal.
void CollectiveOp::match(Rank from) {
  PeerQueues& its = peer(from);
  if (!started() || !its.signature) return;
  while (match_next(from, its)) {
  }
}

void CollectiveOp::complete(Completion& completion) {
  kernels::MemoryScope const scope(work_stream_);
  completion.end();
  on_progress_(*this);
}

bool CollectiveOp::match_next(Rank from, PeerQueues& its) {
  // A message without a header may be received before an earlier message has arrived.
  auto const headerless = std::find_if(its.posted.begin(), its.posted.end(), [](PendingReceive const& posted) {
    return posted.to && is_headerless(posted.to->size());
  });
  if (headerless != its.posted.end()) {
    PendingReceive posted = std::move(*headerless);
    its.posted.erase(headerless);
    receive_bulk(from, std::move(posted), posted.to->size());
    return true;
  }
  if (its.posted.empty() || its.unexpected.empty()) return false;
  PendingReceive posted = std::move(its.posted.front());
  CollectiveHeader::MessagePart const message = std::move(its.unexpected.front());
  its.posted.pop_front();
  its.unexpected.pop_front();
  bool const fits = posted.to ? message.size == posted.to->size() : message.size <= posted.bytes_max;
  if (message.index != posted.index || !fits) {
    throw_peer_error(from,
                     fmt::format("sent message {} of {} {} with {} bytes, where message {} with {}{} bytes is due",
                                 message.index, name_of(operation()), number_, message.size, posted.index,
                                 posted.to ? "" : "at most ", posted.bytes_max));
  }
  message.is_inline() ? deliver_inline(posted, message.bytes) : receive_bulk(from, std::move(posted), message.size);
  return true;
}

void CollectiveOp::deliver_inline(PendingReceive const& posted, std::string const& bytes) {
  if (!posted.to) posted.completion->bytes = Bytes(posted.device, bytes.size());
  void* const to = posted.to ? posted.to->data() : posted.completion->bytes.data();
  memory::copy(stream_for(posted.device), to, posted.device, bytes.data(), Device::host(), bytes.size());
  posted.completion->end();
}

void CollectiveOp::receive_bulk(Rank from, PendingReceive posted, std::size_t bytes) {
  ++peer(from).arriving;
  auto const allocate = [this, completion = posted.completion, device = posted.device, to = posted.to,
                         bytes]() -> void* {
    if (to) return to->data();
    kernels::MemoryScope const scope(work_stream_);
    completion->bytes = Bytes(device, bytes);
    return completion->bytes.data();
  };
  transport_.receive_bulk(stream_for(posted.device), from, {number_, posted.index}, bytes, allocate,
                          [self = shared_from_this(), from, completion = posted.completion, keep = posted.keep] {
                            --self->peer(from).arriving;
                            self->complete(*completion);
                          });
}

std::shared_ptr<Completion> CollectiveOp::post_allreduce(FabricSum const& arrays, std::shared_ptr<void const> keep) {
  auto completion = std::make_shared<Completion>();
  add_up_ = [this, arrays, keep = std::move(keep), completion] {
    transport_.sum(stream(), number_, arrays, keep,
                   [self = shared_from_this(), completion] { self->complete(*completion); });
  };
  start_allreduce_if_matching();
  return completion;
}

// A device fabric may hang if the ranks have arrays of different sizes.
void CollectiveOp::start_allreduce_if_matching() {
  if (!add_up_ || matching_ranks_ + 1 < static_cast<std::size_t>(ranks())) return;
  std::exchange(add_up_, nullptr)();
}

std::shared_ptr<Completion> CollectiveOp::stream_completion() {
  auto event = stream().record();
  if (event.done()) return nullptr;
  auto const completion = std::make_shared<Completion>();
  stream_completions_.emplace_back(std::move(event), completion);
  return completion;
}

bool CollectiveOp::progress() {
  if (stream_completions_.empty()) return false;
  auto const self = shared_from_this();
  kernels::MemoryScope const scope(work_stream_);
  for (auto& [event, completion] : std::exchange(stream_completions_, {})) {
    if (event.done()) {
      completion->end();
    } else {
      stream_completions_.emplace_back(std::move(event), std::move(completion));
    }
  }
  on_progress_(*this);
  return true;
}

void CollectiveOp::count_compression(std::uint64_t uncompressed_bytes, std::uint64_t sent) {
  if (!uncompressed_bytes_) return transport_.count_compression(uncompressed_bytes, sent);
  sent_bytes_ += sent;
}

bool CollectiveOp::finished() {
  if (!started() || !task_.done()) return false;
  if (!std::exchange(result_taken_, true)) {
    task_.result();
    if (uncompressed_bytes_) transport_.count_compression(*uncompressed_bytes_, sent_bytes_);
  }
  each_other([&](Rank q) {
    GPUPS_ASSERT(peer(q).posted.empty() && peer(q).arriving == 0 && "a collective ends after all of its receives");
    if (!peer(q).unexpected.empty()) {
      throw_peer_error(q, fmt::format("sent more messages of {} {} than are due", name_of(operation()), number_));
    }
  });
  return missing_signatures_ == 0;
}

// A rank that has not started the collective delays all others, so it is reported before ranks whose data is late.
std::vector<Rank> CollectiveOp::pending_peers() const {
  std::vector<Rank> ranks;
  auto const add_where = [&](auto const& slow) {
    if (!ranks.empty()) return;
    each_other([&](Rank q) {
      if (slow(peers_[gpups::number(q)])) ranks.push_back(q);
    });
  };
  add_where([](PeerQueues const& its) { return !its.signature.has_value(); });
  add_where([](PeerQueues const& its) { return !its.posted.empty() || its.arriving > 0; });
  add_where([](PeerQueues const&) { return true; });  // ranks that have not received what this rank has sent
  return ranks;
}

}  // namespace gpups::comm
