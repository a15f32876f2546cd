// SPDX-License-Identifier: Apache-2.0
// Configurations are checked strictly: an invalid setting is rejected with an error that names its line and a
// correction.
#include "trainer/config/config.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <set>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trainer/config/fields.hpp"
#include "trainer/config/foreign_keys.hpp"
#include "trainer/config/task_kind.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer::config_test {
namespace {

using test::expect_error;

Config parse(std::string const& text, std::vector<SettingOverride> const& overrides = {}) {
  return parse_config(text, "run.toml", "/data", overrides);
}

// The keys of all kinds of tasks; several kinds may have one.
std::vector<Field> all_fields() {
  std::vector<Field> all;
  for (TaskKind const* const kind : task_kinds()) {
    for (Field const& field : fields_of(*kind, task_kinds())) {
      if (std::none_of(all.begin(), all.end(), [&](Field const& f) { return f.name() == field.name(); })) {
        all.push_back(field);
      }
    }
  }
  return all;
}

// The field with this name of the configuration's kind, if it is used, or null.
std::optional<Field> used_field(Config const& config, std::string const& name) {
  for (Field const& field : fields_of(*config.task.kind, config.task.kinds)) {
    if (field.name() == name && field.is_used(config)) return field;
  }
  return std::nullopt;
}

TEST(Config, ReadsEverySection) {
  Config const c = parse(
      "[data]\nfolder = 'kg'\nbad_share_max = 0.5\n[model]\nname = 'distmult'\ndim = 32\n[optimizer]\n"
      "learning_rate = 1\n[train]\nsteps = 70\nprefetch_thread = false\n[eval]\nhits = [1, 5]\n[run]\nranks = 3\n");
  EXPECT_EQ(c.data.folder, "/data/kg");
  EXPECT_EQ(c.data.bad_share_max, 0.5);
  EXPECT_EQ(c.model.name, "distmult");
  EXPECT_EQ(c.model.dim, 32);
  EXPECT_EQ(c.optimizer.learning_rate, 1);
  EXPECT_EQ(c.train.steps, 70);
  EXPECT_FALSE(c.train.prefetch_thread);
  EXPECT_EQ(c.eval.hits, (std::vector<std::int64_t>{1, 5}));
  EXPECT_EQ(c.run.ranks, 3);
}

TEST(Config, UnknownKeyErrorSuggestsSimilarKey) {
  expect_error([] { parse("[train]\nseed = 1\nbatchsize = 10\n"); },
               {"run.toml:3", "'batchsize'", "did you mean 'batch_size'?"});
}

TEST(Config, UnknownSectionErrorSuggestsSimilarSection) {
  expect_error([] { parse("\n[modell]\ndim = 10\n"); }, {"run.toml:2", "[modell]", "did you mean [model]?"});
  expect_error([] { parse("batch = 10\n"); }, {"run.toml:1", "'batch' is outside of a section"});
}

TEST(Config, RejectsValuesOfWrongType) {
  expect_error([] { parse("[model]\ndim = 'x'\n"); }, {"run.toml:2", "model.dim is a string", "write an integer"});
  expect_error([] { parse("[model]\ndim = 1.5\n"); }, {"model.dim", "write an integer"});
  expect_error([] { parse("[model]\nname = 3\n"); }, {"model.name is an integer", "write a string"});
  expect_error([] { parse("[optimizer]\nlearning_rate = true\n"); }, {"is true or false", "write a number"});
  expect_error([] { parse("[train]\nprefetch_thread = 1\n"); }, {"write true or false"});
  expect_error([] { parse("[eval]\nhits = 10\n"); }, {"write an array of integers"});
  expect_error([] { parse("[eval]\nhits = [1, 'x']\n"); },
               {"eval.hits contains a string", "write an array of integers"});
}

TEST(Config, RejectsValuesOutOfRangeOrUnknown) {
  expect_error([] { parse("[model]\ndim = 0\n"); }, {"run.toml:2", "model.dim is 0", "from 1 to 65536"});
  expect_error([] { parse("[data]\nbad_share_max = 1.5\n"); }, {"data.bad_share_max is 1.5", "from 0 to 1"});
  expect_error([] { parse("[optimizer]\nlearning_rate = nan\n"); }, {"optimizer.learning_rate", "out of range"});
  expect_error([] { parse("[train]\nbatch_size = 0\n"); }, {"run.toml:2: train.batch_size is 0"});
  expect_error(
      [] {
        parse("", {{"train.batch_size=0", "--set train.batch_size=0"}});
      },
      {"--set train.batch_size=0: train.batch_size is 0"});
  expect_error([] { parse("[eval]\nhits = [0]\n"); }, {"eval.hits is 0"});
  expect_error([] { parse("[eval]\nhits = []\n"); }, {"eval.hits is empty"});
  expect_error([] { parse("[eval]\nhits = [3, 1, 3]\n"); }, {"run.toml:2: eval.hits contains 3 twice"});
  expect_error([] { parse("[model]\nname = 'transe'\nnorm = 3\n"); }, {"model.norm is 3", "from 1 to 2"});
  expect_error([] { parse("[optimizer]\nkind = 'adagrat'\n"); }, {"\"adagrat\"", "did you mean \"adagrad\"?"});
}

TEST(Config, RejectsSettingsWithoutEffect) {
  expect_error([] { parse("[train]\nsteps = 5\nepochs = 2\n"); }, {"run.toml:3", "train.epochs", "train.steps is set"});
  expect_error([] { parse("[data]\nvalid_share = 0.1\n"); }, {"data.valid_share", "set data.valid and data.test"});
  expect_error([] { parse("[data]\nreader = 'wordnet'\ntrain = 'a'\n"); }, {"data.train", "wordnet"});
  expect_error([] { parse("[optimizer]\nkind = 'sgd'\nepsilon = 1e-3\n"); }, {"optimizer.epsilon", "sgd"});
  expect_error([] { parse("[optimizer]\nmin_factor = 0.5\n"); }, {"optimizer.min_factor", "constant"});
  expect_error([] { parse("[model]\nmargin = 3\n"); }, {"model.margin", "transe"});
  expect_error([] { parse("[model]\nname = 'rotate'\nloss = 'softmax'\nmargin = 3\n"); },
               {"model.margin", "does not depend on it"});
  expect_error([] { parse("[model]\nname = 'rotate'\nnorm = 2\n"); }, {"model.norm", "transe"});
  expect_error([] { parse("[model]\ntemperature = 2\n"); }, {"model.temperature", "self_adversarial"});
  expect_error([] { parse("[eval]\nsample = 'first'\n"); }, {"eval.sample", "all triples are ranked"});
  expect_error([] { parse("[train]\nvalidate_every = 0\npatience = 1\n"); }, {"train.patience", "validate_every is 0"});
}

TEST(Config, FolderOfDataDependsOnTheLastReader) {
  EXPECT_EQ(parse("[data]\nreader = 'wordnet'\n").data.folder, "/usr/share/wordnet");
  EXPECT_EQ(parse("[data]\nreader = 'wordnet'\n", {"data.reader=triples"}).data.folder, "/data");
  EXPECT_EQ(parse("", {"data.reader=wordnet"}).data.folder, "/usr/share/wordnet");
  EXPECT_EQ(parse("", {"data.reader=wordnet", "data.folder=/else"}).data.folder, "/else");
}

TEST(Config, DistanceModelsScaleInitialValuesByMargin) {
  EXPECT_EQ(parse("").model.init, "normal");
  auto const transe = parse("[model]\nname = 'transe'\ndim = 50\nmargin = 8\n").model;
  EXPECT_EQ(transe.init, "uniform");
  EXPECT_EQ(transe.init_scale, 0.2);
  EXPECT_EQ(parse("[model]\nname = 'transe'\ndim = 100\nnorm = 2\nmargin = 8\n").model.init_scale, 1);
  EXPECT_EQ(parse("[model]\nname = 'rotate'\ndim = 100\nmargin = 8\n").model.init_scale, 0.2);
  EXPECT_EQ(parse("[model]\nname = 'rotate'\nloss = 'softmax'\n").model.init, "normal");
  // Later settings change defaults, but not given values.
  EXPECT_EQ(parse("[model]\nname = 'rotate'\n", {"model.dim=220"}).model.init_scale, 0.1);
  auto const given = parse("[model]\nname = 'rotate'\ninit = 'normal'\ninit_scale = 0.3\n").model;
  EXPECT_EQ(given.init, "normal");
  EXPECT_EQ(given.init_scale, 0.3);
}

TEST(Config, TomlErrorNamesTheLine) {
  expect_error([] { parse("[model]\ndim = \n"); }, {"run.toml:2", "not TOML"});
  expect_error([] { parse("[model]\ndim = 1\ndim = 2\n"); }, {"run.toml:3"});
}

TEST(Config, OverridesReplaceFileSettings) {
  Config const c =
      parse("[train]\nepochs = 3\n[model]\ndim = 8\n",
            {"model.dim=16", "train.steps=9", "model.name=distmult", "eval.hits=[2]", "run.device=\"host\""});
  EXPECT_EQ(c.model.dim, 16);
  EXPECT_EQ(c.train.steps, 9);
  EXPECT_EQ(c.model.name, "distmult");
  EXPECT_EQ(c.eval.hits, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(c.run.device, "host");
}

TEST(Config, OverridesMayContainSpaces) {
  EXPECT_EQ(parse("", {" model . dim = 8 "}).model.dim, 8);
  EXPECT_EQ(parse("", {"model.name = distmult"}).model.name, "distmult");
  EXPECT_EQ(parse("", {"run.device = ' x'"}).run.device, " x");
}

TEST(Config, HitsAreSorted) {
  EXPECT_EQ(parse("[eval]\nhits = [10, 1, 3]\n").eval.hits, (std::vector<std::int64_t>{1, 3, 10}));
}

TEST(Config, RejectsInvalidOverrides) {
  expect_error([] { parse("", {"model.dim"}); }, {"--set model.dim", "section.key=value"});
  expect_error([] { parse("", {"dim=3"}); }, {"section.key=value"});
  expect_error([] { parse("", {"model.dimm=3"}); }, {"--set", "did you mean 'dim'?"});
  expect_error([] { parse("", {"modle.dim=3"}); }, {"did you mean [model]?"});
  expect_error([] { parse("", {"model.KvsAll=true"}); }, {"did you mean model.sampling = \"kvsall\""});
  expect_error([] { parse("", {"model.sampling=1vsAll"}); }, {"did you mean \"all\"?"});
  expect_error([] { parse("", {"model.loss=bce"}); }, {"did you mean \"logistic\"?"});
  expect_error([] { parse("", {"model.loss=sotfmax"}); }, {"did you mean \"softmax\"?"});
  expect_error([] { parse("", {"train.embedding_dim=3"}); }, {"'embedding_dim' in [train]", "did you mean model.dim?"});
  for (auto const& [there, here] : kForeignKeys) {
    std::string_view const name = here.substr(0, here.find(' '));
    std::vector<Field> const all = all_fields();
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [name](Field const& f) { return f.name() == name; })) << there;
  }
  expect_error([] { parse("", {"model.dim=three"}); },
               {"--set model.dim=three: model.dim is 'three' (the key needs an integer): write an integer"});
  expect_error([] { parse("", {"model.dim="}); }, {"model.dim is empty", "an integer"});
  expect_error([] { parse("", {"model.dim=3\n[train]"}); }, {"--set model.dim=3: ", "line break"});
  expect_error([] { parse("", {"model.name=a\nb"}); }, {"line break"});
  expect_error([] { parse("", {{"run.ranks=two", "--ranks two"}}); }, {"--ranks two: run.ranks is 'two'"});
  expect_error([] { parse("", {"run.folder=" + std::string(5000, 'x')}); },
               {"run.folder", "File name too long", "xx...: "});
  expect_error([] { parse("[train]\nsteps = 4\n", {"train.epochs=3"}); }, {"--set", "train.steps is set"});
}

TEST(Config, RelativePathsStartAtTheirFile) {
  test::TemporaryFolder const folder;
  auto const file = folder.write("sub/run.toml", "[run]\nfolder = '../out'\n");
  Config const c = load_config(file, {});
  EXPECT_EQ(c.run.folder, (folder.path() / "out").string());
  EXPECT_EQ(c.data.folder, (folder.path() / "sub").string());
  EXPECT_EQ(load_config(file, {"run.folder=there"}).run.folder, (std::filesystem::current_path() / "there").string());
}

TEST(Config, ErrorNamesUnreadableFile) {
  expect_error([] { load_config("/no/such.toml"); }, {"/no/such.toml cannot be read", "No such file"});
  expect_error([] { load_config("/tmp"); }, {"/tmp is a folder"});
  test::TemporaryFolder const folder;
  expect_error([&] { load_config(folder.write("empty.toml", "")); }, {"empty.toml is empty"});
  expect_error([&] { load_config(folder.write("blank.toml", " \n\n")); }, {"blank.toml is empty"});
  expect_error([] { load_config(std::string(5000, 'x')); }, {"cannot be read", "File name too long"});
}

TEST(Config, ResolvedConfigurationRoundTrips) {
  for (std::string const text :
       {"", "[data]\nreader = 'ratings'\ntrain = 'x'\n[train]\nreuse_batches = true\n",
        "[data]\nreader = 'wordnet'\n[optimizer]\nschedule = 'cosine'\nlearning_rate = 0.1234567890123\n",
        "[train]\nsteps = 12\n[optimizer]\nkind = 'sgd'\n[run]\nfolder = 'a \"b\" \\c'\n[eval]\nhits = [1, 3]\n"}) {
    Config const once = parse(text);
    Config const twice = parse_config(resolved(once), "again.toml", "/elsewhere");
    EXPECT_EQ(resolved(once), resolved(twice));
    EXPECT_TRUE(resume_differences(once, twice).empty());
  }
}

// Returns another valid value for a field.
std::string other_value(Field const& f, Config& config) {
  FieldPointer const pointer = f.pointer(config);
  if (auto const* s = std::get_if<std::string*>(&pointer)) {
    if (f.choices.empty()) return "'other'";
    return "'" + (**s == f.choices[0] ? f.choices[1] : f.choices[0]) + "'";
  }
  if (auto const* i = std::get_if<std::int64_t*>(&pointer)) return std::to_string(**i + 1);
  if (auto const* d = std::get_if<double*>(&pointer)) return fmt::format("{}", **d == 0.25 ? 0.5 : 0.25);
  if (auto const* b = std::get_if<bool*>(&pointer)) return **b ? "false" : "true";
  if (std::holds_alternative<std::vector<std::string>*>(pointer)) return "['C2,C7']";
  return "[7]";
}

// Each field has an effect in at least one of these configurations.
std::vector<std::string> const& configurations() {
  static std::vector<std::string> const all{
      "",
      "[data]\nreader = 'wordnet'\n",
      "[optimizer]\nschedule = 'linear'\n",
      "[optimizer]\nkind = 'adam'\n",
      "[optimizer]\nkind = 'ftrl'\n",
      "[eval]\nsamples_max = 7\n",
      "[model]\nname = 'transe'\n",
      "[model]\nloss = 'self_adversarial'\n",
      "[model]\nsampling = 'all'\n",
      "[model]\nsampling = 'shared'\n[placement]\ninitial = 'graph'\n",
      "[data]\nreader = 'clicks'\ntrain = 'x'\norder = 'file'\nmulti_hot = ['C1']\n[model]\nwide = true\n",
      "[data]\nreader = 'clicks'\ntrain = 'x'\n[model]\nname = 'dcnv2'\nnumeric_features = 'both'\n",
      "[data]\nreader = 'clicks'\ntrain = 'x'\n[dense]\noptimizer = 'sgd'\n",
      "[data]\nreader = 'clicks'\ntrain = 'x'\n[dense]\noptimizer = 'adagrad'\n",
      "[data]\nreader = 'clicks'\ntrain = 'x'\n[dense]\noptimizer = 'ftrl'\n",
      "[data]\nreader = 'clicks'\ntrain = 'x'\n[model]\nname = 'fm'\n[linear]\nkind = 'ftrl'\n",
      "[data]\nreader = 'clicks'\ntrain = 'x'\n[dense]\ncompression = 'top_k'\noptimizer = 'sgd'\nwarmup_steps = 3\n",
      "[data]\nreader = 'ratings'\ntrain = 'x'\n",
      "[data]\nreader = 'text'\ntrain = 'x'\ntest = 'y'\n",
      "[data]\nreader = 'edges'\ntrain = 'x'\n",
      "[data]\nreader = 'interactions'\ntrain = 'x'\n[model]\nname = 'ials'\n",
      "[gradient_compression]\nage_max = 4\n",
      "[refresh_compression]\nage_max = 4\n"};
  return all;
}

TEST(Config, EveryKeyIsReadWrittenAndDescribed) {
  for (Field const& f : all_fields()) {
    bool seen = false;
    for (std::string const& before : configurations()) {
      Config config = parse(before);
      auto const here = used_field(config, f.name());
      if (!here || before.find(fmt::format("[{}]\n{} ", f.section, f.key)) != std::string::npos) continue;
      Config const changed = parse(before, {fmt::format("{}={}", f.name(), other_value(*here, config))});
      EXPECT_NE(resolved(changed), resolved(config)) << f.name();
      EXPECT_EQ(resume_differences(config, changed).empty(), !f.is_fixed_on_resume) << f.name();
      seen = true;
      break;
    }
    EXPECT_TRUE(seen) << f.name();
  }
}

// Whether the configuration accepts the value and keeps it when it is resolved.
bool takes(std::string const& before, Field const& f, std::string const& value) {
  bool const is_list = f.ordered || f.name() == "eval.hits";
  try {
    Config const once = parse(before, {f.name() + "=" + (is_list ? "[" + value + "]" : value)});
    return resolved(once) == resolved(parse_config(resolved(once), "again.toml", "/elsewhere"));
  } catch (Error const& error) {
    std::string const text = error.what();
    EXPECT_TRUE(text.find("out of range") != text.npos || text.find("has no effect") != text.npos ||
                text.find("the key needs") != text.npos || text.find("density") != text.npos)
        << text;
    return false;
  }
}

// The defaults of a kind that has this field.
Config config_with(Field const& f) {
  for (TaskKind const* const kind : task_kinds()) {
    for (Field const& field : fields_of(*kind, task_kinds())) {
      if (field.name() == f.name()) return default_config(kind->readers().front());
    }
  }
  throw Error("no kind has " + f.name());
}

TEST(Config, EveryNumberHasLimits) {
  int numbers = 0;
  for (Field const& f : all_fields()) {
    Config config = config_with(f);
    FieldPointer const pointer = f.pointer(config);
    bool const is_integer =
        std::holds_alternative<std::int64_t*>(pointer) || std::holds_alternative<std::vector<std::int64_t>*>(pointer);
    if (!is_integer && !std::holds_alternative<double*>(pointer)) continue;
    ++numbers;
    EXPECT_GT(f.least, std::numeric_limits<double>::lowest()) << f.name() << " has no limit";
    EXPECT_LT(f.most, 1e31) << f.name() << " has no limit";
    auto const written = [is_integer](double value) {
      return is_integer ? fmt::format("{}", static_cast<std::int64_t>(value)) : fmt::format("{:.17g}", value);
    };
    double const far = std::max(1.0, f.most * 1e-3);
    std::vector<std::string> rejected{"nan",
                                      "-nan",
                                      "inf",
                                      "-inf",
                                      "1e400",
                                      "-1e400",
                                      "''",
                                      "true",
                                      "1979-05-27",
                                      written(f.least - 1),
                                      "-9223372036854775808"};
    if (is_integer || f.most < 0x1p63) rejected.emplace_back("9223372036854775808");
    rejected.push_back(is_integer ? fmt::format("{}", static_cast<std::int64_t>(f.most) + 1) : written(f.most + far));
    rejected.emplace_back(is_integer ? "9223372036854775807" : "1e300");
    bool least = false, most = false;
    std::set<TaskKind const*> kinds;  // with a configuration in which the key has an effect
    for (std::string const& before : configurations()) {
      Config const base = parse(before);
      if (!used_field(base, f.name())) continue;
      least = least || takes(before, f, written(f.least));
      most = most || takes(before, f, written(f.most));
      if (!kinds.insert(base.task.kind).second) continue;
      for (std::string const& value : rejected) EXPECT_FALSE(takes(before, f, value)) << f.name() << " = " << value;
    }
    // These two limit each other: a density may not be above the initial density.
    bool const depends = f.name() == "dense.density" || f.name() == "dense.initial_density";
    EXPECT_TRUE((least && most) || (depends && (least || most))) << f.name();
  }
  EXPECT_GT(numbers, 60);
}

TEST(Config, NumbersMayStartOrEndWithDecimalPoint) {
  EXPECT_EQ(parse("", {"optimizer.learning_rate=.3"}).optimizer.learning_rate, .3);
  EXPECT_EQ(parse("", {"optimizer.learning_rate=3."}).optimizer.learning_rate, 3);
  EXPECT_EQ(parse("", {"optimizer.learning_rate=1e-2"}).optimizer.learning_rate, .01);
  expect_error([] { parse("", {"model.dim=.3"}); }, {"model.dim", "write an integer"});
  expect_error([] { parse("", {"optimizer.learning_rate=.x"}); }, {"is '.x' (the key needs a number): write a number"});
}

TEST(Config, ErrorNamesUnquotedStrings) {
  expect_error([] { parse("[train]\nseed = 1\n[gradient_compression]\n  codec = int4  # small\n"); },
               {"run.toml:4: gradient_compression.codec is int4 without quotes (the key needs a string): write codec = "
                "\"int4\""});
  expect_error([] { parse("[ data ]\r\ntrain = some.txt\r\n"); }, {"write train = \"some.txt\""});
  expect_error([] { parse("[linear]\nkind = ftrl\n"); }, {"run.toml:2", "write kind = \"ftrl\""});
  expect_error([] { parse("[model]\ndim = many\n"); }, {"run.toml:2", "not TOML"});
  expect_error([] { parse("codec = int4\n"); }, {"run.toml:1", "not TOML"});
  expect_error([] { parse("[gradient_compression]\n=\n"); }, {"run.toml:2", "not TOML"});
  expect_error([] { parse("[gradient_compression]\ncodec =\n"); }, {"run.toml:2", "not TOML"});
}

TEST(Config, MisplacedKeyErrorNamesItsSection) {
  expect_error(
      [] { parse("[refresh_compression]\ntop_k = 3\n"); },
      {"run.toml:2",
       "no key 'top_k' in [refresh_compression] (it would have no effect): it is a key of [gradient_compression]"});
  expect_error([] { parse("[train]\ndevice = 'host'\n"); }, {"it is a key of [run]"});
}

TEST(Config, RejectsEndlessFile) {
  expect_error([] { load_config("/dev/zero"); }, {"/dev/zero is larger than 1 MiB", "cannot be a configuration"});
}

TEST(Config, DifferencesNameTheKeyAndBothValues) {
  auto const found = resume_differences(parse(""), parse("[model]\ndim = 8\n[run]\nranks = 2\n"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].key, "model.dim");
  EXPECT_EQ(found[0].a, "100");
  EXPECT_EQ(found[0].b, "8");
}

}  // namespace
}  // namespace gpups::trainer::config_test
