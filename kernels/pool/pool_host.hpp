// SPDX-License-Identifier: Apache-2.0
// Pools bags on the host. A thread processes its entries in strips: while it adds up the rows of one strip, the rows of
// the next strips are being loaded. Keys are searched for several strips at once, without unpredictable branches.
//
// A bag is summed in float, in the order of its entries, even if it is in several strips.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/float_vector.hpp"
#include "kernels/base/nontemporal.hpp"
#include "kernels/pool/bags.hpp"

namespace gpups::kernels {

// The rows of the entries that the host pools, strip by strip. If entries have keys, the keys are searched ahead.

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

inline constexpr std::size_t kStripBytes = 8192;

// The entries first .. last - 1, and their rows.
template <class T>
struct Strip {
  std::uint32_t first = 0, last = 0;
  T const* row[kStripMax];
  std::vector<T> absent;  // initial values of keys without a row
};

// The part of a bag that is in one strip.
template <class T>
struct BagShare {
  T const* const* rows;  // (count)
  float const* weights;  // (count) or null
  std::uint32_t count;
  float const* before;  // the sum of earlier entries, or null
  float* to;
  float scale;
};

// Sums columns column .. column + kVectors * kLanes - 1 in registers.
template <std::size_t kLanes, int kVectors, bool kWeighted, bool kStream, class T>
inline void sum_columns(BagShare<T> const& share, std::size_t column) {
  FloatVector<kLanes> sum[kVectors];
  for (int k = 0; k < kVectors; ++k) {
    sum[k].value = typename FloatVector<kLanes>::Native{};
    if (share.before != nullptr) sum[k].load(share.before + column + k * kLanes);
  }
  for (std::uint32_t i = 0; i < share.count; ++i) {
    T const* const row = share.rows[i] + column;
    for (int k = 0; k < kVectors; ++k) {
      FloatVector<kLanes> x;
      x.load(row + k * kLanes);
      if constexpr (kWeighted) {
        sum[k].value += share.weights[i] * x.value;
      } else {
        sum[k].value += x.value;
      }
    }
  }
  for (int k = 0; k < kVectors; ++k) {
    sum[k].value *= share.scale;
    store<kStream>(sum[k], share.to + column + k * kLanes);
  }
}

template <bool kWeighted, bool kStream, class T>
inline void sum_share(BagShare<T> const& share, std::size_t width, std::size_t stride) {
  std::size_t j = 0;
  for (; j + 64 <= width; j += 64) sum_columns<16, 4, kWeighted, kStream>(share, j);
  for (; j + 16 <= width; j += 16) sum_columns<16, 1, kWeighted, kStream>(share, j);
  for (; j < width; j += 4) sum_columns<4, 1, kWeighted, false>(share, j);
  for (; j < stride; ++j) share.to[j] = 0;
}

// Pools a bag of one entry.
template <bool kWeighted, bool kStream, class T>
inline void copy_entry(T const* from, float weight, float* to, std::size_t width, std::size_t stride) {
  auto const copy = [=]<std::size_t kLanes>(FloatVector<kLanes> x, std::size_t column) {
    x.load(from + column);
    if constexpr (kWeighted) x.value *= weight;
    store<kStream>(x, to + column);
  };
  std::size_t j = 0;
  for (; j + 16 <= width; j += 16) copy(FloatVector<16>{}, j);
  for (; j < width; j += 4) copy(FloatVector<4>{}, j);
  for (; j < stride; ++j) to[j] = 0;
}

// Pools a range of bags of a source.
template <bool kWeighted, bool kStream, class Source>
class BagPooler {
  using T = typename Source::Number;

 public:
  BagPooler(Source const& source, Bags const& bags)
      : source_(source), rows_(source), bags_(bags), width_(std::min(source.stride(), bags.out.stride())) {
    std::size_t const bytes = source.stride() * sizeof(T);
    size_ = static_cast<std::uint32_t>(std::clamp<std::size_t>(kStripBytes / bytes, kStripMin, kStripMax));
    ahead_ = kStream ? kRowsAhead / size_ : 1;
  }

  void run(std::size_t first_bag, std::size_t last_bag) {
    std::uint32_t const first = bags_.begin(first_bag);
    last_ = bags_.begin(last_bag);
    bag_ = first_bag;
    last_bag_ = last_bag;
    at_ = bag_begin_ = first;
    rows_.begin(first, last_);
    for (std::uint32_t s = 0; s < ahead_; ++s) find(first + s * size_, strip_[s]);
    std::uint32_t turn = 0;
    for (std::uint32_t e = first; e < last_; e += size_, ++turn) {
      find(e + ahead_ * size_, strip_[(turn + ahead_) % kStrips]);
      pool(strip_[turn % kStrips]);
    }
    if (first == last_) pool(strip_[0]);  // all bags are empty
    if (kStream) nontemporal_fence();
  }

 private:
  void find(std::uint32_t first, Strip<T>& strip) {
    strip.first = std::min(first, last_);
    strip.last = std::min(first + size_, last_);
    rows_.reach(strip.last);
    std::size_t const bytes = source_.stride() * sizeof(T);
    bool all = true;
    for (std::uint32_t e = strip.first; e < strip.last; ++e) {
      T const* const row = rows_.row(e);
      prefetch_row<kStream ? PrefetchTarget::kToL2 : PrefetchTarget::kToL1>(row, bytes);
      strip.row[e - strip.first] = row;
      all = all && row != nullptr;
    }
    if (!all) make_absent(strip);
  }

  // Writes initial values for the entries without a row.
  void make_absent(Strip<T>& strip) {
    strip.absent.resize(size_ * width_);
    for (std::uint32_t e = strip.first; e < strip.last; ++e) {
      T const*& row = strip.row[e - strip.first];
      if (row != nullptr) continue;
      T* const made = strip.absent.data() + (e - strip.first) * width_;
      row = made;
      for (std::size_t quad = 0; quad < width_ / 4; ++quad) {
        FourValues const q = source_.absent(e, quad);
        for (std::size_t k = 0; k < 4; ++k) made[4 * quad + k] = round_to<T>(q.value[k]);
      }
    }
  }

  void pool(Strip<T> const& strip) {
    if (bags_.offsets.empty()) return copy(strip);
    while (bag_ < last_bag_) {
      std::uint32_t const end = bags_.begin(bag_ + 1), to = std::min(end, strip.last);
      bool const ends = end <= strip.last;
      if (ends || to > at_) add(strip, to, ends);
      at_ = to;
      if (!ends) return;
      ++bag_;
      bag_begin_ = end;
    }
  }

  void copy(Strip<T> const& strip) {
    for (std::uint32_t e = strip.first; e < strip.last; ++e) {
      copy_entry<kWeighted, kStream>(strip.row[e - strip.first], bags_.weight(e), bags_.row(e), width_,
                                     bags_.out.stride());
    }
  }

  // Adds the entries at_ .. to - 1 of the current bag. ends: the bag ends there.
  void add(Strip<T> const& strip, std::uint32_t to, bool ends) {
    if (!ends) carried_.resize(bags_.out.stride());
    BagShare<T> const share{strip.row + (at_ - strip.first),
                            kWeighted ? bags_.weights.data() + at_ : nullptr,
                            to - at_,
                            at_ > bag_begin_ ? carried_.data() : nullptr,
                            ends ? bags_.row(bag_) : carried_.data(),
                            ends ? bags_.scale(to - bag_begin_) : 1.0F};
    if (ends) {
      sum_share<kWeighted, kStream>(share, width_, bags_.out.stride());
    } else {
      sum_share<kWeighted, false>(share, width_, bags_.out.stride());
    }
  }

  // Measured: rows of 512 bytes are loaded a quarter faster if they are prefetched about 40 rows ahead or more, however
  // many bytes are in flight. Probably the processor tracks reads in 32 pages, and reads on after a row that is used
  // soon after its prefetch.
  static constexpr std::uint32_t kStripMin = 8, kRowsAhead = kStripMax, kStrips = 16;
  static_assert(kRowsAhead / kStripMin < kStrips);

  Source const& source_;
  EntryRows<Source> rows_;
  Bags const& bags_;
  std::size_t width_;    // number of columns that are summed
  std::uint32_t size_;   // entries of a strip
  std::uint32_t ahead_;  // strips that are prefetched ahead
  std::uint32_t last_ = 0;
  Strip<T> strip_[kStrips];
  std::size_t bag_ = 0, last_bag_ = 0;    // the current bag, and the end
  std::uint32_t bag_begin_ = 0, at_ = 0;  // first entry of the current bag, and the next entry
  std::vector<float> carried_;            // the sum of a bag that continues in the next strip
};

// Returns the number of bags that a thread pools at a time. Together they have the entries of some strips, however long
// bags are.
inline std::size_t bags_at_once(Bags const& bags) {
  constexpr std::size_t kEntries = 2048;
  std::size_t const entries = bags.count == 0 ? 0 : bags.begin(bags.count) - bags.begin(0);
  return std::clamp<std::size_t>(entries == 0 ? kEntries : kEntries * bags.count / entries, 1, kEntries);
}

// Pools the bags first .. last - 1. stream: writes the results around the caches.
template <class Source>
void pool_bags(Source const& source, Bags const& bags, std::size_t first, std::size_t last, bool stream) {
  bool const weighted = !bags.weights.empty();
  if (weighted && stream) return BagPooler<true, true, Source>(source, bags).run(first, last);
  if (weighted) return BagPooler<true, false, Source>(source, bags).run(first, last);
  if (stream) return BagPooler<false, true, Source>(source, bags).run(first, last);
  BagPooler<false, false, Source>(source, bags).run(first, last);
}

// Returns whether the results are better written around the caches.
inline bool should_stream(Arena const& arena, Bags const& bags) {
  std::size_t const row_bytes = bags.out.stride() * sizeof(float);
  return are_lines(bags.out.data(), row_bytes) && exceeds_caches(arena, bags.count * row_bytes);
}

}  // namespace gpups::kernels
