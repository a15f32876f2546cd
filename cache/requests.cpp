// SPDX-License-Identifier: Apache-2.0
#include "cache/requests.hpp"

#include <fmt/core.h>

#include "gpups/error.hpp"

namespace gpups::cache {
namespace {

// What a rank takes to serve a request, kept until it has been served.
struct Served {
  Array<Key> keys;
  Matrix<float> values;
  Array<std::uint8_t> found;
};

[[noreturn]] void refuse(Rank peer, char const* what) {
  throw PeerError(peer, fmt::format("rank {} {} (its answer would be lost): check that all ranks run the same program",
                                    number(peer), what));
}

// Both ranks of a pair number their requests; the asking rank's bit keeps the tags of the two apart.
std::uint64_t part_of(Rank asking) { return number(asking) & 0xFFF; }

}  // namespace

Requests::Requests(Rank me, int ranks, Stream& stream, Mail& mail, std::vector<std::unique_ptr<TableShard>>& tables)
    : me_(me), ranks_(ranks), stream_(stream), mail_(mail), tables_(tables) {}

void Requests::begin(std::shared_ptr<GatherRequest> const& request) {
  gathers_[request->number].request = request;
  for (int q = 0; q < ranks_; ++q) {
    Rank const to{static_cast<std::uint32_t>(q)};
    if (to != me_) mail_.send(to, {.kind = MessageKind::kGather, .id = request->number, .bytes = request->mine});
  }
  gathered(request->number, me_, request->mine);
}

void Requests::gathered(std::uint64_t number, Rank from, std::string const& bytes) {
  auto& gather = gathers_[number];
  gather.pieces[from] = bytes;
  if (gather.request == nullptr || gather.pieces.size() < static_cast<std::size_t>(ranks_)) return;
  for (auto& [rank, piece] : gather.pieces) gather.request->all.push_back(std::move(piece));
  gather.request->done = true;
  gathers_.erase(number);
}

void Requests::begin(std::shared_ptr<RowRequest> const& request) {
  auto const id = next_id_++;
  rows_[id] = request;
  request->missing = 1;  // this rank, last
  bool const lookup = request->kind == RowRequest::Kind::kLookup;
  for (int q = 0; q < ranks_; ++q) {
    Rank const owner{static_cast<std::uint32_t>(q)};
    std::size_t const first = request->owners[number(owner)];
    std::size_t const count = request->owners[number(owner) + 1] - first;
    if (count == 0 || owner == me_) continue;
    ++request->missing;
    request->unanswered.push_back(owner);
    auto const keys = request->keys.view().slice(first, count);
    mail_.send(owner, {.kind = lookup ? MessageKind::kLookup : MessageKind::kAssign,
                       .id = id,
                       .table = request->table,
                       .keys = count});
    mail_.send_data(stream_, owner, tag(Section::kRequestKeys, id, part_of(me_)), keys.data(), keys.bytes(),
                    &Traffic::lookups, request);
    if (!lookup) {
      auto const values = request->values.view().slice(first, count);
      mail_.send_data(stream_, owner, tag(Section::kRequestValues, id, part_of(me_)), values.data(),
                      values.flat().bytes(), &Traffic::lookups, request);
    }
  }
  std::size_t const first = request->owners[number(me_)];
  std::size_t const count = request->owners[number(me_) + 1] - first;
  auto const keys = request->keys.view().slice(first, count);
  auto const values = request->values.view().slice(first, count);
  auto& shard = *tables_[number(request->table)];
  if (lookup) {
    shard.wait_lookup(stream_, keys, values, request->found.view().slice(first, count));
  } else {
    shard.wait_assign(stream_, keys, values);
  }
  finish_one(id);
}

void Requests::finish_one(std::uint64_t id) {
  auto const request = rows_.at(id);
  if (--request->missing > 0) return;
  stream_.wait();
  rows_.erase(id);
  request->done = true;
}

void Requests::serve(Rank reader, Message const& message) {
  if (number(message.table) >= tables_.size()) refuse(reader, "asked for a table that is not there");
  auto& shard = *tables_[number(message.table)];
  Device const device = stream_.device();
  bool const lookup = message.kind == MessageKind::kLookup;
  auto const served = std::make_shared<Served>(Served{
      .keys = Array<Key>(device, message.keys),
      .values = Matrix<float>(device, message.keys, shard.dim()),
      .found = Array<std::uint8_t>(device, lookup ? message.keys : 0),
  });
  auto const left = std::make_shared<int>(lookup ? 1 : 2);
  auto const taken = [this, reader, id = message.id, lookup, served, left, &shard] {
    if (--*left > 0) return;
    if (!lookup) {
      shard.wait_assign(stream_, served->keys, served->values);
      mail_.send(reader, {.kind = MessageKind::kAssignAnswer, .id = id});
      return;
    }
    shard.wait_lookup(stream_, served->keys, served->values, served->found);
    mail_.send(reader, {.kind = MessageKind::kLookupAnswer, .id = id});
    auto const values = served->values.view().flat();
    mail_.send_data(stream_, reader, tag(Section::kRequestValues, id, part_of(reader)), values.data(), values.bytes(),
                    &Traffic::lookups, served);
    mail_.send_data(stream_, reader, tag(Section::kRequestFound, id, part_of(reader)), served->found.data(),
                    served->found.bytes(), &Traffic::lookups, served);
  };
  mail_.take_data(stream_, reader, tag(Section::kRequestKeys, message.id, part_of(reader)), served->keys.data(),
                  served->keys.bytes(), taken);
  if (!lookup) {
    mail_.take_data(stream_, reader, tag(Section::kRequestValues, message.id, part_of(reader)),
                    served->values.view().data(), served->values.view().flat().bytes(), taken);
  }
}

void Requests::answered(Rank owner, Message const& message) {
  auto const found = rows_.find(message.id);
  if (found == rows_.end()) refuse(owner, "answered a request that nobody made");
  auto& request = *found->second;
  std::erase(request.unanswered, owner);
  if (message.kind == MessageKind::kAssignAnswer) return finish_one(message.id);

  std::size_t const first = request.owners[number(owner)];
  std::size_t const count = request.owners[number(owner) + 1] - first;
  auto const values = request.values.view().slice(first, count);
  auto const exists = request.found.view().slice(first, count);
  auto const left = std::make_shared<int>(2);
  auto const taken = [this, id = message.id, left] {
    if (--*left == 0) finish_one(id);
  };
  mail_.take_data(stream_, owner, tag(Section::kRequestValues, message.id, part_of(me_)), values.data(),
                  values.flat().bytes(), taken);
  mail_.take_data(stream_, owner, tag(Section::kRequestFound, message.id, part_of(me_)), exists.data(), exists.bytes(),
                  taken);
}

std::vector<Rank> Requests::awaited() const {
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

void Requests::received(Rank from, Message const& message) {
  switch (message.kind) {
    case MessageKind::kGather:
      return gathered(message.id, from, message.bytes);
    case MessageKind::kLookup:
    case MessageKind::kAssign:
      return serve(from, message);
    default:
      return answered(from, message);
  }
}

}  // namespace gpups::cache
