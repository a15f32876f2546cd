// SPDX-License-Identifier: Apache-2.0
// The uses of rows that ranks have announced to a home: by the steps of the placement policy's window, and the most
// used rows of a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "cache/placement/policy.hpp"
#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"
#include "kernels/index/key_index.hpp"

namespace gpups::cache {

// Which ranks have announced to use the rows of one table and home, for the policy: of kPolicyWindow steps, beginning
// with the next one that is taken. For the thread that makes progress.
class KeyUses {
 public:
  // Host memory of a key, with the index. Each 10 users beyond the first 10 take 48 bytes more.
  static constexpr std::size_t kBytesOfKey = 100;

  KeyUses() : host_(Device::host(), 1), index_(Device::host(), 0, kernels::Growth::kByMoving) {}

  // Adds a batch that uses each key. keys: (n), distinct, on the host. REQUIRES: step < next step + kPolicyWindow.
  void add(View<Key const> keys, Clock step, Rank reader);

  // The keys that batches of a step use, each once, and their users in this step and later ones.
  struct UsedKeys {
    std::vector<Key> keys;
    std::vector<std::uint32_t> first;  // (n + 1)
    std::vector<RowUser> users;
  };
  // Returns the keys of a step, and forgets their uses in it. REQUIRES: it was called for all earlier steps with uses.
  UsedKeys take(Clock step);

 private:
  static constexpr std::uint32_t kEnd = 0xFFFFFFFF;
  // Some users of one key: in the low 16 bits the rank; in the others, bit i for steps of which the remainder by 16 is
  // i.
  struct Users {
    std::uint32_t packed[10];
    std::uint32_t count = 0;
    std::uint32_t next = kEnd;  // more users in overflow_, or kEnd
  };
  // In one cache line.
  struct alignas(64) KeyRecord {
    Key key{};
    Clock taken{-1};  // the last step that it was taken for
    Users users;
  };
  void add_use(Users& first, Clock step, Rank reader);
  std::uint32_t add_overflow(std::uint32_t next);
  void take_users(Users& first, Clock step, std::vector<RowUser>& users);

  Stream host_;
  kernels::KeyIndex index_;
  std::vector<KeyRecord> records_;  // by the key's number in the index
  std::vector<Users> overflow_;
  std::vector<std::uint32_t> free_;                      // of overflow_: those without users
  std::map<Clock, std::vector<std::uint32_t>> of_step_;  // numbers of keys, which may repeat
};

// A row, the number of its announced uses, and the ranks that use it.
struct RankedRow {
  TableId table{};
  Key key{};
  std::size_t uses = 0;
  std::vector<RowUser> users{};
};

// Keeps the rows with the most uses. Cost of add(): an addition for each user of a key, and a copy of the users of each
// kept row.
class HotRows {
 public:
  // capacity: number of rows that are kept, at least 1.
  explicit HotRows(std::size_t capacity) : capacity_(capacity) {}

  void clear() { rows_.clear(); }
  // Adds rows of a table. Among rows with equally many uses, those with lower tables and keys are kept.
  void add(TableId table, KeyUses::UsedKeys const& used);
  // Returns the rows, those with the most uses first.
  std::vector<RankedRow> sorted() const;

 private:
  std::size_t capacity_;
  std::vector<RankedRow> rows_;  // a heap, with the least used row first
};

}  // namespace gpups::cache
