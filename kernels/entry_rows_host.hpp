// SPDX-License-Identifier: Apache-2.0
// The rows of entries that the host pools, strip by strip; those that entries name by key are searched for ahead.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpups::kernels {

inline constexpr std::uint32_t kStripMax = 64;  // entries of a strip, at most

// The rows of entries, in their order.
template <class Source>
class EntryRows {
 public:
  explicit EntryRows(Source const& source) : source_(source) {}
  void begin(std::uint32_t, std::uint32_t) {}
  void reach(std::uint32_t) {}
  auto* row(std::uint32_t entry) const { return source_.row(entry); }

 private:
  Source const& source_;
};

// The same where entries are named by key. These are found a few strips' at a time, while the memory is busy with rows
// of earlier ones; buckets are asked for long before, some for each strip.
template <class Source>
requires(Source::kByKey) class EntryRows<Source> {
 public:
  explicit EntryRows(Source const& source) : source_(source) {}
  // Entries first .. last - 1 follow.
  void begin(std::uint32_t first, std::uint32_t last) {
    first_ = found_end_ = first;
    last_ = last;
  }
  // Finds the rows of entries before `end`. Those of kPiece entries before it stay known.
  void reach(std::uint32_t end) {
    if (end == first_) return;
    for (; found_end_ < end; found_end_ += kPiece) {
      std::uint32_t const at = place(found_end_), left = last_ - found_end_, count = std::min(kPiece, left);
      if (at == 0) source_.begin(search_, found_end_, std::min(kSearch, left));
      std::uint32_t* const ids = ids_ + (found_end_ - first_) % kKept;
      search_.template find<false>(at, at + count, ids);
      source_.keep_found(found_end_, count, ids);
    }
    search_.ask(place(end - 1) + kAskAhead);
  }
  auto* row(std::uint32_t entry) const { return source_.of_number(ids_[(entry - first_) % kKept]); }

 private:
  static constexpr std::uint32_t kSearch = Source::Search::kKeys, kPiece = 256, kKept = 2 * kPiece, kAskAhead = 320;
  static_assert(kSearch % kPiece == 0 && kPiece >= kStripMax);
  // Of an entry among those of a search.
  std::uint32_t place(std::uint32_t entry) const { return (entry - first_) % kSearch; }

  Source const& source_;
  std::uint32_t first_ = 0, last_ = 0, found_end_ = 0;
  typename Source::Search search_;
  std::uint32_t ids_[kKept];
};

}  // namespace gpups::kernels
