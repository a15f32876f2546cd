// SPDX-License-Identifier: Apache-2.0
// Any bytes as gradients of a table with residuals: rows of a batch, some of which may be missing, and flushed rows, in
// every codec, with and without top-k columns. They are rejected, or can be read.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "cache/wire/gradient_section.hpp"
#include "tests/fuzz/script.hpp"

namespace gpups::fuzz {
namespace {

constexpr RowCodec kCodecs[] = {RowCodec::kLossless, RowCodec::kHalf, RowCodec::kBFloat16, RowCodec::kInt8,
                                RowCodec::kInt4};

TableOptions any_table(Script& script) {
  TableOptions table{.name = "t", .dim = std::size_t{1} + script.byte() % 70};
  table.gradient_compression.codec = kCodecs[script.byte() % std::size(kCodecs)];
  table.gradient_compression.top_k = script.byte() % 2 == 0 ? 0 : 1 + script.byte() % table.dim;
  table.gradient_compression.filter.age_max = script.byte() % 2;
  return table;
}

// Changes the bytes to a valid size, so that they are not rejected for their size alone.
template <class MayHave>
Array<std::uint8_t> fitting(Stream& stream, std::vector<std::uint8_t> bytes, MayHave const& is_valid_size) {
  std::size_t const given = bytes.size();
  for (std::size_t size = 0; size < 20000 && !is_valid_size(bytes.size()); ++size) bytes.resize(size);
  if (!is_valid_size(bytes.size())) bytes.resize(given);
  return to_device(stream, bytes);
}

void read_section(Stream& stream, Script& script, TableOptions const& table, std::vector<std::uint8_t> const& given) {
  std::size_t const n = script.byte() % 40, sent = script.byte() % 40;
  cache::GradientSection const section(table);
  auto const is_valid_size = [&](std::size_t size) { return section.is_valid_size(size, sent, n); };
  auto const bytes = fitting(stream, given, is_valid_size);
  if (!is_valid_size(bytes.size())) return;
  auto const rows = section.wait_read(stream, bytes, sent, n);
  if (rows && rows->sums.rows() != sent) std::abort();
}

void read_flushed(Stream& stream, Script& script, TableOptions const& table, std::vector<std::uint8_t> const& given) {
  std::size_t const n = 1 + script.byte() % 40;
  cache::RowCoder const coder(table, table.gradient_compression, script.byte() % 2 == 1);
  auto const is_valid_size = [&](std::size_t size) { return coder.is_valid_size(size, n); };
  auto const bytes = fitting(stream, given, is_valid_size);
  if (!is_valid_size(bytes.size())) return;
  std::vector<std::uint32_t> positions(n);
  std::iota(positions.begin(), positions.end(), 0U);
  std::reverse(positions.begin(), positions.end());
  Matrix<std::int64_t> const into(Device::host(), n, table.dim);
  memory::fill_bytes(stream, into.view().data(), 0x7F, into.view().flat().bytes());
  coder.wait_add(stream, bytes, n, to_device(stream, positions), into);
}

}  // namespace
}  // namespace gpups::fuzz

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace gpups;
  std::size_t const choices = std::min<std::size_t>(size, 9);
  fuzz::Script script(data, choices);
  std::vector<std::uint8_t> const bytes(data + choices, data + size);  // a copy, so that sanitizers see its end
  static Stream stream(Device::host(), 1);
  auto const table = fuzz::any_table(script);
  script.byte() % 2 == 0 ? fuzz::read_section(stream, script, table, bytes)
                         : fuzz::read_flushed(stream, script, table, bytes);
  return 0;
}
