// SPDX-License-Identifier: Apache-2.0
// A file that may be what a rank held back of its gradients, in a checkpoint: it is refused, or is written again as
// just these bytes, and takes no more memory than they justify.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cache/held_file.hpp"
#include "gpups/error.hpp"
#include "tests/fuzz/memory_file.hpp"

namespace {

std::string read(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace gpups;
  std::string const bytes(reinterpret_cast<char const*>(data), size);
  fuzz::MemoryFile const file(bytes);
  try {
    auto const held = cache::read_held(file.path(), {3, 20});
    std::size_t numbers = 0;
    for (auto const& piece : held.pieces) numbers += piece.keys.size() + piece.marks.size() + piece.sums.size();
    if (numbers > size) std::abort();
    fuzz::MemoryFile const again("");
    write_held(held, again.path());
    if (!bytes.starts_with(read(again.path()))) std::abort();
  } catch (Error const&) {  // refused
  }
  return 0;
}
