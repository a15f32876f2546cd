// SPDX-License-Identifier: Apache-2.0
// Any bytes as a text file of click data, plain or compressed: the file is rejected, or its samples are well-formed.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "gpups/error.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "trainer/tasks/click/block.hpp"
#include "trainer/tasks/click/sample_storage.hpp"
#include "trainer/tasks/click/samples.hpp"

namespace gpups::fuzz {
namespace {

using namespace gpups::trainer;

void require(bool holds) {
  if (!holds) std::abort();
}

Layout layout_of(std::uint8_t choice) {
  switch (choice % 4) {
    case 0:
      return make_layout(2, 2);
    case 1:
      return make_layout(1, 3, {"C2"}, {"C3"});
    case 2:
      return make_layout(2, 0);
    default:
      return make_layout(0, 1, {}, {"C1"});
  }
}

void check(Samples const& samples) {
  SampleBatch batch;
  samples.read(0, samples.size(), batch);
  BlockShape const& shape = samples.storage().shape();
  require(batch.samples > 0 && batch.labels.size() == batch.samples);
  require(std::all_of(batch.labels.begin(), batch.labels.end(), [](float x) { return x >= 0 && x <= 1; }));
  require(std::none_of(batch.numbers.begin(), batch.numbers.end(), [](float x) { return std::isinf(x); }));
  require(std::all_of(batch.weights.begin(), batch.weights.end(), [](float x) { return std::isfinite(x); }));
  require(!shape.lists || batch.values.size() == batch.offsets.back());
  require(shape.lists || batch.values.size() == batch.samples * shape.categories.size());
  for (std::uint64_t first = 0; first < batch.samples; first += kSampleBlock) {
    std::size_t const count = std::min<std::uint64_t>(kSampleBlock, batch.samples - first);
    SampleBatch part;
    samples.read(first, count, part);
    std::vector<std::byte> const block = make_block(shape, part);
    require(check_block(shape, block, count).empty());
  }
}

}  // namespace
}  // namespace gpups::fuzz

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace gpups::fuzz;
  if (size == 0) return 0;
  MemoryFile const file({reinterpret_cast<char const*>(data) + 1, size - 1});
  std::vector<std::string> notices;
  try {
    check(read_samples_text(file.path(), layout_of(data[0]), {.bad_share_max = 1, .threads = 1}, notices));
  } catch (gpups::Error const&) {
  }
  return 0;
}
