// SPDX-License-Identifier: Apache-2.0
// What ranks ask of each other outside the round: gathering small data, reading, setting and erasing rows.
//
// Only the thread that turns the round uses this object; what it fills belongs to the caller again when `done` is set.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/round.hpp"
#include "cache/row_request.hpp"
#include "cache/store_messenger.hpp"
#include "cache/table_shard.hpp"

namespace gpups::cache {

// Every rank's bytes.
struct GatherRequest {
  std::uint64_t number = 0;  // counts a rank's gathers: the same one has the same number on all ranks
  std::string mine;
  std::optional<Rank> root{};  // who gets the bytes; null: all do
  std::vector<std::string> all;
  std::atomic<bool> done = false;
};

class RequestHandler {
 public:
  RequestHandler(Rank me, int ranks, Stream& stream, StoreMessenger& messenger, Round const& round,
                 std::vector<std::unique_ptr<TableShard>>& tables);

  void begin(std::shared_ptr<GatherRequest> const& request);
  void begin(std::shared_ptr<RowRequest> const& request);
  // How rows change in the collective that this rank is in: at other times nobody may change any.
  void allow_change(std::optional<RowRequest::Kind> change) { allowed_ = change; }
  // Ranks that have not yet answered what this one waits for.
  std::vector<Rank> pending_peers() const;
  bool lacks(Rank peer) const;
  // Nothing that this rank has asked for is missing.
  bool idle() const;
  // kGather; kLookup, kAssign, kErase and their answers.
  void on_message(Rank from, Message const& message);

 private:
  // What a rank takes to serve a request, kept until its answer has been taken.
  struct ServedRequest {
    Array<Key> keys;
    Matrix<float> values;
    Array<std::uint8_t> found;
  };
  [[noreturn]] void throw_peer_error(Rank peer, std::string const& what) const;
  void on_gather(Rank from, Message const& message);
  void keep_piece(std::uint64_t number, Rank from, std::string const& bytes);
  void send_request(Rank owner, std::uint64_t id, std::shared_ptr<RowRequest> const& request);
  void serve_locally(RowRequest& request);
  void check_request(Rank reader, Message const& message);
  void serve(Rank reader, Message const& message);
  void answer_change(Rank reader, std::uint64_t id, RowRequest::Kind kind, TableShard& shard,
                     ServedRequest const& served);
  void answer_lookup(Rank reader, std::uint64_t id, TableShard const& shard,
                     std::shared_ptr<ServedRequest> const& served);
  void on_reply(Rank owner, Message const& message);
  void finish_one(std::uint64_t id);

  Rank me_;
  int ranks_;
  Stream& stream_;
  StoreMessenger& messenger_;
  Round const& round_;
  std::vector<std::unique_ptr<TableShard>>& tables_;

  struct PendingGather {
    std::shared_ptr<GatherRequest> request;  // null until this rank takes part
    std::map<Rank, std::string> pieces;
  };
  std::map<std::uint64_t, PendingGather> gathers_;
  std::vector<std::uint64_t> gathers_of_;  // by rank: how many it has begun
  std::map<std::pair<Rank, std::uint64_t>, std::weak_ptr<ServedRequest>> serving_;
  std::optional<RowRequest::Kind> allowed_;
  std::map<std::uint64_t, std::shared_ptr<RowRequest>> rows_;
  std::uint64_t next_id_ = 0;
};

}  // namespace gpups::cache
