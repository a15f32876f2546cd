// SPDX-License-Identifier: Apache-2.0
// The uses of rows that ranks have announced to a home, by step; and the rows that batches use in a step, with their
// users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "cache/wire/list_keys.hpp"
#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"
#include "kernels/placement/used_rows.hpp"
#include "kernels/placement/window_users.hpp"
#include "kernels/runtime/host_reads.hpp"

namespace gpups::cache {

// A batch that a rank has announced, with the keys of this home, ascending in each part.
struct AnnouncedBatch {
  Rank reader{};
  std::vector<ListKeys> parts;
  bool in_window = false;  // the window of users has its uses
};

// The announced uses of one step, of all tables, on the device. Unsorted, they are ordered by table, reader and part,
// so those of a part of a batch are one after another.
struct StepUses {
  std::vector<AnnouncedBatch> batches;  // in the order of their readers
  bool sorted = false;                  // the following members are up to date

  // A part of a batch: `part` of batches[batch], which has the unsorted uses from first_use on.
  struct UsesOfPart {
    std::size_t batch, part;
    std::uint32_t first_use, uses;
  };
  std::vector<UsesOfPart> parts{};         // in the order of the uses
  std::vector<std::uint32_t> first_use{};  // (tables + 1)
  Array<Key> unsorted{}, keys{};           // (uses); `keys` are ascending in each table
  Array<std::uint32_t> positions{};        // (uses): where the sorted uses are in `unsorted`
  Array<std::uint16_t> ranks{};            // (uses), sorted

  // The distinct keys of each table, from list_keys() on.
  Array<Key> distinct{};                // (uses), those of table t from first_use[t] on
  Array<std::uint32_t> heads{};         // (uses): their first uses
  Array<std::uint32_t> counts_there{};  // (tables): their numbers
  std::vector<std::uint32_t> counts{};  // the same, when the reads are done

  std::size_t uses() const { return keys.size(); }
};

// The distinct keys of one step, in columns on the device; those of table t are tables[t].first ... They are ascending.
struct UsedRows {
  std::vector<kernels::UsedTable> tables;
  Array<Key> keys{};
  Array<std::uint32_t> heads{};  // of a row: its first use in StepUses::keys
  Array<std::uint32_t> first_user{}, user_count{};
  Array<kernels::RowUser> users{};
};

// For the thread that makes progress. Keeps each step as a whole, until it is dropped; and the users of all rows of the
// next steps, in a column into which each batch is merged once, when its step comes into the window. A plan merges once
// for each step with new batches: one step, if all ranks announce equally far ahead.
class AnnouncedUses {
 public:
  // window: the steps whose users a policy sees, 1 .. kPolicyWindow. Batches of later steps do not matter, so a plan
  // does not depend on how early they were announced.
  explicit AnnouncedUses(std::int64_t window = kernels::kPolicyWindow) : window_steps_(window) {}

  // Memory on the device for each use: its key as it was received, unsorted and sorted, its position and its rank.
  static constexpr std::size_t kBytesOfUse = 3 * sizeof(Key) + sizeof(std::uint32_t) + sizeof(std::uint16_t);

  // Adds a batch that uses rows in a step.
  void add(Clock step, AnnouncedBatch batch);
  // Returns the uses of a step; null if it has none. They are sorted from list_keys() on.
  StepUses const* at(Clock step) const;
  // Returns the number of steps with uses, from `first` to the one before `end`.
  std::size_t steps(Clock first, Clock end) const;
  // Drops a step, and returns its batches.
  std::vector<AnnouncedBatch> drop(Clock step);
  // Returns the number of steps whose users a policy sees.
  std::int64_t window() const { return window_steps_; }

  // Lists the distinct keys of the batches of `step`; does nothing if there are none. Queued on the stream. reads: the
  // host reads their numbers with these.
  void list_keys(Stream& stream, std::size_t tables, Clock step, kernels::HostReads& reads);
  // Lists the rows with these keys. Queued on the stream. Steps must ascend. REQUIRES: the step has uses; the reads of
  // list_keys() for it are done, and no batch of it was added since.
  UsedRows list_rows(Clock step);
  // The same with their users in the window's steps from `step` on. reads: the host reads with these what the next
  // call needs.
  UsedRows list_rows_with_users(Stream& stream, Clock step, kernels::HostReads& reads);

 private:
  // See kernels::WindowUsers.
  struct UserWindow {
    Clock step{};                             // its first step
    std::vector<std::uint32_t> first_user{};  // (tables)
    std::vector<std::uint32_t> users_max{};   // (tables): until they are read, more than there are
    Array<Key> keys{};
    Array<kernels::WindowUser> users{};
    Array<std::uint32_t> counts{};  // (tables)

    // Returns the bits of its steps from `next` on.
    std::uint32_t steps_from(Clock next) const { return kernels::step_ring_bits(next, step + kernels::kPolicyWindow); }
    kernels::WindowUsers columns() const { return {keys, users, counts}; }
  };
  void extend_window(Stream& stream, std::size_t tables, Clock step);
  void merge(Stream& stream, StepUses const& uses, Clock step, std::uint32_t kept);

  std::int64_t window_steps_;
  std::map<Clock, StepUses> steps_;
  std::optional<UserWindow> window_;
};

}  // namespace gpups::cache
