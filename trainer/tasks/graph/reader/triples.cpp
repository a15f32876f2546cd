// SPDX-License-Identifier: Apache-2.0
// Reads lines of subject, relation and object. A name is any string that is not empty.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/input/named_files.hpp"
#include "trainer/input/table_reader.hpp"
#include "trainer/tasks/common/known_samples.hpp"
#include "trainer/tasks/common/odd_names.hpp"
#include "trainer/tasks/graph/reader.hpp"

namespace gpups::trainer {
namespace {

constexpr TableColumn kTripleColumns[] = {
    {.is = "subject", .headings = "subject head subj from source src entity1 e1 node1 start startid fromid"},
    {.is = "relation", .headings = "relation predicate rel pred type label edge edgetype relationtype property"},
    {.is = "object", .headings = "object tail obj to target dst entity2 e2 node2 end endid toid"},
};
constexpr TableKind kTriples{.columns = kTripleColumns, .separator = "tab"};

// Calls add(subject, relation, object) for each triple of the files that a setting names.
template <class Add>
void read_files(DataConfig const& config, std::string const& file, SameColumns& same, std::vector<std::string>& notices,
                Add add) {
  for (std::filesystem::path const& path : files_named(config.folder, file, notices)) {
    TableReader reader(path, config.table, kTriples);
    same.check(reader.layout(), path.string());
    for (std::vector<std::string_view> names; reader.next(names);) add(names[0], names[1], names[2]);
    reader.finish(config.bad_share_max, "subject, relation and object", notices);
  }
}

// The training triples' subjects, or their objects.
struct Ends {
  std::size_t names = 0;      // distinct
  std::size_t relations = 0;  // which are among them
};

Ends ends_of(Dataset const& data, std::uint32_t Triple::*end) {
  std::vector<bool> has(data.entities.size());
  for (Triple const& triple : data.train) has[triple.*end] = true;
  Ends ends{.names = static_cast<std::size_t>(std::count(has.begin(), has.end(), true))};
  for (std::uint32_t relation = 0; relation < data.relations.size(); ++relation) {
    auto const entity = data.entities.find(data.relations.name(relation));
    ends.relations += entity && has[*entity] ? 1 : 0;
  }
  return ends;
}

// Adds a notice if the first or the last column of the training triples may have the relations: the second one has more
// names than it, or most of its names, which are no numbers, are those of the other one.
void say_relations_elsewhere(Dataset const& data, std::vector<std::string>& notices) {
  constexpr std::size_t kRelationsMin = 5;
  std::size_t const relations = data.relations.size();
  Ends const subjects = ends_of(data, &Triple::subject), objects = ends_of(data, &Triple::object);
  bool numbers = false;
  for (std::uint32_t i = 0; i < relations; ++i) numbers = numbers || is_number(data.relations.name(i));
  auto const may_have = [&](Ends const& ends, Ends const& other) {
    return relations > ends.names || (!numbers && 2 * other.relations > relations);
  };
  bool const first = may_have(subjects, objects), last = may_have(objects, subjects);
  if (relations < kRelationsMin || (!first && !last)) return;
  auto const say = [&](std::string names, std::size_t shared, char const* others, char const* line,
                       char const* columns) {
    notices.push_back(
        fmt::format("the triples have {} relations and {}, and {} of the relations are {}: if a line is {}, set "
                    "data.columns to {}",
                    relations, names, shared, others, line, columns));
  };
  if (first && (!last || subjects.names < objects.names)) {
    say(with_count(subjects.names, "subject"), objects.relations, "objects", "a relation, a subject and an object",
        R"(["2", "1", "3"])");
  } else {
    say(with_count(objects.names, "object"), subjects.relations, "subjects",
        "a subject, an object and a relation, as in files of OpenKE", R"(["1", "3", "2"])");
  }
}

}  // namespace

Dataset read_triples(DataConfig const& config) {
  Dataset data;
  std::filesystem::path const folder = config.folder;
  GPUPS_REQUIRE(!config.train.empty(), "data.train is empty (there are no triples to train on): set it to a file");
  SameColumns same;  // of all splits
  read_files(config, config.train, same, data.notices, [&](auto s, auto r, auto o) { data.add_train(s, r, o); });
  GPUPS_REQUIRE(!data.train.empty(), "{} has no triples (training needs some): check the file",
                (folder / config.train).string());

  if (config.table.columns.empty() && !same.first().heading) say_relations_elsewhere(data, data.notices);
  auto const read_held_out = [&](std::string const& file, std::vector<Triple>& split) {
    if (file.empty()) return;
    read_files(config, file, same, data.notices, [&](auto s, auto r, auto o) { data.add_held_out(split, s, r, o); });
    std::size_t const unseen = data.count_unseen(split);
    if (unseen > 0) {
      data.notices.push_back(
          fmt::format("{} of {} with names that are not in the training data; such entities are trained as negatives "
                      "only, and such relations have their initial rows",
                      with_count(unseen, "triple"), (folder / file).string()));
    }
    GPUPS_REQUIRE(!split.empty(),
                  "{} has no triples to rank (metrics need some): correct the file, or set its key to \"\"",
                  (folder / file).string());
  };
  read_held_out(config.valid, data.valid);
  read_held_out(config.test, data.test);
  say_odd_names(data.entities, data.notices);
  auto const key = [](Triple const& t) {
    return kernels::mix(kernels::mix(t.subject) ^ (std::uint64_t{t.relation} << 32 | t.object));
  };
  say_known_samples(data.train, data.valid, "triple", "validation", key, data.notices);
  say_known_samples(data.train, data.test, "triple", "test", key, data.notices);
  say_known_samples(data.valid, data.test, "triple", "test", key, data.notices, "validation");
  return data;
}

}  // namespace gpups::trainer
