// SPDX-License-Identifier: Apache-2.0
// The candidates of a selection on the host: finds the large elements of a vector in one pass, selects the k-th largest
// of them, and writes the selected elements. Magnitudes are compared as the bits of floats.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <vector>

#include "kernels/runtime/launch.hpp"
#include "kernels/sparse/residual_sum.hpp"

namespace gpups::kernels {

// Selects elements whose magnitude has bits > `bits`. If these are fewer than `most`, also selects the first elements
// with exactly these bits. Only the first `most` of all these elements are selected.
struct Bound {
  std::uint32_t bits;
  std::size_t most;
};

// The destination of the selected elements.
struct SelectedElements {
  View<std::uint32_t> indices;
  View<float> values;
};

// Elements in the order of their indices: indices[i], or first + i if `indices` is null.
struct Candidates {
  std::uint32_t const* indices;
  std::uint32_t first;
  float const* values;
  std::size_t count;

  std::uint32_t index(std::size_t i) const {
    return indices == nullptr ? first + static_cast<std::uint32_t>(i) : indices[i];
  }
};

// Writes the selected elements of `pieces` pieces of at most kThresholdBlock candidates; piece(p) returns piece p.
// Calls done(index, x, keep) for each candidate. Returns the number of selected elements. Has no branch per element,
// since many elements are near the bound and branches could not be predicted.
template <class Piece, class Done>
std::size_t write_selected(HostExec ex, std::size_t pieces, Bound bound, SelectedElements out, Piece piece, Done done) {
  constexpr std::size_t kParts = 64;
  struct Count {
    std::size_t above = 0, equal = 0;
  };
  std::vector<Count> counts(pieces);
  auto const each_piece = [&](auto act) {
    ex.arena->blocks(kParts, [&](std::size_t part) {
      for (std::size_t p = part * pieces / kParts; p < (part + 1) * pieces / kParts; ++p) act(p);
    });
  };
  each_piece([&](std::size_t p) {
    Candidates const c = piece(p);
    std::uint32_t above = 0, equal = 0;
    for (std::size_t i = 0; i < c.count; ++i) {
      above += magnitude_bits(c.values[i]) > bound.bits ? 1 : 0;
      equal += magnitude_bits(c.values[i]) == bound.bits ? 1 : 0;
    }
    counts[p] = {above, equal};
  });
  std::size_t above = 0;
  for (Count const& count : counts) above += count.above;
  std::size_t equal_left = bound.most - std::min(bound.most, above);
  // From the counts of a piece to its position in the output, and the number of equal elements that it contributes.
  std::vector<std::size_t> start{0};
  for (Count& count : counts) {
    count.equal = std::min(count.equal, equal_left);
    equal_left -= count.equal;
    start.push_back(std::min(bound.most, start.back() + count.above + count.equal));
  }
  each_piece([&](std::size_t p) {
    std::uint32_t indices[kThresholdBlock + 1];
    float values[kThresholdBlock + 1];
    std::size_t count = 0, equal = counts[p].equal;
    std::size_t const most = start[p + 1] - start[p];
    Candidates const c = piece(p);
    for (std::size_t i = 0; i < c.count; ++i) {
      std::uint32_t const bits = magnitude_bits(c.values[i]);
      bool const ties = (bits == bound.bits) & (equal > 0);
      bool const keep = ((bits > bound.bits) | ties) & (count < most);
      equal -= ties ? 1 : 0;
      indices[count] = c.index(i);
      values[count] = c.values[i];
      count += keep ? 1 : 0;
      done(c.index(i), c.values[i], keep);
    }
    std::copy_n(indices, count, out.indices.data() + start[p]);
    std::copy_n(values, count, out.values.data() + start[p]);
  });
  return start.back();
}

// An estimate of the threshold, as bits of magnitudes: it is probably in [low, high).
struct ThresholdRange {
  std::uint32_t low, high;
  std::size_t listed;  // the largest number of elements to list
};
inline constexpr std::uint32_t kBitsEnd = 0x80000000;

// The elements from a lower bound on, in pieces: one for each block of the vector, in order.
class CandidateList {
 public:
  CandidateList(ThresholdRange const& range, std::size_t n)
      : range_(range),
        room_(range.listed),
        memory_(Device::host(), std::max(2 * room_, kHugePage / 4)),
        pieces_((n + kThresholdBlock - 1) / kThresholdBlock) {
    while ((range.high - 1 - range.low) >> shift_ >= kBins - 1) ++shift_;
  }

  // Lists the elements of x with magnitude bits >= low, and sets them to 0 in the residual. Returns false if the list
  // has no room for all of them.
  bool fill(HostExec ex, ResidualSum& x) {
    Array<Bins> const bins(Device::host(), kParts);  // its pages are reused by later calls, unlike those of a vector
    std::memset(bins.data(), 0, bins.bytes());
    each_piece(ex, [&](std::size_t part, std::size_t p) { fill_piece(x, p, bins[part]); });
    x.set_added();
    for (Bins const& some : bins.view()) {
      for (std::size_t b = 0; b < kBins; ++b) bins_.count[b] += some.count[b];
    }
    return size_ <= room_;
  }
  std::size_t size() const { return size_; }
  std::size_t pieces() const { return pieces_.size(); }
  Candidates piece(std::size_t p) const {
    auto const [first, count] = pieces_[p];
    return {indices() + first, 0, values() + first, count};
  }

  // Undoes the changes of fill() to the residual, except the addition.
  void put_back(HostExec ex, ResidualSum const& x) const {
    each_piece(ex, [&](std::size_t, std::size_t p) {
      Candidates const c = piece(p);
      for (std::size_t i = 0; i < c.count; ++i) x.set(c.indices[i], c.values[i]);
    });
  }

  // Returns the bits of the k-th largest magnitude. REQUIRES: 0 < k <= size().
  std::uint32_t kth(HostExec ex, std::size_t k) const {
    std::size_t bin = kBins - 1, above = 0;
    while (above + bins_.count[bin] < k) above += bins_.count[bin--];
    std::vector<std::vector<std::uint32_t>> found(kParts);
    each_piece(ex, [&](std::size_t part, std::size_t p) {
      Candidates const c = piece(p);
      // Few are in the bin, so 16 elements are checked at a time.
      for (std::size_t first = 0; first < c.count; first += 16) {
        std::size_t const last = std::min(first + 16, c.count);
        int any = 0;
        for (std::size_t i = first; i < last; ++i) any |= bin_of(magnitude_bits(c.values[i])) == bin ? 1 : 0;
        for (std::size_t i = first; i < last && any != 0; ++i) {
          if (bin_of(magnitude_bits(c.values[i])) == bin) found[part].push_back(magnitude_bits(c.values[i]));
        }
      }
    });
    for (std::size_t part = 1; part < kParts; ++part) {
      found[0].insert(found[0].end(), found[part].begin(), found[part].end());
    }
    auto const at = found[0].begin() + static_cast<std::ptrdiff_t>(k - above - 1);
    std::nth_element(found[0].begin(), at, found[0].end(), std::greater<>());
    return *at;
  }

 private:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;  // bytes; smaller pages take longer to write
  static constexpr std::size_t kParts = 64;                       // the work is split into this many
  static constexpr std::size_t kBins = 1024;  // the last bin has about all magnitudes from `high` on
  struct Bins {
    std::uint32_t count[kBins];
  };
  struct CandidateRange {
    std::size_t first = 0, count = 0;
  };

  std::uint32_t* indices() const { return memory_.data(); }
  float* values() const { return reinterpret_cast<float*>(memory_.data() + room_); }
  // Calls act(part, p) for all pieces; the pieces of one part one after the other.
  template <class Act>
  void each_piece(HostExec ex, Act act) const {
    ex.arena->blocks(kParts, [&](std::size_t part) {
      for (std::size_t p = part * pieces() / kParts; p < (part + 1) * pieces() / kParts; ++p) act(part, p);
    });
  }
  std::size_t bin_of(std::uint32_t bits) const {
    std::uint32_t const bin = (bits - range_.low) >> shift_;
    return std::min<std::uint32_t>(bin, kBins - 1);
  }
  void fill_piece(ResidualSum const& x, std::size_t p, Bins& bins) {
    std::uint32_t places[kThresholdBlock + 16];
    float large[kThresholdBlock + 16];
    View<float const> const block = x.block(p);
    std::size_t const found = find_above_threshold(block.data(), block.size(), range_.low, places, large);
    std::size_t const at = size_.fetch_add(found, std::memory_order_relaxed);
    if (at + found > room_) return;
    pieces_[p] = {at, found};
    auto const first = static_cast<std::uint32_t>(p * kThresholdBlock);
    std::uint32_t* const to = indices() + at;
    for (std::size_t h = 0; h < found; ++h) to[h] = first + places[h];
    std::memcpy(values() + at, large, found * sizeof(float));
    for (std::size_t h = 0; h < found; ++h) {
      ++bins.count[bin_of(magnitude_bits(large[h]))];
      x.set(first + places[h], 0);
    }
  }

  ThresholdRange range_;
  std::size_t room_;
  Array<std::uint32_t> memory_;  // indices, then values
  std::vector<CandidateRange> pieces_;
  unsigned shift_ = 0;
  Bins bins_{};
  alignas(64) std::atomic<std::size_t> size_ = 0;  // on a cache line apart from members that threads only read
};

// Writes the elements of the list that the bound selects, and puts the others back into the residual.
inline std::size_t write_selected(HostExec ex, CandidateList const& list, ResidualSum const& x, Bound bound,
                                  SelectedElements out) {
  return write_selected(
      ex, list.pieces(), bound, out, [&](std::size_t p) { return list.piece(p); },
      [&](std::uint32_t index, float value, bool keep) { x.set_if(!keep, index, value); });
}

// Writes the elements of the whole vector that the bound selects. REQUIRES: the sum has been written to the residual.
inline std::size_t write_selected(HostExec ex, ResidualSum const& x, Bound bound, SelectedElements out) {
  return write_selected(
      ex, x.blocks(), bound, out,
      [&](std::size_t p) {
        View<float const> const block = x.block(p);
        return Candidates{nullptr, static_cast<std::uint32_t>(p * kThresholdBlock), block.data(), block.size()};
      },
      [&](std::uint32_t index, float, bool keep) { x.set_if(keep, index, 0); });
}

}  // namespace gpups::kernels
