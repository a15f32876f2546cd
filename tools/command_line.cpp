// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iostream>

#include "gpups/gpups.hpp"
#include "kernels/base/check.hpp"
#include "trainer/base/edit_distance.hpp"
#include "trainer/base/versions.hpp"
#include "trainer/run/saved_run.hpp"

namespace gpups::tools {
namespace {

using Text = std::optional<std::string>;

constexpr std::size_t kCountMost = 1000000;
constexpr char kFooter[] =
    "\nExamples:\n"
    "  gpu_train train examples/configs/wordnet.toml --ranks 2 --run runs/wordnet\n"
    "  gpu_train search examples/configs/fb15k-237-search.toml --run runs/search\n"
    "  gpu_train bench examples/configs/ratings.toml --set data.folder=ml-100k\n"
    "  gpu_train eval runs/wordnet --split test\n"
    "  gpu_train nearest runs/wordnet dog.n.01\n"
    "  gpu_train recommend runs/places 4711\n"
    "  gpu_train predict runs/clicks today.tsv --out probabilities\n"
    "  gpu_train export runs/wordnet vectors --format npy\n"
    "  gpu_train report runs/wordnet\n"
    "  gpu_train doctor examples/configs/wordnet.toml\n"
    "  gpu_train convert clicks.tsv.zst clicks.bin\n"
    "eval, nearest, recommend, and export of names read the training data again: do not move its files.\n"
    "Exit status: 0 when done, or stopped by a signal with a checkpoint saved; 2 for errors that you can correct\n"
    "(command, configuration, data, folders, devices); 1 if output cannot be written, and for errors of the program.\n";

std::string version_text() {
  auto const v = trainer::versions();
  auto const text = [&v](char const* name) { return v.at(name).get<std::string>(); };
  std::string const cuda = text("cuda_architectures");
  return fmt::format("gpu_train {}\nhost code for: {} ({}; in use: {})\nCUDA: {}\nCUDA devices: {}\ncompiler: {}",
                     text("gpups"), text("host_arch"),
                     fmt::join(v.at("host_levels").get<std::vector<std::string>>(), ", "), text("host_level"),
                     cuda.empty() ? "no" : "yes, for " + cuda, cuda_device_count(), text("compiler"));
}

// Options that are settings of the configuration.
struct GivenSettings {
  std::vector<std::string> set;
  Text device, threads, ranks, run;
  std::string trace_steps;

  void add_to(CLI::App& command) {
    command
        .add_option("--set", set,
                    "Overrides a setting of the configuration: --set train.epochs=5 --set train.batch_size=512")
        ->type_name("SECTION.KEY=VALUE")
        ->take_all()
        ->allow_extra_args(false);
    command.add_option("--device", device, "auto, host, cuda or cuda:0; default: run.device, else auto")
        ->type_name("DEVICE");
    command.add_option("--threads", threads, "Cores of a rank on the host; default: run.threads, else an even share")
        ->type_name("N");
    std::string const name = command.get_name();
    bool const trains = name == "train" || name == "search" || name == "bench" || name == "doctor";
    command
        .add_option("--ranks", ranks,
                    fmt::format("Ranks, as threads of this program; default: {}1", trains ? "run.ranks, else " : ""))
        ->type_name("N");
  }
  std::vector<trainer::SettingOverride> overrides() const {
    std::vector<trainer::SettingOverride> all(set.begin(), set.end());
    auto const add = [&all](char const* option, Text const& value) {
      if (value) all.emplace_back(fmt::format("run.{}={}", option, *value), fmt::format("--{} {}", option, *value));
    };
    add("device", device);
    add("threads", threads);
    add("ranks", ranks);
    if (run) all.emplace_back("run.folder=" + *run, "--run " + *run);
    if (!trace_steps.empty()) {
      all.emplace_back("placement.trace_steps=" + trace_steps, "--trace-placement=" + trace_steps);
    }
    return all;
  }
};

// Throws Error for the first option or argument that the command does not have, if any.
void reject_unknown(CLI::App const& app) {
  for (CLI::App const* command : app.get_subcommands()) {
    std::vector<std::string> known;
    for (CLI::Option const* option : command->get_options()) {
      for (std::string const& name : option->get_lnames()) known.push_back("--" + name);
    }
    for (std::string const& word : command->remaining()) {
      if (word.size() < 2 || word[0] != '-') continue;
      std::string const option = word.substr(0, word.find('='));
      auto const close = trainer::close_word(option, known);
      throw Error(fmt::format("{} has no option {} (it would have no effect): {}", command->get_name(), option,
                              close ? fmt::format("did you mean {}?", *close)
                                    : fmt::format("see gpu_train {} --help", command->get_name())));
    }
    for (std::string const& word : command->remaining()) {
      bool const is_setting = word.find('=') != std::string::npos;
      throw Error(fmt::format("'{}' is one argument too many ({} does not take it): {}", word, command->get_name(),
                              is_setting ? "write --set before each setting"
                                         : fmt::format("see gpu_train {} --help", command->get_name())));
    }
  }
}

// Throws Error with the reason why parsing failed.
[[noreturn]] void reject(CLI::App const& app, CLI::ParseError const& error) {
  reject_unknown(app);
  auto const chosen = app.get_subcommands();
  std::string const where = chosen.empty() ? "gpu_train" : "gpu_train " + chosen.front()->get_name();
  std::string const what = error.what(), first_word = what.substr(0, what.find_first_of(": "));
  if (error.get_name() == "RequiredError" && !chosen.empty()) {
    throw Error(fmt::format("{} is missing (the command needs it): see {} --help", first_word, where));
  }
  CLI::Option const* const option = chosen.empty() ? nullptr : chosen.front()->get_option_no_throw(first_word);
  GPUPS_REQUIRE(option == nullptr || option->count() <= 1, "{} is given {} times (it has one value): give it once",
                first_word, option->count());
  if (error.get_name() == "ArgumentMismatch") {
    throw Error(fmt::format("{} has no value (it needs one): see {} --help", first_word, where));
  }
  throw Error(
      fmt::format("the command cannot be understood ({}): see {} --help", what.substr(0, what.find('\n')), where));
}

// Throws Error unless the first argument is a command, or asks for help or the version.
void require_command(int argc, char** argv, std::vector<std::string> const& commands) {
  std::string const first = argc > 1 ? argv[1] : "";
  if (first == "-h" || first == "--help" || first == "--version") return;
  GPUPS_REQUIRE(!first.empty() && first[0] != '-', "no command was given ({}): write one of {} first, or --help",
                first.empty() ? "there is nothing to do" : first + " is an option", fmt::join(commands, ", "));
  if (std::find(commands.begin(), commands.end(), first) == commands.end()) {
    auto const close = trainer::close_word(first, commands);
    throw Error(fmt::format("there is no command '{}' (the commands are {}): {}", first, fmt::join(commands, ", "),
                            close ? fmt::format("did you mean '{}'?", *close) : "see gpu_train --help"));
  }
}

std::size_t checked_count(std::string const& text) {
  std::size_t count = 0;
  char const* const end = text.data() + text.size();
  auto const [stop, error] = std::from_chars(text.data(), end, count);
  GPUPS_REQUIRE(error == std::errc() && stop == end && count >= 1 && count <= kCountMost,
                "--count is '{}' (it is a number of lines): use a whole number from 1 to {}", text, kCountMost);
  return count;
}

// Throws Error for a setting that has no effect on a command that loads the model of a run.
void require_effect_on(CommandLine const& line) {
  bool const loads_only =
      line.command == "nearest" || line.command == "recommend" || line.command == "predict" || line.command == "export";
  if (!loads_only && line.command != "eval") return;
  for (trainer::SettingOverride const& given : line.overrides) {
    std::string const key = given.setting.substr(0, given.setting.find('='));
    auto const is_one_of = [&](std::initializer_list<std::string_view> begins) {
      return std::any_of(begins.begin(), begins.end(), [&](auto begin) { return key.starts_with(begin); });
    };
    bool const trains = key != "train.keep_best" && is_one_of({"train.", "run.report_every", "run.folder"});
    bool const evaluates = is_one_of({"eval.", "run.ranks", "cluster.", "placement."});
    GPUPS_REQUIRE(!trains && !(loads_only && evaluates), "{} has no effect on {} (it {}): leave it out", given.typed,
                  line.command, loads_only ? "loads the model of a run in one process" : "does not train");
  }
}

}  // namespace

std::optional<CommandLine> parse_command_line(int argc, char** argv) {
  CLI::App app(
      "Trains embeddings for recommendations, click-through rates, knowledge graphs and words, on one or many GPUs, or "
      "on "
      "the host.",
      "gpu_train");
  app.footer(kFooter);
  app.set_version_flag("--version", version_text);
  app.require_subcommand(1);
  CommandLine line;
  GivenSettings settings;
  ConvertOptions conversion;
  std::string count = fmt::to_string(line.count);

  CLI::App* const train = app.add_subcommand("train", "Train with a configuration");
  positional(*train, "CONFIG", line.config, "Configuration, in TOML")->required();
  train->add_option("--run", settings.run, "Folder for results and checkpoints; default: a new folder in runs/")
      ->type_name("FOLDER");
  train->add_flag("--resume", line.resume, "Continue from the folder's checkpoint, if there is one");
  train->add_flag("--trace-placement{100}", settings.trace_steps,
                  "Record the keys of the first 100 steps, or with =STEPS of others, for the program replay");
  CLI::App* const search = app.add_subcommand("search", "Search the best values of settings: see docs/search.md");
  positional(*search, "CONFIG", line.config, "Configuration with a section [search]")->required();
  search->add_option("--run", settings.run, "Folder for the trials; default: a new folder in runs/")
      ->type_name("FOLDER");
  search->add_flag("--resume", line.resume, "Continue the search in the folder, if there is one");
  CLI::App* const bench = app.add_subcommand("bench", "Train with several seeds, and compare with published results");
  positional(*bench, "CONFIG", line.config, "Configuration with a section [bench]: see docs/bench.md")->required();
  bench->add_option("--run", settings.run, "Folder for the runs, of which finished ones are kept; default: a new one")
      ->type_name("FOLDER");
  CLI::App* const eval = app.add_subcommand("eval", "Print the metrics of a run's checkpoint as JSON");
  positional(*eval, "RUN_FOLDER", line.run_folder, "Folder of a run")->required();
  eval->add_option("--split", line.split, "Part of the data; default: test")->type_name("valid|test");
  CLI::App* const nearest = app.add_subcommand("nearest", "Print the nearest neighbours of entities");
  positional(*nearest, "RUN_FOLDER", line.run_folder, "Folder of a run")->required();
  positional(*nearest, "NAME", line.names, "Names of entities, words, nodes or items")->required();
  CLI::App* const recommend = app.add_subcommand("recommend", "Print the items that fit users best");
  positional(*recommend, "RUN_FOLDER", line.run_folder, "Folder of a run on interactions")->required();
  positional(*recommend, "USER", line.names, "Users");
  recommend->add_option("--users", line.file, "File with a user in each line, instead of USER")->type_name("FILE");
  for (CLI::App* command : {nearest, recommend}) {
    command->add_option("--count", count, fmt::format("Lines for each name, from 1 to {}; default: 10", kCountMost))
        ->type_name("N");
  }
  CLI::App* const predict =
      app.add_subcommand("predict", "Print the probability of a click, or the rating, for each line of a file");
  positional(*predict, "RUN_FOLDER", line.run_folder, "Folder of a run on click data or on ratings")->required();
  positional(*predict, "FILE", line.file,
             "Samples with the columns of the run, text or binary; or ids of rows and columns")
      ->required();
  predict->add_option("--out", line.out, "File to write to; default: standard output")->type_name("FILE");
  CLI::App* const export_ = app.add_subcommand("export", "Write a run's rows and layers to files for other programs");
  positional(*export_, "RUN_FOLDER", line.run_folder, "Folder of a run")->required();
  positional(*export_, "FOLDER", line.out, "New folder to write to")->required();
  export_
      ->add_option("--format", line.format,
                   "NumPy files, files of numbers that a JSON file describes, or, of words, nodes and items, a file of "
                   "word2vec; default: npy")
      ->type_name("npy|flat|word2vec|word2vec-binary");
  CLI::App* const report = app.add_subcommand("report", "Write plots of a run to an HTML file, and print its path");
  positional(*report, "RUN_FOLDER", line.run_folder, "Folder of a run, which may be in progress")->required();
  positional(*report, "FILE", line.out, "File to write, or - for standard output; default: report.html in the folder");
  CLI::App* const doctor = app.add_subcommand(
      "doctor", "Check machine and configuration before a run, and print problems and how to solve them");
  positional(*doctor, "CONFIG", line.config, "Configuration of the run; default: check the machine only");
  doctor->add_option("--run", settings.run, "Folder of the run")->type_name("FOLDER");
  for (CLI::App* command : {train, search, bench, eval, nearest, recommend, predict, export_, doctor})
    settings.add_to(*command);
  conversion.add_to(*app.add_subcommand("convert", "Convert text of click data to the binary file that training maps"));

  require_command(
      argc, argv,
      {"train", "search", "bench", "eval", "nearest", "recommend", "predict", "export", "report", "convert", "doctor"});
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& error) {
    if (error.get_exit_code() != 0) reject(app, error);
    app.exit(error);
    if (!std::cout.flush())
      throw std::runtime_error("standard output cannot be written: free space on the disk, or redirect the output");
    return std::nullopt;
  }
  line.command = app.get_subcommands().front()->get_name();
  line.count = checked_count(count);
  GPUPS_REQUIRE(line.command != "recommend" || line.names.empty() != line.file.empty(),
                "recommend needs users (their names, or --users FILE, and not both): see gpu_train recommend --help");
  if (line.command == "convert") line.conversion = conversion.checked();
  line.overrides = settings.overrides();
  require_effect_on(line);
  GPUPS_REQUIRE(line.split == "valid" || line.split == "test",
                "--split is '{}' (metrics are computed for valid and test only): use one of them", line.split);
  trainer::model_format(line.format);  // throws Error if there is no such format
  GPUPS_REQUIRE(line.command != "doctor" || !line.config.empty() || line.overrides.empty(),
                "{} has no effect without a configuration (only the machine is checked): give the configuration too",
                line.overrides.front().typed);
  return line;
}

}  // namespace gpups::tools
