// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without a fuzzer: on every file of a corpus, on changed copies of them, and on random bytes.
//
// usage: <target> RUNS PATH...
//   RUNS: the number of changed and random inputs
//   PATH: a corpus (an archive NAME.zip, see corpus.py), or a file
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes read(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns a little-endian number in an archive.
std::size_t number_at(Bytes const& archive, std::size_t at, std::size_t bytes) {
  if (at + bytes > archive.size()) throw std::runtime_error("the archive is truncated: copy it again");
  std::size_t number = 0;
  for (std::size_t i = bytes; i-- > 0;) number = number << 8 | archive[at + i];
  return number;
}

// Returns the files of a zip archive without compression. Each file is a header of 30 bytes, its name, extra data and
// its contents; the directory of the archive is at the end.
std::vector<Bytes> unpack(Bytes const& archive) {
  constexpr std::size_t kFile = 0x04034b50, kDirectory = 0x02014b50;  // first bytes of their headers
  std::vector<Bytes> files;
  std::size_t at = 0;
  while (number_at(archive, at, 4) == kFile) {
    std::size_t const flags = number_at(archive, at + 6, 2), method = number_at(archive, at + 8, 2);
    if (flags != 0 || method != 0) throw std::runtime_error("the archive is compressed: pack it with corpus.py");
    std::size_t const begin = at + 30 + number_at(archive, at + 26, 2) + number_at(archive, at + 28, 2);
    std::size_t const end = begin + number_at(archive, at + 18, 4);
    if (end > archive.size()) throw std::runtime_error("the archive is truncated: copy it again");
    files.emplace_back(archive.begin() + static_cast<std::ptrdiff_t>(begin),
                       archive.begin() + static_cast<std::ptrdiff_t>(end));
    at = end;
  }
  if (number_at(archive, at, 4) != kDirectory || files.empty())
    throw std::runtime_error("the file is no corpus: pack one with corpus.py");
  return files;
}

std::vector<Bytes> read_all(std::vector<std::filesystem::path> const& paths) {
  std::vector<Bytes> inputs;
  for (auto const& path : paths) {
    Bytes const bytes = read(path);
    if (path.extension() != ".zip") {
      inputs.push_back(bytes);
      continue;
    }
    for (auto& file : unpack(bytes)) inputs.push_back(std::move(file));
  }
  return inputs;
}

Bytes random_bytes(std::mt19937_64& random) {
  Bytes bytes(random() % 200);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

// Changes, removes or inserts some bytes, or replaces the end by that of another input.
Bytes changed(Bytes input, std::vector<Bytes> const& others, std::mt19937_64& random) {
  for (auto changes = 1 + random() % 4; changes > 0 && !input.empty(); --changes) {
    auto const at = input.begin() + static_cast<std::ptrdiff_t>(random() % input.size());
    switch (random() % 4) {
      case 0:
        *at = static_cast<std::uint8_t>(random());
        break;
      case 1:
        input.erase(at);
        break;
      case 2:
        input.insert(at, static_cast<std::uint8_t>(random()));
        break;
      default: {
        auto const& other = others[random() % others.size()];
        input.erase(at, input.end());
        auto const from = other.empty() ? 0 : random() % other.size();
        input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
      }
    }
  }
  return input;
}

Bytes now;  // for the handler of a crash

void keep_input() {
  std::ofstream("crash-input", std::ios::binary)
      .write(reinterpret_cast<char const*>(now.data()), static_cast<std::streamsize>(now.size()));
  std::fprintf(stderr, "the input is in ./crash-input (%zu bytes)\n", now.size());
}

void run(Bytes const& input) {
  now = input;
  LLVMFuzzerTestOneInput(now.data(), now.size());
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  auto const runs = std::stoul(arguments[1]);
  auto const inputs = read_all({arguments + 2, arguments + count});
  std::signal(SIGABRT, [](int) { keep_input(); });  // assertions and uncaught exceptions
  for (auto const& input : inputs) run(input);
  std::mt19937_64 random(1);
  for (unsigned long i = 0; i < runs; ++i) {
    bool const fresh = inputs.empty() || i % 4 == 0;
    run(fresh ? random_bytes(random) : changed(inputs[random() % inputs.size()], inputs, random));
  }
  std::printf("%zu inputs of the corpus and %lu others passed\n", inputs.size(), runs);
  return 0;
}
