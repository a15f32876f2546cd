// SPDX-License-Identifier: Apache-2.0
// Any bytes as the file of a rank's residuals in a checkpoint: it is rejected, or is written as the same bytes again,
// with memory bounded by its size. Lists that format 4 does not have are written as empty ones.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "cache/feedback/residual_file.hpp"
#include "gpups/error.hpp"
#include "tests/fuzz/memory_file.hpp"

namespace {

std::string read(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns whether `bytes` begin with `written`, or `written` is `bytes` and the end of a list that format 4 does not
// have.
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
