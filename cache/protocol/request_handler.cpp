// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/request_handler.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "cache/protocol/countdown_callback.hpp"
#include "gpups/error.hpp"
#include "gpups/store.hpp"

namespace gpups::cache {
namespace {

// Maximum number of requests of one rank that are served at a time. More than kLookupsMax, because data of answered
// requests may still be in flight when the next request arrives.
constexpr std::size_t kServedMax = 4 * Store::kLookupsMax;

using Kind = RowRequest::Kind;

MessageKind request_kind(Kind kind) {
  static constexpr MessageKind kRequests[] = {MessageKind::kLookup, MessageKind::kAssign, MessageKind::kErase};
  return kRequests[static_cast<int>(kind)];
}
MessageKind reply_kind(Kind kind) {
  static constexpr MessageKind kReplies[] = {MessageKind::kLookupReply, MessageKind::kAssignReply,
                                             MessageKind::kEraseReply};
  return kReplies[static_cast<int>(kind)];
}
// REQUIRES: the message is a request, not a reply.
Kind kind_of(Message const& message) {
  if (message.kind == MessageKind::kLookup) return Kind::kLookup;
  return message.kind == MessageKind::kAssign ? Kind::kAssign : Kind::kErase;
}

// Returns the part number in the tags of requests of rank `requester`. Both ranks of a pair number their requests from
// 0, so their tags must differ in the part.
std::uint64_t part_of(Rank requester) { return number(requester) & 0xFFF; }

}  // namespace

RequestHandler::RequestHandler(Rank me, int ranks, Stream& stream, StoreMessenger& messenger, Round const& round,
                               std::vector<std::unique_ptr<TableShard>>& tables)
    : me_(me),
      ranks_(ranks),
      stream_(stream),
      messenger_(messenger),
      round_(round),
      tables_(tables),
      gathers_of_(static_cast<std::size_t>(ranks)) {}

void RequestHandler::throw_peer_error(Rank peer, std::string const& what) const {
  throw PeerError(peer, fmt::format("rank {} {} (rank {} cannot continue): check that all ranks run the same "
                                    "program and configuration",
                                    number(peer), what, number(me_)));
}

void RequestHandler::begin(std::shared_ptr<GatherRequest> const& request) {
  gathers_[request->number].request = request;
  for (int q = 0; q < ranks_; ++q) {
    Rank const to{static_cast<std::uint32_t>(q)};
    if (to == me_) continue;
    Message message{.kind = MessageKind::kGather, .id = request->number};
    if (!request->root || *request->root == to) message.bytes = request->mine;
    messenger_.send(to, message);
  }
  ++gathers_of_[number(me_)];
  keep_piece(request->number, me_, request->root.value_or(me_) == me_ ? request->mine : std::string());
}

// A rank starts a gather when it has the bytes of all ranks for the gather before, so it is at most one gather ahead.
void RequestHandler::on_gather(Rank from, Message const& message) {
  auto& next = gathers_of_[number(from)];
  if (message.id != next || message.id > gathers_of_[number(me_)]) {
    throw_peer_error(from, fmt::format("sent its bytes for gather {}, but gather {} is next", message.id, next));
  }
  ++next;
  keep_piece(message.id, from, message.bytes);
}

void RequestHandler::keep_piece(std::uint64_t number, Rank from, std::string const& bytes) {
  auto& gather = gathers_[number];
  gather.pieces[from] = bytes;
  if (gather.request == nullptr || gather.pieces.size() < static_cast<std::size_t>(ranks_)) return;
  for (auto& [rank, piece] : gather.pieces) gather.request->all.push_back(std::move(piece));
  gather.request->done = true;
  gathers_.erase(number);
}

void RequestHandler::begin(std::shared_ptr<RowRequest> const& request) {
  auto const id = next_id_++;
  rows_[id] = request;
  request->missing = 1;  // this rank, which finishes last
  for (int q = 0; q < ranks_; ++q) {
    Rank const owner{static_cast<std::uint32_t>(q)};
    if (owner != me_ && request->owned_by(owner) > 0) send_request(owner, id, request);
  }
  serve_locally(*request);
  finish_one(id);
}

void RequestHandler::send_request(Rank owner, std::uint64_t id, std::shared_ptr<RowRequest> const& request) {
  ++request->missing;
  request->unanswered.push_back(owner);
  auto const keys = request->keys_of(owner);
  messenger_.send(
      owner,
      {.kind = request_kind(request->kind), .id = id, .table = request->table, .keys = request->owned_by(owner)});
  messenger_.send_data(stream_, owner, tag(Section::kRequestKeys, id, part_of(me_)), keys.data(), keys.bytes(),
                       &Traffic::lookups, request);
  if (request->kind != Kind::kAssign) return;
  auto const values = request->values_of(owner);
  messenger_.send_data(stream_, owner, tag(Section::kRequestValues, id, part_of(me_)), values.data(),
                       values.flat().bytes(), &Traffic::lookups, request);
}

void RequestHandler::serve_locally(RowRequest& request) {
  auto& shard = *tables_[number(request.table)];
  auto const keys = request.keys_of(me_);
  switch (request.kind) {
    case Kind::kLookup:
      return shard.wait_lookup(stream_, keys, request.values_of(me_), request.found_of(me_));
    case Kind::kAssign:
      return shard.wait_assign(stream_, keys, request.values_of(me_), round_.applied());
    case Kind::kErase:
      return shard.wait_mark_erased(stream_, keys);
  }
}

void RequestHandler::finish_one(std::uint64_t id) {
  auto const request = rows_.at(id);
  if (--request->missing > 0) return;
  stream_.wait();
  rows_.erase(id);
  request->done = true;
}

void RequestHandler::check_request(Rank reader, Message const& message) {
  if (number(message.table) >= tables_.size())
    throw_peer_error(reader, "requested rows of a table that does not exist");
  if (message.keys == 0) throw_peer_error(reader, "sent a request for no rows");
  auto const kind = kind_of(message);
  if (kind != Kind::kLookup && allowed_ != kind) {
    throw_peer_error(reader, kind == Kind::kAssign ? "assigned rows while this rank did not"
                                                   : "erased rows while this rank did not");
  }
  std::erase_if(serving_, [](auto const& entry) { return entry.second.expired(); });
  if (serving_.contains({reader, message.id})) throw_peer_error(reader, "sent a request twice");
  auto const mine = std::count_if(serving_.begin(), serving_.end(),
                                  [reader](auto const& entry) { return entry.first.first == reader; });
  if (static_cast<std::size_t>(mine) >= kServedMax)
    throw_peer_error(reader, "sent too many requests without receiving the replies");
}

void RequestHandler::answer_lookup(Rank reader, std::uint64_t id, TableShard const& shard,
                                   std::shared_ptr<ServedRequest> const& served) {
  std::size_t const rows = served->keys.size();
  served->values = Matrix<float>(stream_.device(), rows, shard.dim());
  served->found = Array<std::uint8_t>(stream_.device(), rows);
  shard.wait_lookup(stream_, served->keys, served->values, served->found);
  messenger_.send(reader, {.kind = MessageKind::kLookupReply, .id = id});
  auto const values = served->values.view().flat();
  messenger_.send_data(stream_, reader, tag(Section::kRequestValues, id, part_of(reader)), values.data(),
                       values.bytes(), &Traffic::lookups, served);
  messenger_.send_data(stream_, reader, tag(Section::kRequestFound, id, part_of(reader)), served->found.data(),
                       served->found.bytes(), &Traffic::lookups, served);
}

void RequestHandler::answer_change(Rank reader, std::uint64_t id, Kind kind, TableShard& shard,
                                   ServedRequest const& served) {
  if (kind == Kind::kAssign) {
    shard.wait_assign(stream_, served.keys, served.values, round_.applied());
  } else {
    shard.wait_mark_erased(stream_, served.keys);
  }
  messenger_.send(reader, {.kind = reply_kind(kind), .id = id});
}

void RequestHandler::serve(Rank reader, Message const& message) {
  check_request(reader, message);
  auto& shard = *tables_[number(message.table)];
  auto const kind = kind_of(message);
  auto const served = std::make_shared<ServedRequest>();
  serving_[{reader, message.id}] = served;
  auto const taken =
      countdown_callback(kind == Kind::kAssign ? 2 : 1, [this, reader, id = message.id, kind, served, &shard] {
        if (kind == Kind::kLookup) return answer_lookup(reader, id, shard, served);
        answer_change(reader, id, kind, shard, *served);
      });
  Device const device = stream_.device();
  std::size_t const rows = message.keys, dim = shard.dim();
  auto const keys = [served, device, rows] {
    served->keys = Array<Key>(device, rows);
    return served->keys.data();
  };
  messenger_.receive_data(stream_, reader, tag(Section::kRequestKeys, message.id, part_of(reader)), rows * sizeof(Key),
                          keys, taken);
  if (kind != Kind::kAssign) return;
  auto const values = [served, device, rows, dim] {
    served->values = Matrix<float>(device, rows, dim);
    return served->values.view().data();
  };
  messenger_.receive_data(stream_, reader, tag(Section::kRequestValues, message.id, part_of(reader)),
                          rows * row_stride(dim) * sizeof(float), values, taken);
}

void RequestHandler::on_reply(Rank owner, Message const& message) {
  auto const place = rows_.find(message.id);
  if (place == rows_.end() || reply_kind(place->second->kind) != message.kind ||
      std::erase(place->second->unanswered, owner) == 0) {
    throw_peer_error(owner, "sent a reply without a request");
  }
  if (message.kind != MessageKind::kLookupReply) return finish_one(message.id);

  auto const kept = place->second;
  auto const values = kept->values_of(owner);
  auto const exists = kept->found_of(owner);
  auto const taken = countdown_callback(2, [this, id = message.id] { finish_one(id); });
  messenger_.receive_data(
      stream_, owner, tag(Section::kRequestValues, message.id, part_of(me_)), values.flat().bytes(),
      [kept, values] { return values.data(); }, taken);
  messenger_.receive_data(
      stream_, owner, tag(Section::kRequestFound, message.id, part_of(me_)), exists.bytes(),
      [kept, exists] { return exists.data(); }, taken);
}

std::vector<Rank> RequestHandler::pending_peers() const {
  std::vector<Rank> ranks;
  for (auto const& [number, gather] : gathers_) {
    for (std::uint32_t q = 0; gather.request != nullptr && q < static_cast<std::uint32_t>(ranks_); ++q) {
      if (!gather.pieces.contains(Rank{q})) ranks.push_back(Rank{q});
    }
  }
  for (auto const& [id, request] : rows_) {
    ranks.insert(ranks.end(), request->unanswered.begin(), request->unanswered.end());
  }
  return ranks;
}

bool RequestHandler::lacks(Rank peer) const {
  auto const ranks = pending_peers();
  return std::find(ranks.begin(), ranks.end(), peer) != ranks.end();
}

bool RequestHandler::idle() const {
  return rows_.empty() &&
         std::all_of(gathers_.begin(), gathers_.end(), [](auto const& one) { return one.second.request == nullptr; });
}

void RequestHandler::on_message(Rank from, Message const& message) {
  if (from == me_) throw_peer_error(from, "sent a message to itself");
  switch (message.kind) {
    case MessageKind::kGather:
      return on_gather(from, message);
    case MessageKind::kLookup:
    case MessageKind::kAssign:
    case MessageKind::kErase:
      return serve(from, message);
    default:
      return on_reply(from, message);
  }
}

}  // namespace gpups::cache
