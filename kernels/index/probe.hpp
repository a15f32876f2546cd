// SPDX-License-Identifier: Apache-2.0
// Searches for keys by a team of lanes. Each lane has a key. For each of these keys in turn, all lanes load its first
// bucket, a share each, so that a team reads whole cache lines and has one in flight for every key. A team is four
// neighbouring threads of a GPU, with shares of 16 bytes.
#pragma once

#include <cstdint>

#include "kernels/index/bucket.hpp"

namespace gpups::kernels {

// A Team has kSize lanes: 1, 2, 4 or 8. lane() returns the number of the calling lane, shuffle(x, l) the x of lane l,
// and ballot(b) a word whose bit l is the b of lane l.
#ifdef __CUDACC__
struct FourThreads {
  static constexpr unsigned kSize = 4;
  __device__ unsigned lane() const { return threadIdx.x % kSize; }
  __device__ unsigned first() const { return threadIdx.x % 32 / kSize * kSize; }
  __device__ unsigned mask() const { return ((1U << kSize) - 1) << first(); }
  template <class T>
  __device__ T shuffle(T x, unsigned from) const {
    return __shfl_sync(mask(), x, static_cast<int>(from), kSize);
  }
  __device__ unsigned ballot(bool b) const { return __ballot_sync(mask(), b) >> first() & ((1U << kSize) - 1); }
};
#endif

// The share of a bucket that one lane loads.
template <class Team>
struct alignas(64 / Team::kSize) BucketShare {
  static constexpr unsigned kWords = 8 / Team::kSize;
  unsigned long long word[kWords];

  GPUPS_FN static BucketShare load(Team team, Bucket const* bucket) {
    return reinterpret_cast<BucketShare const*>(bucket)[team.lane()];
  }
  // Returns 32-bit word i of the bucket, to all lanes. REQUIRES: the same i in all lanes.
  GPUPS_FN std::uint32_t half_word(Team team, unsigned i) const {
    unsigned const mine = i % (2 * kWords);
    unsigned long long chosen = word[0];
    for (unsigned w = 1; w < kWords; ++w) chosen = w == mine / 2 ? word[w] : chosen;
    return team.shuffle(static_cast<std::uint32_t>(chosen >> 32 * (mine % 2)), i / (2 * kWords));
  }
  // Returns the place of a key, or kBucketKeys if the bucket does not have it, to all lanes.
  GPUPS_FN unsigned place_of(Team team, unsigned long long key, std::uint32_t marks) const {
    unsigned place = kBucketKeys;
    for (unsigned w = 0; w < kWords; ++w) {
      unsigned const k = team.lane() * kWords + w;
      bool const here = k < kBucketKeys && (marks >> k & 1) != 0 && word[w] == key;
      unsigned const lanes = team.ballot(here);
      for (unsigned l = 0; l < Team::kSize; ++l) place = (lanes >> l & 1) != 0 ? l * kWords + w : place;
    }
    return place;
  }
};

// Returns the number of this lane's key, or kNoRow. All lanes of a team call it together; lanes without a key pass has
// = false.
template <class Team>
GPUPS_FN std::uint32_t probe(Team team, Buckets const& buckets, Key key, bool has) {
  using Share = BucketShare<Team>;
  constexpr unsigned kIds = 2 * kBucketKeys, kMarks = kIds + kBucketKeys;  // 32-bit words of a bucket
  std::uint64_t const hash = has ? hash_of(key) : 0;
  auto const mine = reinterpret_cast<unsigned long long>(buckets.first(hash));
  std::uint32_t const my_tag = has ? tag_mask(hash) : 0;

  Share shares[Team::kSize];
#pragma unroll
  for (unsigned k = 0; k < Team::kSize; ++k) {
    shares[k] = Share::load(team, reinterpret_cast<Bucket const*>(team.shuffle(mine, k)));
  }
  std::uint32_t id = kNoRow;
  bool undecided = false;
#pragma unroll
  for (unsigned k = 0; k < Team::kSize; ++k) {
    unsigned long long const wanted = team.shuffle(static_cast<unsigned long long>(number(key)), k);
    std::uint32_t const marks = shares[k].half_word(team, kMarks);
    unsigned const place = shares[k].place_of(team, wanted, marks);
    std::uint32_t const found = shares[k].half_word(team, kIds + place % kBucketKeys);
    if (k != team.lane()) continue;
    id = has && place < kBucketKeys ? found : kNoRow;
    undecided = place >= kBucketKeys && (marks & my_tag) != 0;
  }
  // Few keys are in later buckets. The whole team searches them, one after another.
  for (unsigned left = team.ballot(undecided); left != 0; left &= left - 1) {
    unsigned const k = lowest_bit(left);
    unsigned long long const wanted = team.shuffle(static_cast<unsigned long long>(number(key)), k);
    std::uint64_t const its_hash = hash_of(Key{wanted});
    BucketArray const array = buckets.of(its_hash);
    std::uint32_t at = array.place(its_hash);
    for (std::uint32_t steps = 1; steps < array.size; ++steps) {
      at = array.next(at);
      Share const share = Share::load(team, array.bucket + at);
      std::uint32_t const marks = share.half_word(team, kMarks);
      unsigned const place = share.place_of(team, wanted, marks);
      std::uint32_t const found = share.half_word(team, kIds + place % kBucketKeys);
      if (place < kBucketKeys && k == team.lane()) id = found;
      if (place < kBucketKeys || (marks & tag_mask(its_hash)) == 0) break;
    }
  }
  return id;
}

}  // namespace gpups::kernels
