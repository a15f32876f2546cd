// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without a fuzzer: on every file of a corpus, on changed copies of them, and on random bytes.
//
// usage: <target> RUNS PATH...    RUNS: how many changed and random inputs; a PATH is a file or a folder of files
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes read(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Bytes> read_all(std::vector<std::filesystem::path> const& paths) {
  std::vector<std::filesystem::path> files;
  for (auto const& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (auto const& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Bytes> inputs;
  for (auto const& file : files) inputs.push_back(read(file));
  return inputs;
}

Bytes random_bytes(std::mt19937_64& random) {
  Bytes bytes(random() % 200);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

// Some bytes changed, cut out or put in; or the end of another input after the beginning of this one.
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
  std::signal(SIGABRT, [](int) { keep_input(); });  // assertions, and exceptions that nobody expected
  auto const runs = std::stoul(arguments[1]);
  auto const inputs = read_all({arguments + 2, arguments + count});
  for (auto const& input : inputs) run(input);
  std::mt19937_64 random(1);
  for (unsigned long i = 0; i < runs; ++i) {
    bool const fresh = inputs.empty() || i % 4 == 0;
    run(fresh ? random_bytes(random) : changed(inputs[random() % inputs.size()], inputs, random));
  }
  std::printf("%zu inputs of the corpus and %lu others went well\n", inputs.size(), runs);
  return 0;
}
