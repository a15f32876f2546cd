// SPDX-License-Identifier: Apache-2.0
// Any bytes as a sparse stream, with their header or with a repaired one: they are rejected, or can be summed, written
// and read again.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/sparse/sum_streams.hpp"

namespace {

using namespace gpups;
using kernels::StreamView;

template <class T>
void check(Stream& stream, StreamView const& given) {
  StreamView const once[] = {given};
  auto const list = kernels::sum<T>(stream, kernels::SumToEntries<T>{once});
  for (auto const values : {kernels::StreamValues::kUnits, kernels::StreamValues::kHalf}) {
    kernels::ValueForm const form{values, given.form().grid_log2};
    auto const sum = kernels::sum<T>(stream, kernels::SumToStream<T>{once, form});
    if (sum.bad != list.bad) std::abort();
    if (sum.bad) return;
    StreamView const again(View<std::uint8_t const>(sum.bytes));
    if (!again.error().empty()) std::abort();
    std::size_t const count = list.indices.size();
    if (again.header().count < count) std::abort();
  }
  for (std::size_t i = 0; i < list.indices.size(); ++i) {
    std::uint64_t const first = given.header().first;
    if (list.indices[i] < first || list.indices[i] - first >= given.header().size) std::abort();
    if (i > 0 && list.indices[i] <= list.indices[i - 1]) std::abort();
  }
  if (given.header().size > 4 * kernels::kStreamBlock) return;  // too large for an array here
  std::vector<T> all(given.header().size);
  if (kernels::sum<T>(stream, kernels::SumToDense<T>{once, all})) std::abort();
}

void check(std::vector<std::uint8_t> const& bytes) {
  static Stream stream(Device::host(), 1);
  StreamView const given((View<std::uint8_t const>(bytes)));
  if (!given.error().empty()) return;
  check<float>(stream, given);
  check<std::int64_t>(stream, given);
}

// Repairs the header and the words of blocks, so that the rest is read.
std::vector<std::uint8_t> repaired(std::vector<std::uint8_t> bytes) {
  kernels::StreamHeader header;
  if (bytes.size() < sizeof header) bytes.resize(sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  auto const values = static_cast<kernels::StreamValues>(static_cast<int>(header.values) % 5);
  header = {kernels::kStreamVersion,
            values,
            static_cast<std::int16_t>(header.grid_log2 % 100),
            0,
            header.first % 1000,
            header.size % (3 * kernels::kStreamBlock),
            0,
            0,
            0};
  std::size_t const blocks = kernels::stream_blocks(header.size), head = kernels::stream_head_bytes(blocks);
  if (bytes.size() < head) bytes.resize(head);
  for (std::size_t b = 0; b < blocks; ++b) {
    std::uint8_t* const at = bytes.data() + sizeof header + 4 * b;
    std::uint32_t const width = kernels::block_width(header.size, b);
    std::uint32_t bits;
    std::memcpy(&bits, at, sizeof bits);
    auto word = kernels::BlockWord::of(bits);
    word.count = word.kind == kernels::PositionEncoding::kDense ? width : word.count % (width + 1);
    word.skips = word.kind == kernels::PositionEncoding::kGaps ? word.skips % (width / 255 + 1) : 0;
    if (values != kernels::StreamValues::kUnits) word.width_log2 = 0;
    if (word.count == 0) word = {};
    bits = word.bits();
    std::memcpy(at, &bits, sizeof bits);
    header.count += word.count;
    header.value_bytes += kernels::value_bytes(values, word.count, word.width_log2);
    header.position_bytes += word.count == 0 ? 0 : kernels::position_bytes(word, width);
  }
  std::memcpy(bytes.data(), &header, sizeof header);
  bytes.resize(head + header.value_bytes + header.position_bytes, 1);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::vector<std::uint8_t> const bytes(data, data + size);
  check(bytes);
  check(repaired(bytes));
  return 0;
}
