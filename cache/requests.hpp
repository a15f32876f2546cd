// SPDX-License-Identifier: Apache-2.0
// What ranks ask of each other outside the round: gathering small data, reading and setting rows.
//
// Only the thread that turns the round uses this object; what it fills belongs to the caller again when `done` is set.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cache/mail.hpp"
#include "cache/table_shard.hpp"

namespace gpups::cache {

// Every rank's bytes.
struct GatherRequest {
  std::uint64_t number = 0;  // counts a rank's gathers: the same one has the same number on all ranks
  std::string mine;
  std::vector<std::string> all;
  std::atomic<bool> done = false;
};

// Rows of one table, wherever they are. Keys are distinct and grouped by owner.
struct RowRequest {
  enum class Kind { kLookup, kAssign };

  Kind kind{};
  TableId table{};
  std::vector<std::uint32_t> owners;  // (ranks + 1): keys of owner q are owners[q] .. owners[q+1]
  Array<Key> keys;
  Matrix<float> values;       // read into, or set from
  Array<std::uint8_t> found;  // kLookup
  std::size_t missing = 0;    // owners that have not answered, this rank included
  std::vector<Rank> unanswered;
  std::atomic<bool> done = false;
};

class Requests {
 public:
  Requests(Rank me, int ranks, Stream& stream, Mail& mail, std::vector<std::unique_ptr<TableShard>>& tables);

  void begin(std::shared_ptr<GatherRequest> const& request);
  void begin(std::shared_ptr<RowRequest> const& request);
  // Whether this rank is in a collective in which rows are set: at other times nobody may set any.
  void allow_assign(bool allowed) { assign_allowed_ = allowed; }
  // Ranks that have not yet answered what this one waits for.
  std::vector<Rank> awaited() const;
  // kGather, kLookup, kLookupAnswer, kAssign, kAssignAnswer.
  void received(Rank from, Message const& message);

 private:
  // What a rank takes to serve a request, kept until its answer has been taken.
  struct Served {
    Array<Key> keys;
    Matrix<float> values;
    Array<std::uint8_t> found;
  };
  [[noreturn]] void refuse(Rank peer, std::string const& what) const;
  void gathered(Rank from, Message const& message);
  void keep_piece(std::uint64_t number, Rank from, std::string const& bytes);
  void check_request(Rank reader, Message const& message);
  void serve(Rank reader, Message const& message);
  void answer_lookup(Rank reader, std::uint64_t id, TableShard const& shard, std::shared_ptr<Served> const& served);
  void answered(Rank owner, Message const& message);
  void finish_one(std::uint64_t id);

  Rank me_;
  int ranks_;
  Stream& stream_;
  Mail& mail_;
  std::vector<std::unique_ptr<TableShard>>& tables_;

  struct Gather {
    std::shared_ptr<GatherRequest> request;  // null until this rank takes part
    std::map<Rank, std::string> pieces;
  };
  std::map<std::uint64_t, Gather> gathers_;
  std::vector<std::uint64_t> gathers_of_;  // by rank: how many it has begun
  std::map<std::pair<Rank, std::uint64_t>, std::weak_ptr<Served>> serving_;
  bool assign_allowed_ = false;
  std::map<std::uint64_t, std::shared_ptr<RowRequest>> rows_;
  std::uint64_t next_id_ = 0;
};

}  // namespace gpups::cache
