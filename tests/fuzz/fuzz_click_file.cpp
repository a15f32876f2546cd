// SPDX-License-Identifier: Apache-2.0
// Any bytes as a binary file of samples, with their checksums or with correct ones: the file is rejected, or all of its
// samples can be read, in memory proportional to its size.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "gpups/error.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/support/click_checksums.hpp"
#include "trainer/tasks/click/samples.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace gpups;
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<char const*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) test::correct_checksums(bytes);
  fuzz::MemoryFile const file(bytes);
  try {
    trainer::Samples const samples = trainer::open_samples(file.path());
    trainer::SampleBatch batch;
    for (std::uint64_t first = 0; first < samples.size(); first += trainer::kSampleBlock) {
      samples.read(first, std::min(trainer::kSampleBlock, samples.size() - first), batch);
      samples.gather(std::vector<std::uint64_t>{first, samples.size() - 1, first}, batch);
      if (batch.samples != 3 || batch.values.size() > 3 * size) std::abort();
    }
  } catch (Error const&) {
  }
  return 0;
}
