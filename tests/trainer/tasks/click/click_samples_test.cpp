// SPDX-License-Identifier: Apache-2.0
// Samples are equal from a file and from memory, in any order. A truncated, changed or malicious file is
// rejected.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "kernels/runtime/arena.hpp"
#include "tests/support/click_checksums.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/trainer/tasks/click/click_fixture.hpp"
#include "trainer/tasks/click/binary_format.hpp"
#include "trainer/tasks/click/block.hpp"
#include "trainer/tasks/click/sample_storage.hpp"
#include "trainer/tasks/click/text/convert.hpp"

namespace gpups::trainer::click_samples_test {
namespace {

using test::correct_checksums;
using test::expect_error;
using test::expect_sample;
using test::header_of;
using test::joined;
using test::oracle_sample;
using test::small_layout;
using test::SyntheticText;
using test::TemporaryFolder;

// Lines of text, and the binary file that was converted from them.
struct Clicks {
  explicit Clicks(Layout l, std::size_t count = 2500)
      : layout(std::move(l)), lines(SyntheticText(layout).lines(count)) {
    text = folder.write("clicks.tsv", joined(lines));
    binary = folder.path() / "clicks.bin";
    done = convert_samples(text, binary, layout, {});
  }
  std::string bytes() const {
    std::ifstream file(binary, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::filesystem::path write(std::string_view changed) const { return folder.write("changed.bin", changed); }

  TemporaryFolder folder;
  Layout layout;
  std::vector<std::string> lines;
  std::filesystem::path text, binary;
  Converted done;
};

// Reads a whole file, as training does.
void use(std::filesystem::path const& path) {
  Samples const samples = open_samples(path);
  SampleBatch batch;
  samples.read(0, samples.size(), batch);
}

template <class T>
void put(std::string& bytes, std::size_t at, T value) {
  ASSERT_LE(at + sizeof value, bytes.size());
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

TEST(ClickSamples, AreEqualFromMemoryAndFile) {
  for (Layout const& layout : {criteo_layout(), small_layout(), make_layout(2, 0), make_layout(0, 3)}) {
    Clicks const clicks(layout);
    std::vector<std::string> notices;
    Samples const memory = read_samples_text(clicks.text, layout, {}, notices), file = open_samples(clicks.binary);
    EXPECT_EQ(file.layout(), layout);
    EXPECT_EQ(file.size(), clicks.lines.size());
    EXPECT_EQ(file.digest(), memory.digest());
    EXPECT_EQ(file.bytes(), memory.bytes());
    EXPECT_EQ(clicks.done.samples, clicks.lines.size());
    EXPECT_EQ(clicks.done.bytes, std::filesystem::file_size(clicks.binary));
    for (Samples const& samples : {memory, file}) {
      SampleBatch batch;
      samples.read(0, samples.size(), batch);
      for (std::size_t i = 0; i < clicks.lines.size(); ++i) {
        expect_sample(layout, batch, i, oracle_sample(layout, clicks.lines[i]));
      }
    }
  }
}

TEST(ClickSamples, GatherAcceptsAnyOrder) {
  for (Layout const& layout : {criteo_layout(), small_layout()}) {
    Clicks const clicks(layout);
    Samples const samples = open_samples(clicks.binary);
    SampleBatch batch;
    std::mt19937 random(3);
    for (std::size_t count : {700U, 0U, 1U, 300U}) {  // the batch object is reused
      std::vector<std::uint64_t> indices;
      for (std::size_t i = 0; i < count; ++i) {
        indices.push_back(i % 4 == 3 ? std::min<std::uint64_t>(indices.back() + 1, samples.size() - 1)
                                     : random() % samples.size());
      }
      samples.gather(indices, batch);
      ASSERT_EQ(batch.samples, count);
      for (std::size_t i = 0; i < count; ++i) {
        expect_sample(layout, batch, i, oracle_sample(layout, clicks.lines[indices[i]]));
      }
    }
    samples.read(1000, 60, batch);  // across the end of a block
    ASSERT_EQ(batch.samples, 60U);
    for (std::size_t i = 0; i < 60; ++i) expect_sample(layout, batch, i, oracle_sample(layout, clicks.lines[1000 + i]));
  }
}

TEST(ClickSamples, AreReadByManyThreads) {
  Clicks const clicks(small_layout());
  Samples const samples = open_samples(clicks.binary);
  kernels::Arena arena(4);
  arena.blocks(16, [&](std::size_t part) {
    SampleBatch batch;
    samples.read(part * 100, 1000, batch);
    expect_sample(clicks.layout, batch, 999, oracle_sample(clicks.layout, clicks.lines[part * 100 + 999]));
  });
}

TEST(ClickSamples, IdsUseFourBytesIfTheyFit) {
  Layout const layout = make_layout(0, 1);
  TemporaryFolder const folder;
  auto const bytes = [&](std::string const& cell) {
    std::string text;
    for (int i = 0; i < 1024; ++i) text += "1\t" + (i == 5 ? cell : "ffffffff") + "\n";
    std::vector<std::string> notices;
    return read_samples_text(folder.write("a.tsv", text), layout, {}, notices).bytes();
  };
  EXPECT_EQ(bytes("00000000"), bytes(""));  // a missing value needs no more memory
  EXPECT_EQ(bytes("other"), bytes("") + 4 * 1024);
}

TEST(ClickSamples, RejectsBatchWithTooManyValues) {
  TemporaryFolder const folder;
  std::string text = "1\t";
  for (int i = 1; i < 65536; ++i) text += "|";
  std::vector<std::string> notices;
  Samples const samples = read_samples_text(folder.write("a.tsv", text), make_layout(0, 1, {"C1"}), {}, notices);
  SampleBatch batch;
  expect_error([&] { samples.gather(std::vector<std::uint64_t>(65536), batch); }, {"has 4294967296 values"});
}

TEST(ClickSamples, RejectsFilesOfOtherKinds) {
  Clicks const clicks(small_layout());
  expect_error([&] { open_samples(clicks.text); }, {"is not a binary file of samples", "gpu_train convert"});
  expect_error([&] { open_samples(clicks.write("")); }, {"is not a binary file of samples"});
  expect_error([&] { open_samples(clicks.folder.path()); }, {"is a folder"});
  expect_error([&] { open_samples("/dev/null"); }, {"is not a regular file"});
  expect_error([&] { open_samples(clicks.folder.path() / "none"); }, {"none cannot be opened"});
}

TEST(ClickSamples, RejectsTruncatedFile) {
  Clicks const clicks(small_layout(), 1500);
  std::string const whole = clicks.bytes();
  for (std::size_t size = 0; size < whole.size(); size += size < 300 ? 1 : 997) {
    expect_error([&] { open_samples(clicks.write(whole.substr(0, size))); }, {"changed.bin"});
  }
  expect_error([&] { open_samples(clicks.write(whole + "x")); }, {"changed.bin has", "bytes, which does not fit"});
}

TEST(ClickSamples, RejectsAnyChangedByte) {
  Clicks const clicks(small_layout(), 1100);
  std::string const whole = clicks.bytes();
  FileHeader const header = header_of(whole);
  std::size_t const blocks = aligned(sizeof header + header.layout_bytes);
  BlockEntry first, second;
  std::memcpy(&first, whole.data() + header.index_begin, sizeof first);
  std::memcpy(&second, whole.data() + header.index_begin + sizeof first, sizeof second);
  for (std::size_t at = 0; at < whole.size(); at += at < blocks + 400 || at > header.index_begin ? 1 : 211) {
    bool const between = (at >= sizeof header + header.layout_bytes && at < blocks) ||
                         (at >= first.begin + first.bytes && at < second.begin) ||
                         (at >= second.begin + second.bytes && at < header.index_begin);
    if (between) continue;  // alignment padding, which is never read
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    expect_error([&] { use(clicks.write(changed)); }, {"changed.bin"});
  }
}

TEST(ClickSamples, ErrorNamesDamagedBlockAndOthersAreReadable) {
  Clicks const clicks(small_layout(), 3000);
  std::string changed = clicks.bytes();
  BlockEntry entry;
  std::memcpy(&entry, changed.data() + header_of(changed).index_begin + sizeof entry, sizeof entry);
  changed[entry.begin + 2000] = static_cast<char>(changed[entry.begin + 2000] ^ 1);
  Samples const samples = open_samples(clicks.write(changed));
  SampleBatch batch;
  samples.read(0, 1024, batch);
  samples.read(2048, 952, batch);
  for (int again = 0; again < 2; ++again) {
    expect_error([&] { samples.read(1000, 100, batch); }, {"damaged block, 1 of 3: its checksum is wrong"});
  }
}

// A file that changes while it is open. The size is that of the file, or of a part that ends in the middle of a block.
TEST(ClickSamples, RejectsFileThatChangesWhileItIsRead) {
  for (Layout const& layout : {criteo_layout(), small_layout()}) {
    Clicks const clicks(layout, 3000), others(layout, 4000);
    std::string const whole = clicks.bytes(), rubbish(whole.size(), '\xAB');
    for (std::string const& now : {std::string(), whole.substr(0, whole.size() / 2), rubbish,
                                   others.bytes().substr(0, whole.size()), others.bytes()}) {
      std::filesystem::path const path = clicks.write(whole);
      Samples const samples = open_samples(path);
      SampleBatch batch;
      samples.read(0, 1024, batch);
      samples.gather(std::vector<std::uint64_t>{5, 1, 1023}, batch);
      std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
      Samples const before = open_samples(path);  // the time of change is another one after the file is written again
      clicks.write(now);
      for (Samples const* one : {&samples, &before}) {
        expect_error([&] { one->read(0, one->size(), batch); }, {"changed.bin changed while it was read"});
        expect_error(
            [&] {
              one->gather(std::vector<std::uint64_t>{1030, 2900}, batch);
            },
            {"changed.bin changed while it was read"});
      }
      samples.gather(std::vector<std::uint64_t>{5, 1, 1023}, batch);  // of a block that was read before
      expect_sample(layout, batch, 1, oracle_sample(layout, clicks.lines[1]));
    }
  }
}

// The name is given to another file, as `gpu_train convert` does it: the file that was opened is still complete.
TEST(ClickSamples, ReadsTheFileThatWasOpenedIfAnotherGetsItsName) {
  Clicks const clicks(small_layout(), 3000), others(small_layout(), 1500);
  Samples const samples = open_samples(clicks.binary);
  std::filesystem::rename(others.binary, clicks.binary);
  SampleBatch batch;
  samples.read(0, samples.size(), batch);
  samples.gather(std::vector<std::uint64_t>{2999, 5}, batch);
  expect_sample(clicks.layout, batch, 0, oracle_sample(clicks.layout, clicks.lines[2999]));
  EXPECT_EQ(open_samples(clicks.binary).size(), 1500U);
}

// More blocks than are kept, in an order in which each is used again after others have taken its place.
TEST(ClickSamples, GatherReadsBlocksAgainThatAreNotKept) {
  Layout const layout = make_layout(1, 0);
  TemporaryFolder const folder;
  std::uint64_t const blocks = kBlocksKept + 40;
  std::string text;
  for (std::uint64_t i = 0; i < blocks * kSampleBlock; ++i) text += "1\t" + std::to_string(i) + "\n";
  convert_samples(folder.write("a.tsv", text), folder.path() / "a.bin", layout, {});
  Samples const samples = open_samples(folder.path() / "a.bin");
  kernels::Arena arena(4);
  arena.blocks(4, [&](std::size_t thread) {
    SampleBatch batch;
    for (std::uint64_t round = 0; round < 3; ++round) {
      std::vector<std::uint64_t> indices;
      for (std::uint64_t b = 0; b < blocks; ++b) indices.push_back(b * kSampleBlock + 7 * round + thread);
      samples.gather(indices, batch);
      for (std::uint64_t b = 0; b < blocks; ++b) ASSERT_EQ(batch.numbers[b], static_cast<float>(indices[b]));
    }
  });
}

TEST(ClickSamples, RejectsInvalidHeaders) {
  Clicks const clicks(small_layout(), 1100);
  std::string const whole = clicks.bytes();
  auto const rejected = [&](std::size_t at, auto value, char const* words) {
    std::string changed = whole;
    put(changed, at, value);
    correct_checksums(changed);
    expect_error([&] { use(clicks.write(changed)); }, {"changed.bin", words});
  };
  auto const big = ~std::uint64_t{0};
  rejected(offsetof(FileHeader, version), std::uint32_t{3}, "has version 3");
  rejected(offsetof(FileHeader, version), std::uint32_t{2}, "has version 2");  // which has names
  rejected(offsetof(FileHeader, block_samples), std::uint32_t{0}, "blocks of another size");
  rejected(offsetof(FileHeader, layout_bytes), std::uint32_t{0x00100000}, "shorter than its header and layout");
  rejected(offsetof(FileHeader, samples), std::uint64_t{0}, "which does not fit 0 samples");
  for (std::uint64_t samples : {std::uint64_t{100000}, big, big - 1023, big / 24, big / 24 * 1024}) {
    rejected(offsetof(FileHeader, samples), samples, "which does not fit");
  }
  rejected(offsetof(FileHeader, samples), std::uint64_t{1030}, "damaged block, 1 of 2");
  for (std::uint64_t begin : {std::uint64_t{1}, std::uint64_t{0}, big, big - 63}) {
    rejected(offsetof(FileHeader, index_begin), begin, "changed.bin");
  }
  std::size_t const index = header_of(whole).index_begin;
  for (std::uint64_t begin : {std::uint64_t{0}, std::uint64_t{64}, big - 63, std::uint64_t{index} + 64}) {
    rejected(index, begin, "outside of the file's data");
  }
  for (std::uint64_t bytes : {big, big - 4096, std::uint64_t{index}}) {
    rejected(index + 8, bytes, "outside of the file's data");
  }
  rejected(index + 8, std::uint64_t{0}, "too short for its columns");
  rejected(sizeof(FileHeader), 'x', "line 1 of the layout");
}

// Each entry of a column and each kind of content is made invalid in a block whose checksum is correct.
TEST(ClickSamples, RejectsInvalidBlocks) {
  Layout const layout = small_layout();
  SampleBatch batch{.samples = 2,
                    .labels = {0.5, 1},
                    .numbers = {1, 2, 3, 4, 5, 6},
                    .offsets = {0, 1, 3, 4, 5, 6, 7},
                    .values = {1, 2, 3, 4, 5, 6, 7},
                    .weights = {1, 1, 1, 1, 1, 1, 2}};
  BlockShape const shape(layout);
  ASSERT_EQ(shape.columns, 10U);  // label, 3 numbers, C1, offsets and ids of C2, offsets, ids and weights of C3
  std::vector<std::byte> const good = make_block(shape, batch);
  ASSERT_EQ(check_block(shape, good, 2), "");
  auto const entry = [&](std::size_t column) { return reinterpret_cast<ColumnEntry const*>(good.data())[column]; };
  auto const wrong = [&](std::size_t at, auto value) {
    std::vector<std::byte> changed = good;
    std::memcpy(changed.data() + at, &value, sizeof value);
    return check_block(shape, changed, 2);
  };
  for (std::size_t column = 0; column < shape.columns; ++column) {
    for (std::uint32_t begin : {0U, entry(column).begin + 8, entry(column).begin + 1, 0xFFFFFFF8U}) {
      EXPECT_NE(wrong(column * sizeof(ColumnEntry), begin).find("begins at"), std::string::npos);
    }
    for (std::uint32_t width : {0U, 2U, 16U, 0xFFFFFFFFU}) {
      EXPECT_NE(wrong(column * sizeof(ColumnEntry) + 4, width).find("elements of column"), std::string::npos);
    }
    EXPECT_NE(wrong(column * sizeof(ColumnEntry) + 4, std::uint32_t{8}),
              "");  // an invalid width, or the following columns are shifted
  }
  for (float label : {-0.5F, 1.5F, NAN, INFINITY}) EXPECT_EQ(wrong(entry(0).begin, label), "a label is not in [0, 1]");
  EXPECT_EQ(wrong(entry(2).begin, INFINITY), "a number is infinite");
  EXPECT_EQ(wrong(entry(2).begin, -INFINITY), "a number is infinite");
  EXPECT_EQ(wrong(entry(2).begin, NAN), "");
  EXPECT_EQ(wrong(entry(9).begin, NAN), "a weight is not finite");
  EXPECT_EQ(wrong(entry(5).begin, std::uint32_t{1}), "offsets of values decrease");      // the first is not 0
  EXPECT_EQ(wrong(entry(5).begin + 4, std::uint32_t{9}), "offsets of values decrease");  // larger than the next
  EXPECT_NE(wrong(entry(5).begin + 8, std::uint32_t{1000000}).find("ends after the end of the block"),
            std::string::npos);
  EXPECT_NE(wrong(entry(5).begin + 8, 0xFFFFFFFFU).find("more than 4194304 values"), std::string::npos);
  for (std::size_t size = 0; size < good.size(); size += 8) {
    EXPECT_NE(check_block(shape, std::span(good).first(size), 2), "");
  }
  std::vector<std::byte> longer = good;
  longer.resize(good.size() + 8);
  EXPECT_EQ(check_block(shape, longer, 2), "it is longer than its columns");

  batch.labels = {0, 1};
  std::vector<std::byte> whole_labels = make_block(shape, batch);
  ASSERT_EQ(check_block(shape, whole_labels, 2), "");
  whole_labels[reinterpret_cast<ColumnEntry const*>(whole_labels.data())->begin] = std::byte{2};
  EXPECT_EQ(check_block(shape, whole_labels, 2), "a label is not in [0, 1]");
}

}  // namespace
}  // namespace gpups::trainer::click_samples_test
