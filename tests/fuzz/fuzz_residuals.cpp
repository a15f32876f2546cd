// SPDX-License-Identifier: Apache-2.0
// A file that may be what a rank held back of its gradients, in a checkpoint: it is rejected, or is written again as
// just these bytes, and takes no more memory than they justify. What format 4 has not is written as an empty list.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "cache/residual_file.hpp"
#include "gpups/error.hpp"
#include "tests/fuzz/memory_file.hpp"

namespace {

std::string read(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Whether `written` is what `bytes` begin with, or all of them and the end of a list that format 4 has not.
bool is_of(std::string const& written, std::string const& bytes) {
  constexpr std::string_view kEnd = "\xFF\xFF\xFF\xFF";
  return bytes.starts_with(written) || written == bytes + std::string(kEnd);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace gpups;
  std::string const bytes(reinterpret_cast<char const*>(data), size);
  fuzz::MemoryFile const file(bytes);
  try {
    auto const held = cache::read_residuals(file.path(), {3, 20});
    std::size_t numbers = 0;
    for (auto const& piece : held.chunks) numbers += piece.keys.size() + piece.marks.size() + piece.sums.size();
    for (auto const& piece : held.mirrors) numbers += piece.keys.size() + piece.marks.size() + piece.values.size();
    if (numbers > size) std::abort();
    fuzz::MemoryFile const again("");
    write_residuals(held, again.path());
    if (!is_of(read(again.path()), bytes)) std::abort();
  } catch (Error const&) {  // rejected
  }
  return 0;
}
