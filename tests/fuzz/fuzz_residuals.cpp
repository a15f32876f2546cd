// SPDX-License-Identifier: Apache-2.0
// Any bytes as the file of a rank's residuals in a checkpoint: it is rejected, or is written as a file of the same size
// that is read as the same, with memory bounded by its size. Lists that format 4 does not have are written as empty
// ones, and ranks of owners as kinds.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cache/feedback/residual_file.hpp"
#include "gpups/error.hpp"
#include "tests/fuzz/memory_file.hpp"

namespace {

std::string read(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the bytes that are written for a file.
std::string rewritten(std::string const& bytes, gpups::cache::ResidualFile& held) {
  gpups::fuzz::MemoryFile const file(bytes), again("");
  held = gpups::cache::read_residuals(file.path(), {3, 20});
  write_residuals(held, again.path());
  return read(again.path());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace gpups;
  std::string const bytes(reinterpret_cast<char const*>(data), size);
  try {
    cache::ResidualFile held, same;
    auto const written = rewritten(bytes, held);
    std::size_t numbers = 0;
    for (auto const& piece : held.chunks) numbers += piece.keys.size() + piece.marks.size() + piece.sums.size();
    for (auto const& piece : held.mirrors) numbers += piece.keys.size() + piece.marks.size() + piece.values.size();
    if (numbers > size) std::abort();
    constexpr std::size_t kEnd = 4;  // of a list that format 4 does not have
    if (written.size() > size + kEnd || rewritten(written, same) != written) std::abort();
  } catch (Error const&) {  // rejected
  }
  return 0;
}
