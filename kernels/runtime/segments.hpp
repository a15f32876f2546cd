// SPDX-License-Identifier: Apache-2.0
// One launch for many segments. A segment is a piece of work like others, with numbers of its own: such as the rows of
// one table for one rank. The items of all segments are numbered one after another, and a binary search finds the
// segment of an item. So the number of launches does not depend on the number of segments, which may differ in size.
//
// On a GPU, the segments are sent in one copy, which no thread waits for. One segment is an argument of the kernel.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernels/runtime/launch.hpp"
#ifdef __CUDACC__
#include <optional>

#include "kernels/runtime/device_scratch.hpp"
#include "kernels/runtime/read_back.hpp"
#endif

namespace gpups::kernels {

// The segments of a launch, as bodies use them.
template <class T>
struct Segments {
  T const* list;             // (count), on the device of the launch; see SentSegments
  std::size_t const* first;  // (count + 1): the number of the first item of each segment; last: the number of items
  std::uint32_t count;
  std::size_t items;
  T const* on_host;  // (count)

  // Returns the segment of an item.
  GPUPS_FN std::uint32_t segment_of(std::size_t item) const {
    std::uint32_t low = 0;
    for (std::uint32_t high = count; high - low > 1;) {
      std::uint32_t const middle = low + (high - low) / 2;
      (first[middle] <= item ? low : high) = middle;
    }
    return low;
  }
};

// Whether a single segment is sent to the GPU too, for bodies that search in the list themselves.
enum class SentSegments { kManyOnly, kAny };

// Segments that are all sent together, with the numbers of their items of each kind: a function that has several
// launches may have rows in one of them, and blocks of rows in another.
template <class T, std::size_t kKinds = 1, SentSegments kSent = SentSegments::kManyOnly>
class SegmentList {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 16);

 public:
  // counts: kKinds functions, each of which returns the number of items of a segment.
  template <class... Count>
  SegmentList([[maybe_unused]] NativeExec ex, std::vector<T> list, Count... counts) : list_(std::move(list)) {
    static_assert(sizeof...(Count) == kKinds);
    std::size_t kind = 0;
    (number_items(kind++, counts), ...);
#ifdef __CUDACC__
    if (list_.size() > (kSent == SentSegments::kAny ? 0 : 1)) send(ex);
#endif
  }

  std::size_t size() const { return list_.size(); }
  // Returns the number of items of a kind in all segments.
  std::size_t items(std::size_t kind = 0) const { return first_[kind].back(); }
  // Returns the number of the first item of a segment.
  std::size_t first(std::size_t segment, std::size_t kind = 0) const { return first_[kind][segment]; }

  // Returns the segments with the numbers of a kind of items. Valid for work that is queued before the destructor.
  Segments<T> segments(std::size_t kind = 0) const {
    return {on_device_, numbers_ + kind * (list_.size() + 1), static_cast<std::uint32_t>(list_.size()), items(kind),
            list_.data()};
  }

 private:
  template <class Count>
  void number_items(std::size_t kind, Count count) {
    auto& first = first_[kind];
    first.reserve(list_.size() + 1);
    first.push_back(0);
    for (auto const& segment : list_) first.push_back(first.back() + count(segment));
#ifndef __CUDACC__
    on_device_ = list_.data();
    if (kind + 1 < kKinds) return;
    for (auto const& of_kind : first_) all_numbers_.insert(all_numbers_.end(), of_kind.begin(), of_kind.end());
    numbers_ = all_numbers_.data();
#endif
  }

  std::vector<T> list_;
  std::array<std::vector<std::size_t>, kKinds> first_;
  T const* on_device_ = nullptr;
  std::size_t const* numbers_ = nullptr;
#ifdef __CUDACC__
  void send(DeviceExec ex) {
    std::size_t const bytes = list_.size() * sizeof(T), bytes_of_kind = (list_.size() + 1) * sizeof(std::size_t);
    std::size_t const numbers_at = (bytes + 15) / 16 * 16;
    std::vector<std::byte> sent(numbers_at + kKinds * bytes_of_kind);
    std::memcpy(sent.data(), list_.data(), bytes);
    for (std::size_t k = 0; k < kKinds; ++k) {
      std::memcpy(sent.data() + numbers_at + k * bytes_of_kind, first_[k].data(), bytes_of_kind);
    }
    auto* const there = static_cast<std::byte*>(scratch_.emplace(ex, sent.size()).data());
    send_to_device(ex, there, sent.data(), sent.size());
    on_device_ = reinterpret_cast<T const*>(there);
    numbers_ = reinterpret_cast<std::size_t const*>(there + numbers_at);
  }

  std::optional<StreamScratch> scratch_;
#else
  std::vector<std::size_t> all_numbers_;
#endif
};

#ifdef __CUDACC__
// Calls f(segment, i) for each item i of each segment.
template <class T, class F>
void each_item(DeviceExec ex, Segments<T> all, F f) {
  if (all.count == 1) {
    T const only = *all.on_host;
    return each(ex, all.items, [only, f] GPUPS_FN(std::size_t i) { f(only, i); });
  }
  each(ex, all.items, [all, f] GPUPS_FN(std::size_t item) {
    std::uint32_t const segment = all.segment_of(item);
    f(all.list[segment], item - all.first[segment]);
  });
}
// The same for items with much work each.
template <std::size_t = 0, class T, class F>
void each_large_item(DeviceExec ex, Segments<T> all, F f) {
  each_item(ex, all, f);
}
// Calls f(segment, i, lanes) for each item i of each segment with a team of lanes.
template <class T, class F>
void each_row_item(DeviceExec ex, Segments<T> all, F f) {
  if (all.count == 1) {
    T const only = *all.on_host;
    return each_row(ex, all.items, [only, f] GPUPS_FN(std::size_t i, NativeLanes lanes) { f(only, i, lanes); });
  }
  each_row(ex, all.items, [all, f] GPUPS_FN(std::size_t item, NativeLanes lanes) {
    std::uint32_t const segment = all.segment_of(item);
    f(all.list[segment], item - all.first[segment], lanes);
  });
}
#else
// Calls f(segment, first, last) for ranges of items that cover all items. No range has more than `most` items.
template <class T, class F>
void each_item_range(HostExec ex, Segments<T> all, std::size_t most, F f) {
  ex.arena->blocks((all.items + most - 1) / most, [&](std::size_t block) {
    std::size_t const end = std::min((block + 1) * most, all.items);
    std::uint32_t s = all.segment_of(block * most);
    for (std::size_t at = block * most; at < end; ++s) {
      std::size_t const last = std::min(end, all.first[s + 1]);
      if (at < last) f(all.list[s], at - all.first[s], last - all.first[s]);
      at = std::max(at, last);
    }
  });
}
// Calls f(segment, i) for each item i of each segment.
template <class T, class F>
void each_item(HostExec ex, Segments<T> all, F f) {
  each_item_range(ex, all, kBlockElements, [&](T const& segment, std::size_t first, std::size_t last) {
#pragma GCC ivdep
    for (std::size_t i = first; i < last; ++i) f(segment, i);
  });
}
// The same for items with much work each, such as thousands of elements. kTogether: the items that a thread takes.
template <std::size_t kTogether = 32, class T, class F>
void each_large_item(HostExec ex, Segments<T> all, F f) {
  each_item_range(ex, all, kTogether, [&](T const& segment, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) f(segment, i);
  });
}
// Calls f(segment, i, lanes) for each item i of each segment with a team of lanes.
template <class T, class F>
void each_row_item(HostExec ex, Segments<T> all, F f) {
  each_item_range(ex, all, kBlockRows, [&](T const& segment, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) f(segment, i, HostLanes{});
  });
}
#endif

}  // namespace gpups::kernels
