// SPDX-License-Identifier: Apache-2.0
#include "kernels/wire/sum_streams.hpp"

#include <atomic>

#include "kernels/assert.hpp"
#include "kernels/wire/block_sum.hpp"
#include "kernels/wire/over_blocks.hpp"
#include "kernels/wire/stream_writer.hpp"

namespace gpups::kernels {
namespace {

using Streams = std::span<StreamView const>;

[[maybe_unused]] bool have_one_range(Streams streams) {
  for (StreamView const& s : streams) {
    if (!s.fault().empty() || s.header().first != streams[0].header().first) return false;
    if (s.header().size != streams[0].header().size) return false;
  }
  return true;
}

// The least of the numbers of bad streams that threads find.
class FirstBad {
 public:
  void add(std::size_t stream) {
    std::size_t known = first_;
    while (stream < known && !first_.compare_exchange_weak(known, stream)) {
    }
  }
  BadStream get() const { return first_ == kNone ? BadStream{} : BadStream{first_}; }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::atomic<std::size_t> first_ = kNone;
};

// The most elements that each block of the sum can have.
std::vector<std::uint32_t> counts_at_most(Streams streams) {
  std::vector<std::uint32_t> most(streams[0].blocks().size(), 0);
  for (StreamView const& s : streams) {
    for (std::size_t b = 0; b < most.size(); ++b) {
      StreamBlock const& block = s.blocks()[b];
      most[b] = std::min(most[b] + block.word.count, block.width);
    }
  }
  return most;
}

// Entries in the order of the blocks, out of places that lie apart.
template <class T>
void put_together(HostExec ex, std::vector<std::size_t> const& room, std::vector<std::uint32_t> const& counts,
                  View<std::uint32_t const> indices, View<T const> values, EntriesOfSum<T>& to) {
  std::vector<std::size_t> start{0};
  for (std::uint32_t const count : counts) start.push_back(start.back() + count);
  to.indices = Array<std::uint32_t>(Device::host(), start.back());
  to.values = Array<T>(Device::host(), start.back());
  ex.arena->blocks(counts.size(), [&](std::size_t b) {
    std::copy_n(indices.data() + room[b], counts[b], to.indices.data() + start[b]);
    std::copy_n(values.data() + room[b], counts[b], to.values.data() + start[b]);
  });
}

}  // namespace

template <class T>
StreamOfSum sum(Stream& stream, SumToStream<T> const& s) {
  GPUPS_ASSERT(stream.device().is_host() && !s.streams.empty() && have_one_range(s.streams));
  HostExec const ex = host_exec(stream);
  StreamHeader const& header = s.streams[0].header();
  GPUPS_ASSERT(s.residual.empty() || s.residual.size() == header.size);
  auto const most = counts_at_most(s.streams);
  struct Memory {
    BlockSum<T> sums;
    ValueWriter<T> values;
  };
  StreamWriter writer(s.form, header.first, header.size, most);
  FirstBad bad;
  over_blocks<Memory>(ex, most.size(), [&](Memory& memory, std::size_t b) {
    if (most[b] == 0) return;
    T* const residual = s.residual.empty() ? nullptr : s.residual.data() + b * kStreamBlock;
    memory.sums.read(s.streams, b, [&](std::size_t i) { bad.add(i); });
    writer.write(b, memory.sums.sum(s.streams[0].blocks()[b].width), memory.values, residual);
  });
  if (bad.get()) return {bad.get(), {}};
  return {{}, writer.finish(ex)};
}

template <class T>
EntriesOfSum<T> sum(Stream& stream, SumToEntries<T> const& s) {
  GPUPS_ASSERT(stream.device().is_host() && !s.streams.empty() && have_one_range(s.streams));
  HostExec const ex = host_exec(stream);
  auto const most = counts_at_most(s.streams);
  std::vector<std::size_t> room{0};
  for (std::uint32_t const count : most) room.push_back(room.back() + count);
  Array<std::uint32_t> const indices(Device::host(), room.back());
  Array<T> const values(Device::host(), room.back());
  std::vector<std::uint32_t> counts(most.size(), 0);
  FirstBad bad;
  over_blocks<BlockSum<T>>(ex, most.size(), [&](BlockSum<T>& sums, std::size_t b) {
    if (most[b] == 0) return;
    sums.read(s.streams, b, [&](std::size_t i) { bad.add(i); });
    BlockEntries<T> const found = sums.sum(s.streams[0].blocks()[b].width);
    auto const base = static_cast<std::uint32_t>(s.streams[0].header().first + b * kStreamBlock);
    counts[b] = static_cast<std::uint32_t>(found.count);
    std::copy_n(found.values, found.count, values.data() + room[b]);
    each_place(found, [&, to = indices.data() + room[b]](std::size_t i, std::uint32_t place) { to[i] = base + place; });
  });
  EntriesOfSum<T> result{bad.get(), {}, {}};
  if (!result.bad) put_together<T>(ex, room, counts, indices, values, result);
  return result;
}

template <class T>
BadStream sum(Stream& stream, SumToDense<T> const& s) {
  GPUPS_ASSERT(stream.device().is_host() && have_one_range(s.streams));
  GPUPS_ASSERT(s.streams.empty() || s.into.size() == s.streams[0].header().size);
  HostExec const ex = host_exec(stream);
  std::size_t const size = s.into.size();
  FirstBad bad;
  over_blocks<BlockSum<T>>(ex, stream_blocks(size), [&](BlockSum<T>& sums, std::size_t b) {
    sums.read(s.streams, b, [&](std::size_t i) { bad.add(i); });
    sums.write(s.into.data() + b * kStreamBlock, block_width(size, b), s.add);
  });
  return bad.get();
}

template StreamOfSum sum(Stream&, SumToStream<float> const&);
template StreamOfSum sum(Stream&, SumToStream<std::int64_t> const&);
template EntriesOfSum<float> sum(Stream&, SumToEntries<float> const&);
template EntriesOfSum<std::int64_t> sum(Stream&, SumToEntries<std::int64_t> const&);
template BadStream sum(Stream&, SumToDense<float> const&);
template BadStream sum(Stream&, SumToDense<std::int64_t> const&);

}  // namespace gpups::kernels
