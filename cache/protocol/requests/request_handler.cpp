// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/requests/request_handler.hpp"

#include <algorithm>

#include "cache/wire/store_messenger.hpp"
#include "gpups/store.hpp"
#include "kernels/base/check.hpp"
#include "kernels/rows/copy_rows.hpp"

namespace gpups::cache {
namespace {

// Maximum number of requests of one rank that are served at a time. More than kLookupsMax, because data of answered
// requests may still be in flight when the next request arrives.
constexpr std::size_t kServedMax = 4 * Store::kLookupsMax;

using Kind = RowRequest::Kind;

// Returns the collective in which a kind of request is allowed; nullopt: it is always allowed.
std::optional<Kind> collective_of(Kind kind) {
  switch (kind) {
    case Kind::kLookup:
    case Kind::kWhere:
      return std::nullopt;
    case Kind::kReturn:
      return Kind::kErase;
    default:
      return kind;
  }
}

// Returns the part number in the tags of requests of rank `requester`. Both ranks of a pair number their requests from
// 0, so their tags must differ in the part.
std::uint64_t part_of(Rank requester) { return number(requester) & 0xFFF; }

}  // namespace

RequestHandler::RequestHandler(Rank me, int ranks, Stream& stream, StoreMessenger& messenger, Round const& round,
                               TableShards& tables, OwnerDirectories& placement)
    : me_(me),
      ranks_(ranks),
      stream_(stream),
      messenger_(messenger),
      round_(round),
      tables_(tables),
      placement_(placement),
      gathers_(me, ranks, messenger) {}

// -- requests of this rank --

void RequestHandler::begin(std::shared_ptr<RowRequest> const& request) {
  // make_request() has grouped the keys by rank, and allocated the arrays of the reply.
  GPUPS_ASSERT(request->targets.size() == static_cast<std::size_t>(ranks_) + 1 && request->targets[0] == 0);
  GPUPS_ASSERT(request->size() <= request->keys.size() && request->words.size() == request->size() * request->width);
  GPUPS_ASSERT(request->unanswered.empty() && !request->done);
  auto const id = next_id_++;
  rows_[id] = request;
  request->missing = 1;  // this rank
  for (int q = 0; q < ranks_; ++q) {
    Rank const target{static_cast<std::uint32_t>(q)};
    if (target != me_ && request->size_of(target) > 0) send_request(target, id, request);
  }
  Served const mine{request->table, request->keys_of(me_), request->values_of(me_), request->found_of(me_),
                    request->words_of(me_)};
  wait_serve(request->kind, mine, [this, id] { finish_one(id); });
}

void RequestHandler::send_request(Rank target, std::uint64_t id, std::shared_ptr<RowRequest> const& request) {
  ++request->missing;
  request->unanswered.push_back(target);
  auto const keys = request->keys_of(target);
  messenger_.send(target, RowRequestHeader{.kind = request->kind,
                                           .clock = round_.complete_before(),
                                           .id = id,
                                           .table = request->table,
                                           .keys = keys.size()});
  messenger_.send_data(stream_, target, tag(Section::kRequestKeys, id, part_of(me_)), keys.data(), keys.bytes(),
                       &Traffic::lookups, request);
  if (request->kind != Kind::kAssign) return;
  auto const values = request->values_of(target).flat();
  messenger_.send_data(stream_, target, tag(Section::kRequestValues, id, part_of(me_)), values.data(), values.bytes(),
                       &Traffic::lookups, request);
}

void RequestHandler::finish_one(std::uint64_t id) {
  auto const request = rows_.at(id);
  GPUPS_ASSERT(request->unanswered.size() < request->missing);
  if (--request->missing > 0) return;
  stream_.wait();
  rows_.erase(id);
  if (request->then) request->then();
  request->done = true;
}

void RequestHandler::on_message(Rank target, RowReplyHeader const& message) {
  auto const place = rows_.find(message.id);
  if (place == rows_.end() || place->second->kind != message.kind ||
      std::erase(place->second->unanswered, target) == 0) {
    throw_peer_error(target, "sent a reply without a request");
  }
  auto const kept = place->second;
  auto const values = kept->kind == Kind::kAssign ? View<float>() : kept->values_of(target).flat();
  auto const found = kept->found_of(target);
  auto const words = kept->words_of(target);
  auto const taken = countdown_callback(3, [this, id = message.id] { finish_one(id); });
  auto const receive = [&](Section section, std::size_t bytes, auto const& to) {
    messenger_.receive_data(
        stream_, target, tag(section, message.id, part_of(me_)), bytes, [kept, to] { return to.data(); }, taken);
  };
  receive(Section::kRequestValues, values.bytes(), values);
  receive(Section::kRequestFound, found.bytes(), found);
  receive(Section::kRequestWords, words.bytes(), words);
}

// -- requests of other ranks --

void RequestHandler::check_request(Rank reader, RowRequestHeader const& message) {
  if (number(message.table) >= tables_.size())
    throw_peer_error(reader, "requested rows of a table that does not exist");
  if (message.keys == 0) throw_peer_error(reader, "sent a request for no rows");
  auto const change = collective_of(message.kind);
  if (change && allowed_ != change) {
    throw_peer_error(reader, change == Kind::kAssign  ? "assigned rows while this rank did not"
                             : change == Kind::kErase ? "erased rows while this rank did not"
                                                      : "localized rows while this rank did not");
  }
  std::erase_if(serving_, [](auto const& entry) { return entry.second.expired(); });
  if (serving_.contains({reader, message.id})) throw_peer_error(reader, "sent a request twice");
  auto const mine = std::count_if(serving_.begin(), serving_.end(),
                                  [reader](auto const& entry) { return entry.first.first == reader; });
  if (static_cast<std::size_t>(mine) >= kServedMax)
    throw_peer_error(reader, "sent too many requests without receiving the replies");
}

void RequestHandler::serve(Rank reader, RowRequestHeader const& message) {
  check_request(reader, message);
  auto const kind = message.kind;
  auto const served = std::make_shared<ServedRequest>();
  serving_[{reader, message.id}] = served;
  Device const device = stream_.device();
  auto const& shard = *tables_[number(message.table)];
  std::size_t const rows = message.keys, dim = shard.dim();
  auto const serve = [this, reader, id = message.id, table = message.table, kind, served, rows, device, &shard] {
    RowRequest sizes;  // of the arrays of the reply
    sizes.kind = kind;
    sizes.targets = {0, static_cast<std::uint32_t>(rows)};
    sizes.allocate(device, shard.dim(), shard.state_columns());
    if (kind != Kind::kAssign) served->values = std::move(sizes.values);
    served->found = std::move(sizes.found);
    served->words = std::move(sizes.words);
    MatrixView<float> const values = served->values.rows() == 0 ? MatrixView<float>() : served->values.view();
    wait_serve(kind, {table, served->keys, values, served->found, served->words},
               [this, reader, id, kind, served] { answer(reader, id, kind, served); });
  };
  auto const taken = countdown_callback(kind == Kind::kAssign ? 2 : 1, serve);
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

void RequestHandler::answer(Rank reader, std::uint64_t id, Kind kind, std::shared_ptr<ServedRequest> const& served) {
  messenger_.send(reader, RowReplyHeader{.kind = kind, .id = id});
  auto const send = [&](Section section, void const* data, std::size_t bytes) {
    messenger_.send_data(stream_, reader, tag(section, id, part_of(reader)), data, bytes, &Traffic::lookups, served);
  };
  if (kind != Kind::kAssign) {
    auto const values = served->values.view().flat();
    send(Section::kRequestValues, values.data(), values.bytes());
  }
  send(Section::kRequestFound, served->found.data(), served->found.bytes());
  send(Section::kRequestWords, served->words.data(), served->words.bytes());
}

// -- rows of this rank, and of this home --

void RequestHandler::wait_serve(Kind kind, Served const& rows, std::function<void()> then) {
  bool const by_owner = kind == Kind::kLookup || kind == Kind::kAssign || kind == Kind::kErase;
  if (by_owner && placement_.any_moved) {
    auto const keys = to_host(stream_, rows.keys);
    auto const owners = placement_.at(rows.table).wait_owners(stream_, View<Key const>(keys), round_.complete_before());
    if (std::any_of(owners.begin(), owners.end(), [this](Rank owner) { return owner != me_; })) {
      return wait_serve_away(kind, rows, owners, std::move(then));
    }
  }
  if (!rows.keys.empty()) wait_serve_here(kind, rows);
  then();
}

void RequestHandler::wait_serve_here(Kind kind, Served const& rows) {
  auto& shard = *tables_[number(rows.table)];
  switch (kind) {
    case Kind::kLookup:
      return shard.wait_lookup(stream_, rows.keys, rows.values, rows.found);
    case Kind::kAssign:
      return shard.wait_assign(stream_, rows.keys, rows.values, round_.applied());
    case Kind::kErase:
      return shard.wait_mark_erased(stream_, rows.keys);
    case Kind::kTake:
      return shard.wait_take(stream_, rows.keys, rows.values, rows.found, rows.words);
    case Kind::kWhere:
      return wait_describe(rows);
    case Kind::kReturn: {
      auto const keys = to_host(stream_, rows.keys);
      return placement_.at(rows.table).wait_return(stream_, View<Key const>(keys), round_.complete_before());
    }
  }
}

// Writes what the directory knows about rows of this home.
void RequestHandler::wait_describe(Served const& rows) {
  std::vector<std::uint32_t> words;
  auto const keys = to_host(stream_, rows.keys);
  for (auto const& entry :
       placement_.at(rows.table).wait_entries(stream_, View<Key const>(keys), round_.complete_before())) {
    auto const since = static_cast<std::uint64_t>(number(entry.since));
    words.insert(words.end(), {number(entry.owner), static_cast<std::uint32_t>(entry.reason),
                               static_cast<std::uint32_t>(since), static_cast<std::uint32_t>(since >> 32)});
  }
  copy<std::uint32_t>(stream_, rows.words, View<std::uint32_t const>(words));
  stream_.wait();  // `words` ends here
}

// Asks the owners of all rows, this rank included, and copies their answers. Erased rows are not away any more.
void RequestHandler::wait_serve_away(Kind kind, Served const& rows, std::vector<Rank> const& owners,
                                     std::function<void()> then) {
  auto& shard = *tables_[number(rows.table)];
  auto const keys = to_host(stream_, rows.keys);
  std::vector<std::uint32_t> order;
  auto const request =
      make_owned_request(stream_, kind, rows.table, keys, owners, shard.dim(), shard.state_columns(), ranks_, order);
  GPUPS_ASSERT(order.size() == keys.size());        // every key has an owner
  std::vector<std::uint32_t> places(order.size());  // of each key in the request
  for (std::uint32_t j = 0; j < order.size(); ++j) places[order[j]] = j;
  auto const positions = std::make_shared<Array<std::uint32_t>>(to_device(stream_, places));
  if (kind == Kind::kAssign) {
    kernels::gather_matrix_rows(stream_,
                                {.from = rows.values, .positions = to_device(stream_, order), .to = request->values});
  }
  if (kind == Kind::kErase) {
    placement_.at(rows.table).wait_return(stream_, View<Key const>(keys), round_.complete_before());
  }
  request->then = [this, kind, rows, from = request.get(), positions, then = std::move(then)] {
    if (kind == Kind::kLookup) {
      kernels::gather_matrix_rows(stream_, {.from = from->values,
                                            .positions = *positions,
                                            .to = rows.values,
                                            .flags_from = from->found,
                                            .flags_to = rows.found});
      stream_.wait();  // the request ends
    }
    then();
  };
  begin(request);
}

std::vector<Rank> RequestHandler::pending_peers() const {
  std::vector<Rank> ranks = gathers_.pending_peers();
  for (auto const& [id, request] : rows_) {
    ranks.insert(ranks.end(), request->unanswered.begin(), request->unanswered.end());
  }
  return ranks;
}

std::string RequestHandler::pending_data() const {
  std::string const call = gathers_.pending_call();
  return call.empty() ? "an answer" : call;
}

bool RequestHandler::lacks(Rank peer) const {
  auto const ranks = pending_peers();
  return std::find(ranks.begin(), ranks.end(), peer) != ranks.end();
}

bool RequestHandler::idle() const { return rows_.empty() && gathers_.idle(); }

void RequestHandler::on_message(Rank reader, RowRequestHeader const& message) {
  if (message.clock > round_.complete_before() + 1)
    throw_peer_error(reader, "requested rows of a step that is not complete");
  // Rows that move arrive with the end of the step before.
  if (!placement_.any_moved || message.clock <= round_.complete_before()) return serve(reader, message);
  auto const waiting =
      std::count_if(early_.begin(), early_.end(), [=](auto const& one) { return one.first == reader; });
  if (static_cast<std::size_t>(waiting) >= kServedMax) {
    throw_peer_error(reader, "sent too many requests without receiving the replies");
  }
  early_.emplace_back(reader, message);
}

void RequestHandler::serve_early() {
  for (auto const& [reader, message] : std::exchange(early_, {})) serve(reader, message);
}

}  // namespace gpups::cache
