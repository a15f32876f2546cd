// SPDX-License-Identifier: Apache-2.0
// Any bytes as lists of keys for a dictionary, or as packed rows: they are rejected, or have at most as many keys or
// rows as bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "cache/wire/key_dictionary.hpp"
#include "kernels/codec/pack_sums.hpp"
#include "tests/fuzz/script.hpp"

namespace gpups::fuzz {
namespace {

void require(bool fine) {
  if (!fine) std::abort();
}

void decode_lists(Script& script, std::string_view bytes) {
  std::size_t const capacity = script.byte() % 9, size = bytes.size();
  cache::KeyDecoder decoder(capacity);
  try {
    for (int i = 0; i < 20; ++i) {
      std::uint64_t const count = script.number();
      std::uint8_t const choice = script.byte();
      if (choice >= 192) {  // keys of flushed rows
        require(decoder.decode_known(bytes, count).size() == count && count <= size);
        continue;
      }
      auto const keys = decoder.decode(bytes, count);
      require(keys.size() == count && count <= size && decoder.size() <= capacity);
      require(std::adjacent_find(keys.begin(), keys.end(), std::greater_equal<>()) == keys.end());
    }
  } catch (comm::SerializationError const&) {  // rejected
  }
}

void add_rows(Script& script, View<std::uint8_t const> bytes) {
  Stream stream(Device::host(), 1);
  std::size_t const rows = script.byte(), dim = 1 + script.byte() % 40;
  kernels::PackedRows const narrow{bytes, rows, dim};
  Array<std::uint64_t> const starts(Device::host(), kernels::packed_blocks(rows) + 1);
  if (!kernels::wait_find_packed_rows(stream, narrow, starts)) return;
  require(starts[kernels::packed_blocks(rows)] + kernels::packed_header_bytes(rows) == bytes.size());
  Matrix<std::int64_t> const into(Device::host(), rows, dim);
  memory::fill_bytes(stream, into.view().data(), 0x7F, into.view().flat().bytes());
  Array<std::uint32_t> const bad_row(Device::host(), 1);
  kernels::add_packed_sums(stream, {.rows = narrow, .starts = starts, .slots = {}, .into = into, .bad_row = bad_row});
}

}  // namespace
}  // namespace gpups::fuzz

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace gpups;
  std::size_t const choices = size < 32 ? size : 32;
  fuzz::Script script(data, choices);
  std::vector<std::uint8_t> const bytes(data + choices, data + size);  // a copy, so that sanitizers see its end
  std::string_view const text(reinterpret_cast<char const*>(bytes.data()), bytes.size());
  script.byte() % 2 == 0 ? fuzz::decode_lists(script, text) : fuzz::add_rows(script, View<std::uint8_t const>(bytes));
  return 0;
}
