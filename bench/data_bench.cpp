// SPDX-License-Identifier: Apache-2.0
// Measures how fast click data is read: text (plain and compressed), and the binary file in comparison with read(2).
// Prints a line of JSON. Files must fit in the page cache: use a text much smaller than the machine's memory.
//
// usage: data_bench TEXT FOLDER [REPEATS]    TEXT: in Criteo's layout, as make_clicks writes it; FOLDER: for copies of
// it
#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trainer/input/input_file.hpp"
#include "trainer/input/line_reader.hpp"
#include "trainer/step/batch_sampler.hpp"
#include "trainer/tasks/click/sample_storage.hpp"
#include "trainer/tasks/click/samples.hpp"
#include "trainer/tasks/click/text/convert.hpp"
#include "trainer/tasks/click/text/text_chunks.hpp"
#include "trainer/tasks/click/text/text_rows.hpp"

namespace gpups::bench {
namespace {

using namespace gpups::trainer;
namespace fs = std::filesystem;
using Json = nlohmann::json;

volatile std::uint64_t used = 0;  // keeps the compiler from removing the work

double now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Returns the CPU seconds of this thread, which do not include other programs.
double seconds_of(std::function<void()> const& work) {
  double const begin = now(CLOCK_THREAD_CPUTIME_ID);
  work();
  return now(CLOCK_THREAD_CPUTIME_ID) - begin;
}

double megabytes(fs::path const& path) { return static_cast<double>(fs::file_size(path)) * 1e-6; }

// -- text --

// Returns MB/s of parsing alone, on one core, of text that is already in memory.
double parse_speed(fs::path const& text) {
  TextChunks chunks(text, 4);
  TextChunk chunk;
  SampleBatch samples;
  BadLines bad;
  double seconds = 0, bytes = 0;
  while (chunks.next(chunk)) {
    seconds += seconds_of([&] { parse_rows(criteo_layout(), chunk.text, "text", chunk.first_line, samples, bad); });
    bytes += static_cast<double>(chunk.text.size());
    used = used + samples.samples;
  }
  return bytes * 1e-6 / seconds;
}

// Reads text to samples in memory. Returns MB of plain text per second, and per CPU second (including reading).
Json read_speed(fs::path const& text, double text_megabytes, int threads) {
  double const cores = now(CLOCK_PROCESS_CPUTIME_ID), time = now(CLOCK_MONOTONIC);
  std::vector<std::string> notices;
  used = used + read_samples_text(text, criteo_layout(), {.threads = threads}, notices).size();
  return {{"MB_per_s", text_megabytes / (now(CLOCK_MONOTONIC) - time)},
          {"MB_per_core_s", text_megabytes / (now(CLOCK_PROCESS_CPUTIME_ID) - cores)}};
}

void compress(fs::path const& from, fs::path const& to) {
  InputFile file(from);
  std::string text(fs::file_size(from), '\0');
  text.resize(file.read(text.data(), text.size()));
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  std::FILE* const out = std::fopen(to.c_str(), "wb");
  std::fwrite(packed.data(), 1, packed.size(), out);
  std::fclose(out);
}

// -- the binary file --

void read_plainly(fs::path const& path) {
  InputFile file(path);
  std::vector<char> buffer(std::size_t{1} << 20);
  while (std::size_t const got = file.read(buffer.data(), buffer.size())) {
    used = used + static_cast<unsigned char>(buffer[got - 1]);
  }
}

// Opens the file again, and reads and checks every block.
void read_columns(fs::path const& path) {
  Samples const samples = open_samples(path);
  SampleStorage const& storage = samples.storage();
  std::uint64_t sum = 0;
  for (std::uint64_t b = 0; b < storage.blocks(); ++b) {
    SampleBlock const block = storage.read(b);
    for (std::size_t f = 0; f < storage.shape().categories.size(); ++f)
      sum += block.view.ids(f)[block.view.samples() - 1];
  }
  used = used + sum;
}

// Returns the best of some alternating runs of both.
Json binary_speed(fs::path const& path, int repeats) {
  double plain = 1e9, columns = 1e9;
  for (int i = 0; i < repeats; ++i) {
    plain = std::min(plain, seconds_of([&] { read_plainly(path); }));
    columns = std::min(columns, seconds_of([&] { read_columns(path); }));
  }
  return {{"MB", megabytes(path)},
          {"read_MB_per_s", megabytes(path) / plain},
          {"columns_MB_per_s", megabytes(path) / columns},
          {"columns_to_read", plain / columns}};
}

// Returns samples per second that are read into batches of 4096, in the order of the file and in the order of an epoch.
Json batch_speed(fs::path const& path) {
  constexpr std::size_t kBatch = 4096;
  Samples const samples = open_samples(path);
  SampleBatch batch;
  std::uint64_t const whole = samples.size() / kBatch * kBatch;
  auto const count = static_cast<double>(whole);
  double const in_order = seconds_of([&] {
    for (std::uint64_t first = 0; first < whole; first += kBatch) samples.read(first, kBatch, batch);
  });
  EpochOrder order({.samples = samples.size(), .seed = 1, .block_samples = kSampleBlock, .window_blocks = 64});
  std::vector<std::uint64_t> indices(kBatch);
  double shuffled = 0;
  for (std::uint64_t first = 0; first < whole; first += kBatch) {
    order.fill(0, first, indices);
    shuffled += seconds_of([&] { samples.gather(indices, batch); });
  }
  return {{"read_samples_per_s", count / in_order}, {"gather_samples_per_s", count / shuffled}};
}

void run(fs::path const& text, fs::path const& folder, int repeats) {
  fs::path const packed = folder / "text.zst", binary = folder / "samples.bin";
  double const size = megabytes(text);
  Json json = {{"text_MB", size}, {"parse_MB_per_s", parse_speed(text)}};
  for (int threads : {1, 2}) json[fmt::format("text_{}_threads", threads)] = read_speed(text, size, threads);
  compress(text, packed);
  for (int threads : {1, 2}) json[fmt::format("zstd_{}_threads", threads)] = read_speed(packed, size, threads);
  Converted const done = convert_samples(text, binary, criteo_layout(), {.threads = 1});
  json["convert_1_thread"] = {{"MB_per_s", size / done.seconds}};
  json["binary"] = binary_speed(binary, repeats);
  json["batches"] = batch_speed(binary);
  fmt::print("{}\n", json.dump());
}

}  // namespace
}  // namespace gpups::bench

int main(int count, char** arguments) {
  if (count < 3 || count > 4) {
    std::fputs("usage: data_bench TEXT FOLDER [REPEATS]\n", stderr);
    return 2;
  }
  try {
    gpups::bench::run(arguments[1], arguments[2], count == 4 ? std::max(1, std::atoi(arguments[3])) : 5);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "data_bench: error: %s\n", error.what());
    return 2;
  }
  return 0;
}
