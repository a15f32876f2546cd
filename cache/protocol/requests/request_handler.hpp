// SPDX-License-Identifier: Apache-2.0
// Requests between ranks outside of rounds: gathers of small data (cache/protocol/requests/gathers.hpp), and requests
// for rows.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cache/placement/owner_directory.hpp"
#include "cache/protocol/requests/gathers.hpp"
#include "cache/protocol/requests/row_request.hpp"
#include "cache/protocol/round/round.hpp"
#include "cache/rows/table_shard.hpp"
#include "cache/wire/store_messenger.hpp"

namespace gpups::cache {

// Sends the requests of this rank, serves those of other ranks, and receives replies. A home that is asked for rows
// that are away asks their owners, and answers when they have answered. For the thread that makes progress. A request
// that was passed to begin() must not be used by other threads until its `done` is set. Throws PeerError for invalid
// messages.
class RequestHandler {
 public:
  // stream: for kernels and transfers. All references must outlive this object.
  RequestHandler(Rank me, int ranks, Stream& stream, StoreMessenger& messenger, Round const& round, TableShards& tables,
                 OwnerDirectories& placement);

  // Start a request. They do not wait for other ranks.
  void begin(std::shared_ptr<GatherRequest> const& request) { gathers_.begin(request); }
  void begin(std::shared_ptr<RowRequest> const& request);
  // Sets the collective in which other ranks may change rows of this rank, by its kind of request: kAssign, kErase or,
  // for localize, kTake; nullopt: none.
  void allow_change(std::optional<RowRequest::Kind> change) { allowed_ = change; }
  // Returns the ranks from which this rank waits for a reply, or for the bytes of a gather.
  std::vector<Rank> pending_peers() const;
  // Returns what this rank waits for, for error texts: a collective call, or "an answer".
  std::string pending_data() const;
  // See Channel::unmatched_call().
  std::string unmatched_call(Rank peer) const { return gathers_.unmatched_call(peer); }
  // Returns true if pending_peers() has `peer`.
  bool lacks(Rank peer) const;
  // Returns true if all requests of this rank are done.
  bool idle() const;
  // Handle the messages of other ranks.
  void on_message(Rank from, GatherPart const& message) { gathers_.on_message(from, message); }
  void on_message(Rank reader, RowRequestHeader const& message);
  void on_message(Rank target, RowReplyHeader const& message);
  // Serves the requests that arrived before the step that they are for. Call it when a step is complete.
  void serve_early();

 private:
  // Rows that a rank requests from this rank: the arrays of its request, or copies of them.
  struct Served {
    TableId table{};
    View<Key const> keys;
    MatrixView<float> values;
    View<std::uint8_t> found;
    View<std::uint32_t> words;
  };
  // Memory for serving a request of another rank, kept until the reply has been sent.
  struct ServedRequest {
    Array<Key> keys;
    Matrix<float> values;
    Array<std::uint8_t> found;
    Array<std::uint32_t> words;
  };
  [[noreturn]] void throw_peer_error(Rank peer, std::string const& what) const {
    cache::throw_peer_error(peer, me_, what);
  }
  void send_request(Rank target, std::uint64_t id, std::shared_ptr<RowRequest> const& request);
  void check_request(Rank reader, RowRequestHeader const& message);
  void serve(Rank reader, RowRequestHeader const& message);
  // Serves rows, and calls `then` when it is done, which may be later if rows are away.
  void wait_serve(RowRequest::Kind kind, Served const& rows, std::function<void()> then);
  void wait_serve_here(RowRequest::Kind kind, Served const& rows);
  void wait_serve_away(RowRequest::Kind kind, Served const& rows, std::vector<Rank> const& owners,
                       std::function<void()> then);
  void wait_describe(Served const& rows);
  void answer(Rank reader, std::uint64_t id, RowRequest::Kind kind, std::shared_ptr<ServedRequest> const& served);
  void finish_one(std::uint64_t id);

  Rank me_;
  int ranks_;
  Stream& stream_;
  StoreMessenger& messenger_;
  Round const& round_;
  TableShards& tables_;
  OwnerDirectories& placement_;

  Gathers gathers_;
  std::map<std::pair<Rank, std::uint64_t>, std::weak_ptr<ServedRequest>> serving_;
  std::vector<std::pair<Rank, RowRequestHeader>> early_;
  std::optional<RowRequest::Kind> allowed_;
  std::map<std::uint64_t, std::shared_ptr<RowRequest>> rows_;
  std::uint64_t next_id_ = 0;
};

}  // namespace gpups::cache
