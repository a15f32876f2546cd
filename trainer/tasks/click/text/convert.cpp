// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/text/convert.hpp"

#include <algorithm>
#include <iterator>
#include <system_error>

#include "kernels/base/check.hpp"
#include "trainer/accounts/stage_times.hpp"
#include "trainer/input/input_file.hpp"
#include "trainer/tasks/click/binary_format.hpp"
#include "trainer/tasks/click/sample_file.hpp"
#include "trainer/tasks/click/text/text_blocks.hpp"

namespace gpups::trainer {

namespace {

// Throws Error if a file of another kind would be replaced: the user may have swapped the two names.
void check_target(std::filesystem::path const& text, std::filesystem::path const& binary) {
  std::error_code none;
  GPUPS_REQUIRE(!std::filesystem::equivalent(text, binary, none),
                "{} is both the text and the binary file (the text would be lost): choose another name", text.string());
  if (!std::filesystem::exists(binary, none)) return;
  GPUPS_REQUIRE(!std::filesystem::is_other(binary, none),
                "{} is no regular file (it would be replaced by one): choose another name", binary.string());
  InputFile file(binary);
  char magic[sizeof kMagic] = {};
  std::size_t const size = file.read(magic, sizeof magic);
  GPUPS_REQUIRE(size == 0 || std::equal(std::begin(kMagic), std::end(kMagic), magic),
                "{} exists and is not a binary file of samples (it would be lost): choose another name, or remove it",
                binary.string());
}

}  // namespace

Converted convert_samples(std::filesystem::path const& text, std::filesystem::path const& binary, Layout const& layout,
                          TextOptions const& options) {
  check_target(text, binary);
  Stopwatch watch;
  watch.start();
  Converted done;
  check_layout(layout);
  SampleFileWriter writer(binary, layout);
  TextCounts const counts =
      make_blocks_of_text(std::span(&text, 1), layout, options, done.notices,
                          [&](std::vector<std::byte> const& block, std::uint64_t xxh3) { writer.add(block, xxh3); });
  done.samples = counts.samples;
  done.bad = counts.bad;
  done.bytes = writer.finish(counts.samples);
  done.seconds = watch.seconds();
  return done;
}

}  // namespace gpups::trainer
