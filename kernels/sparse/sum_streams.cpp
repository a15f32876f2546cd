// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/sum_streams.hpp"

#include <atomic>

#include "kernels/base/assert.hpp"
#include "kernels/sparse/block_sum.hpp"
#include "kernels/sparse/parallel_blocks.hpp"
#include "kernels/sparse/stream_writer.hpp"

namespace gpups::kernels {
namespace {

using Streams = std::span<StreamView const>;

[[maybe_unused]] bool have_one_range(Streams streams) {
  for (StreamView const& s : streams) {
    if (!s.error().empty() || s.header().first != streams[0].header().first) return false;
    if (s.header().size != streams[0].header().size) return false;
  }
  return true;
}

// The smallest index of the bad streams that threads find.
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

// Returns an upper bound of the number of elements of each block of the sum.
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

// The entries that one part of the work has written to the list.
struct PartOfEntries {
  std::size_t first = 0, count = 0;
};

// Removes the gaps between the parts of a list. Copies nothing if there is one part that fills more than half of the
// list.
template <class T>
void compact(HostExec ex, std::vector<PartOfEntries> const& parts, SumEntries<T>& list) {
  std::vector<std::size_t> start{0};
  for (PartOfEntries const& part : parts) start.push_back(start.back() + part.count);
  std::size_t const count = start.back();
  if (parts.size() == 1 && 2 * count > list.indices.size()) {
    list.indices.truncate(count);
    list.values.truncate(count);
    return;
  }
  Array<std::uint32_t> indices(Device::host(), count);
  Array<T> values(Device::host(), count);
  ex.arena->blocks(parts.size(), [&](std::size_t p) {
    std::copy_n(list.indices.data() + parts[p].first, parts[p].count, indices.data() + start[p]);
    std::copy_n(list.values.data() + parts[p].first, parts[p].count, values.data() + start[p]);
  });
  list.indices = std::move(indices);
  list.values = std::move(values);
}

}  // namespace

template <class T>
EncodedSum run(HostExec ex, SumToStream<T> const& s) {
  GPUPS_ASSERT(!s.streams.empty() && have_one_range(s.streams));
  StreamHeader const& header = s.streams[0].header();
  GPUPS_ASSERT(s.residual.empty() || s.residual.size() == header.size);
  auto const most = counts_at_most(s.streams);
  struct Memory {
    BlockSum<T> sums;
    ValueWriter<T> values;
  };
  StreamWriter writer(s.form, header.first, header.size, most);
  FirstBad bad;
  parallel_blocks<Memory>(ex, most.size(), [&](Memory& memory, std::size_t b) {
    if (most[b] == 0) return;
    T* const residual = s.residual.empty() ? nullptr : s.residual.data() + b * kStreamBlock;
    memory.sums.read(s.streams, b, [&](std::size_t i) { bad.add(i); });
    writer.write(b, memory.sums.sum(s.streams[0].blocks()[b].width), memory.values, residual);
  });
  if (bad.get()) return {bad.get(), {}};
  return {{}, writer.finish(ex)};
}

template <class T>
SumEntries<T> run(HostExec ex, SumToEntries<T> const& s) {
  GPUPS_ASSERT(!s.streams.empty() && have_one_range(s.streams));
  auto const most = counts_at_most(s.streams);
  std::vector<std::size_t> room{0};
  for (std::uint32_t const count : most) room.push_back(room.back() + count);
  SumEntries<T> list{{}, {Device::host(), room.back()}, {Device::host(), room.back()}};
  std::vector<PartOfEntries> parts(parts_of(ex, most.size()));
  FirstBad bad;
  parallel_parts(ex, most.size(), [&](std::size_t part, std::size_t first, std::size_t last) {
    BlockSum<T> sums;
    std::size_t next = room[first];
    for (std::size_t b = first; b < last; ++b) {
      if (most[b] == 0) continue;
      sums.read(s.streams, b, [&](std::size_t i) { bad.add(i); });
      BlockEntries<T> const found = sums.sum(s.streams[0].blocks()[b].width);
      auto const base = static_cast<std::uint32_t>(s.streams[0].header().first + b * kStreamBlock);
      std::copy_n(found.values, found.count, list.values.data() + next);
      each_position(found, [&, to = list.indices.data() + next](std::size_t i, std::uint32_t position) {
        to[i] = base + position;
      });
      next += found.count;
    }
    parts[part] = {room[first], next - room[first]};
  });
  if (bad.get()) return {bad.get(), {}, {}};
  compact<T>(ex, parts, list);
  return list;
}

template <class T>
BadStream run(HostExec ex, SumToDense<T> const& s) {
  GPUPS_ASSERT(have_one_range(s.streams));
  GPUPS_ASSERT(s.streams.empty() || s.into.size() == s.streams[0].header().size);
  std::size_t const size = s.into.size();
  FirstBad bad;
  parallel_blocks<BlockSum<T>>(ex, stream_blocks(size), [&](BlockSum<T>& sums, std::size_t b) {
    sums.read(s.streams, b, [&](std::size_t i) { bad.add(i); });
    sums.write(s.into.data() + b * kStreamBlock, block_width(size, b), s.add);
  });
  return bad.get();
}

template <class T>
EncodedSum sum(Stream& stream, SumToStream<T> const& s) {
  return run_at_host_level<EncodedSum>(host_exec(stream), s);
}
template <class T>
SumEntries<T> sum(Stream& stream, SumToEntries<T> const& s) {
  return run_at_host_level<SumEntries<T>>(host_exec(stream), s);
}
template <class T>
BadStream sum(Stream& stream, SumToDense<T> const& s) {
  return run_at_host_level<BadStream>(host_exec(stream), s);
}
GPUPS_HOST_KERNEL_OF(EncodedSum, sum, SumToStream<float>)
GPUPS_HOST_KERNEL_OF(EncodedSum, sum, SumToStream<std::int64_t>)
GPUPS_HOST_KERNEL_OF(SumEntries<float>, sum, SumToEntries<float>)
GPUPS_HOST_KERNEL_OF(SumEntries<std::int64_t>, sum, SumToEntries<std::int64_t>)
GPUPS_HOST_KERNEL_OF(BadStream, sum, SumToDense<float>)
GPUPS_HOST_KERNEL_OF(BadStream, sum, SumToDense<std::int64_t>)

}  // namespace gpups::kernels
