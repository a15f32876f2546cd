// SPDX-License-Identifier: Apache-2.0
// The rows of the entries that the host pools, strip by strip. If entries have keys, the keys are searched ahead.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpups::kernels {

inline constexpr std::uint32_t kStripMax = 64;  // the most entries of a strip

// The rows of entries, which are requested in the order of entries.
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

// The same for entries with keys. While the rows of earlier entries are being loaded, the keys of later ones are
// searched: each strip prefetches some buckets, and the search is finished for kPiece keys at a time.
template <class Source>
requires(Source::kByKey) class EntryRows<Source> {
 public:
  explicit EntryRows(Source const& source) : source_(source) {}
  // Begins with the entries first .. last - 1.
  void begin(std::uint32_t first, std::uint32_t last) {
    first_ = first;
    count_ = last - first;
    found_ = 0;
    source_.begin(search_, first, count_, ids_, kKept - 1);
  }
  // Finds the rows of entries before `end`. row() may then be called for the last kStripMax of them.
  void reach(std::uint32_t end) {
    if (end == first_) return;
    end -= first_;
    for (; found_ < end; found_ += kPiece) {
      std::uint32_t const count = std::min(kPiece, count_ - found_);
      search_.template look<false>(found_ + kPiece + kLookAhead);
      search_.finish(found_ + count);
      source_.copy_found(first_ + found_, count, ids_ + found_ % kKept);
    }
    search_.prefetch(end + kPrefetchAhead);
  }
  auto* row(std::uint32_t entry) const { return source_.of_number(ids_[(entry - first_) % kKept]); }

 private:
  // A key that is not in its first bucket is searched in later buckets while kLookAhead other keys are searched.
  static constexpr std::uint32_t kPiece = 64, kLookAhead = 256, kPrefetchAhead = 448, kKept = 512;
  static_assert(kKept % kPiece == 0 && kStripMax + 2 * kPiece + kLookAhead <= kKept);

  Source const& source_;
  std::uint32_t first_ = 0, count_ = 0, found_ = 0;  // entries; count_ and found_ are counted from first_
  typename Source::Search search_;
  std::uint32_t ids_[kKept];
};

}  // namespace gpups::kernels
