// SPDX-License-Identifier: Apache-2.0
// A recommender on gpups, trained on an endless stream of clicks.
//
//   recommender train FOLDER [RANKS [STEPS]]   trains, and saves to FOLDER; continues from a checkpoint there
//   recommender requests STEP COUNT            prints synthetic requests, one in each line
//   recommender serve FOLDER                   answers requests from standard input, with the model in FOLDER
//   recommender export FOLDER OUT              writes rows and dense layer for other programs
//
// train.cpp has the training run, trainer.cpp a step of it.
#include <atomic>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "model.hpp"
#include "serve.hpp"
#include "tables.hpp"
#include "train.hpp"

using namespace gpups;

namespace {

using Words = std::vector<std::string>;

std::int64_t number_from(std::string const& word, std::int64_t least, std::int64_t most) {
  std::int64_t number = 0;
  auto const [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < least || number > most) {
    throw Error("'" + word + "' is not a number from " + std::to_string(least) + " to " + std::to_string(most) +
                ": correct it");
  }
  return number;
}

// Ranks are the processes of a launcher, for example mpirun; without a launcher, threads of this process.
int run_train(Words const& words) {
  std::filesystem::path const folder = words.at(1);
  int const threads = words.size() > 2 ? static_cast<int>(number_from(words[2], 1, 1024)) : 1;
  std::int64_t const steps = words.size() > 3 ? number_from(words[3], 1, 1'000'000'000) : 600;
  std::vector<Group> const group = Group::launch_info().ranks == 1
                                       ? Group::threads(threads)
                                       : std::vector{Group::join({.must_match = {{"steps", std::to_string(steps)}}})};
  std::atomic<bool> good = true;
  run_ranks(group, [&](Group const& rank) {
    if (!train(rank, folder, steps)) good = false;
  });
  return good ? 0 : 1;
}

int run_requests(Words const& words) {
  std::int64_t const step = number_from(words.at(1), 0, 1'000'000'000), count = number_from(words.at(2), 0, kBatch);
  for (std::int64_t i = 0; i < count; ++i) {
    std::printf("%s\n", to_text(make_request(step, static_cast<std::size_t>(i))).c_str());
  }
  return 0;
}

// A saved model, of any number of ranks, on one rank.
struct Saved {
  Store store{Group::alone(), {.seed = kSeed}};
  Stream stream = store.make_stream();
  Model model;

  explicit Saved(std::filesystem::path const& folder) {
    add_tables(store);
    model.restore(store.restore(folder));
  }
};

int run_serve(Words const& words) {
  Saved saved(words.at(1));
  int bad = 0;
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << wait_answer(saved.store, saved.stream, saved.model, parse_request(line)) << std::endl;
    } catch (Error const& error) {  // an error of this line; others can be answered
      std::cerr << error.what() << '\n';
      ++bad;
    }
  }
  return bad == 0 ? 0 : 1;
}

int run_export(Words const& words) {
  Saved saved(words.at(1));
  std::filesystem::path const out = words.at(2);
  saved.store.export_rows(out, ExportFormat::kNpy);
  std::uint64_t const shape[] = {Model::size()};  // all parameters, in the order of model.hpp
  export_array(out / "dense", ExportFormat::kNpy, shape, saved.model.values());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Words const words(argv + 1, argv + argc);
  try {
    if (words.size() >= 2 && words.size() <= 4 && words[0] == "train") return run_train(words);
    if (words.size() == 3 && words[0] == "requests") return run_requests(words);
    if (words.size() == 2 && words[0] == "serve") return run_serve(words);
    if (words.size() == 3 && words[0] == "export") return run_export(words);
    std::fprintf(stderr,
                 "usage: recommender train FOLDER [RANKS [STEPS]] | requests STEP COUNT | serve FOLDER | export FOLDER "
                 "OUT\n");
  } catch (std::exception const& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}
