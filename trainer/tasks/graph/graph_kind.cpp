// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/graph/graph_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/base/atomic_folder.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/saved/saved_model.hpp"
#include "trainer/tasks/common/nearest.hpp"
#include "trainer/tasks/graph/graph_task.hpp"
#include "trainer/tasks/graph/model.hpp"
#include "trainer/tasks/graph/reader.hpp"
#include "trainer/tasks/graph/reciprocal.hpp"

namespace gpups::trainer {
namespace {

GraphSettings const& graph(Config const& c) { return c.settings<GraphSettings>(); }

bool is_distance(Config const& c) {
  return (c.model.name == "transe" || c.model.name == "rotate") && graph(c).loss != "softmax";
}

Constraint const kFiles{[](Config const& c) { return c.data.reader != "wordnet"; }, "data.reader is \"wordnet\""};
Constraint const kWordNet{[](Config const& c) { return c.data.reader == "wordnet"; },
                          "data.reader = \"triples\" holds no samples out: set data.valid and data.test"};
Constraint const kLabelled{
    [](Config const& c) { return takes_all(graph(c).sampling) && graph(c).loss != "self_adversarial"; },
    "only model.sampling = \"all\" or \"kvsall\" with loss \"softmax\" or \"logistic\" uses it"};
Constraint const kSharedNegatives{[](Config const& c) { return graph(c).sampling != "triple"; },
                                  "model.sampling = \"triple\" does not use it"};
Constraint const kNotAngles{[](Config const& c) { return c.model.name != "rotate"; },
                            "relations of \"rotate\" are angles"};
Constraint const kDrawsNegatives{[](Config const& c) { return !takes_all(graph(c).sampling); },
                                 "model.sampling = \"all\" and \"kvsall\" draw no negatives"};
Constraint const kOwnNegatives{[](Config const& c) { return graph(c).sampling == "triple"; },
                               "only model.sampling = \"triple\" uses it"};
Constraint const kTranslations{[](Config const& c) { return c.model.name == "transe"; },
                               "only model.name = \"transe\" uses it"};
Constraint const kMargins{
    is_distance,
    "only model.name = \"transe\" or \"rotate\" uses it, and model.loss = \"softmax\" does not depend on it"};
Constraint const kWeighted{[](Config const& c) { return graph(c).loss == "self_adversarial"; },
                           "only model.loss = \"self_adversarial\" uses it"};
Constraint const kPlaced{[](Config const& c) { return !takes_all(graph(c).sampling); },
                         "knowledge graphs where each step reads all entities have no placement by a partition"};
Constraint const kByGraph{[](Config const& c) { return c.placement.initial == "graph"; },
                          "only placement.initial = \"graph\" uses it"};
Constraint const kSampled{[](Config const& c) { return graph(c).samples_max > 0; },
                          "eval.samples_max is 0, so all triples are ranked"};

using G = GraphSettings;

std::vector<Field> graph_data_fields() {
  return joined({only_if(kFiles, joined({{train_file(), valid_file(), test_file(), bad_share_max()}, table_fields()})),
                 {valid_share().only_if(kWordNet), test_share().only_if(kWordNet), split_seed().only_if(kWordNet)}});
}

std::vector<Field> graph_model_fields() {
  return {
      FieldBuilder("model", "loss", in_task<&G::loss>, "loss of a positive and its negatives")
          .one_of({"logistic", "softmax", "self_adversarial"})
          .fixed_on_resume(),
      FieldBuilder("model", "temperature", in_task<&G::temperature>,
                   "factor of scores in the softmax that weights negatives; 0: equal weights")
          .range(0, 1e6)
          .only_if(kWeighted)
          .fixed_on_resume(),
      FieldBuilder("model", "negatives", in_task<&G::negatives>,
                   "negatives for the subject, and the same number for the object")
          .range(1, 1 << 20)
          .only_if(kDrawsNegatives)
          .fixed_on_resume(),
      FieldBuilder("model", "sampling", in_task<&G::sampling>,
                   "triple: negatives for each triple; shared: for each microbatch; all: all entities (1vsAll); "
                   "kvsall: the same, and a sample is a query with all of its answers")
          .one_of({"triple", "shared", "all", "kvsall"})
          .fixed_on_resume(),
      FieldBuilder("model", "reciprocal", in_task<&G::reciprocal>,
                   "true: each relation has a second row, with which objects ask for subjects")
          .fixed_on_resume(),
      FieldBuilder("model", "label_smoothing", in_task<&G::label_smoothing>,
                   "share of a query's target that is spread over all entities")
          .range(0, 0.99)
          .only_if(kLabelled)
          .fixed_on_resume(),
      FieldBuilder("model", "entity_dropout", in_task<&G::entity_dropout>,
                   "dropout rate of the elements of entities' rows")
          .range(0, 0.99)
          .only_if(kSharedNegatives)
          .fixed_on_resume(),
      FieldBuilder("model", "relation_dropout", in_task<&G::relation_dropout>,
                   "dropout rate of the elements of relations' rows")
          .range(0, 0.99)
          .only_if(kSharedNegatives)
          .only_if(kNotAngles)
          .fixed_on_resume(),
      FieldBuilder("model", "negative_reuse", in_task<&G::negative_reuse>,
                   "how many of 16 consecutive triples use the same negative")
          .range(1, 32)
          .only_if(kOwnNegatives)
          .fixed_on_resume(),
      FieldBuilder("model", "local_negatives", in_task<&G::local_negatives>,
                   "share of negatives that are entities of the microbatch's own part")
          .range(0, 1)
          .only_if(kDrawsNegatives)
          .only_if(kByGraph)
          .fixed_on_resume(),
      FieldBuilder("model", "l2", in_task<&G::l2>, "weight of the squared norm of a positive's rows")
          .range(0, 1e6)
          .fixed_on_resume(),
      FieldBuilder("model", "n3", in_task<&G::n3>, "weight of the cubed moduli of a positive's rows")
          .range(0, 1e6)
          .fixed_on_resume(),
      FieldBuilder("model", "norm", in_task<&G::norm>, "norm of the distance: 1, or 2 for Euclidean")
          .range(1, 2)
          .only_if(kTranslations)
          .fixed_on_resume(),
      FieldBuilder("model", "margin", in_task<&G::margin>, "score of distance 0")
          .range(0, 1e6)
          .only_if(kMargins)
          .fixed_on_resume(),
  };
}

std::vector<Field> graph_eval_fields() {
  return {
      FieldBuilder("eval", "samples_max", in_task<&G::samples_max>, "number of triples to rank; 0: all")
          .range(0, kMost32),
      FieldBuilder("eval", "sample", in_task<&G::sample>,
                   "spread: triples evenly spaced in the split; first: its first triples")
          .one_of({"spread", "first"})
          .only_if(kSampled),
      ranking_cutoffs(),
  };
}

std::vector<Field> graph_fields() {
  return joined({graph_data_fields(),
                 row_fields(),
                 graph_model_fields(),
                 optimizer_fields(),
                 schedule_fields(),
                 {initial_placement().only_if(kPlaced)},
                 graph_eval_fields()});
}

// Chooses a range of initial values in which the distances of untrained triples are near the margin: for much smaller
// or larger distances the gradient of the loss vanishes for positives or for negatives. Sun et al. 2019 use the same
// range. A softmax loss depends on differences of scores only and keeps the general default.
void set_graph_defaults(Config& config, std::set<std::string> const& given) {
  ModelConfig by_default;
  if (is_distance(config)) {
    auto const dim = static_cast<double>(config.model.dim);
    double const summands = config.model.name == "rotate" ? dim / 2 : graph(config).norm == 2 ? std::sqrt(dim) : dim;
    by_default.init = "uniform";
    by_default.init_scale = std::min((graph(config).margin + 2) / summands, 1e6);  // the limit of model.init_scale
  }
  if (!given.contains("model.init")) config.model.init = by_default.init;
  if (!given.contains("model.init_scale")) config.model.init_scale = by_default.init_scale;
}

namespace fs = std::filesystem;

std::unique_ptr<GraphData const> read_graph(Config const& config) {
  Dataset data = read_dataset(config.data);
  std::size_t const entities = data.entities.size();
  GraphSettings const& of = graph(config);
  if (!takes_all(of.sampling) && static_cast<std::size_t>(of.negatives) > entities) {
    data.notices.push_back(fmt::format("model.negatives is {}, but there are {}: all of them are negatives",
                                       of.negatives, with_count(entities, "entity")));
  }
  return std::make_unique<GraphData>(std::move(data), of.sampling == "kvsall");
}

// Creates rows, with their initial values, for the keys from number `seen` on, which have none.
void create_unseen(Store& store, TableId table, std::vector<Key> const& all, std::size_t seen) {
  std::vector<Key> const keys(all.begin() + static_cast<std::ptrdiff_t>(seen), all.end());
  Stream stream = store.make_stream();
  Matrix<float> const rows = read_rows(stream, store, table, keys);
  store.assign(stream, table, to_device(stream, keys), rows);
}

// Adds a notice of the names in an export that training has not seen.
void say_unseen(Dataset const& data, std::vector<std::string>& notices) {
  std::size_t const entities = data.entities.size() - data.seen_entities;
  std::size_t const relations = data.relations.size() - data.seen_relations;
  if (entities + relations == 0) return;
  notices.push_back(fmt::format(
      "{} and {} are in held-out triples only, and have rows that rank these: entities were trained as negatives only, "
      "and relations have their initial rows",
      with_count(entities, "entity"), with_count(relations, "relation")));
}

class GraphKind : public TaskKind {
 public:
  std::vector<std::string> readers() const override { return reader_names(); }
  std::vector<std::string> models() const override { return model_names(); }
  Config defaults() const override {
    Config config;
    config.task.values = GraphSettings{};
    return config;
  }
  std::vector<Field> fields() const override { return graph_fields(); }
  void set_defaults(Config& config, std::set<std::string> const& given) const override {
    set_graph_defaults(config, given);
  }

  std::string default_folder(Config const& config) const override {
    return config.data.reader == "wordnet" ? "/usr/share/wordnet" : "";
  }

  std::unique_ptr<Data const> read(Config const& config) const override { return read_graph(config); }

  ModelShape shape(Config const& config) const override {
    Vocabulary const smallest{.entities = {Key{1}}, .relations = {Key{2}}};  // dims do not depend on the vocabulary
    ModelShape shape;
    for (TableOptions const& table : make_graph_model(graph_model_options(config, 1), smallest)->tables()) {
      shape.widest_row = std::max(shape.widest_row, table.dim);
    }
    return shape;
  }

  // Writes the rows of both tables and the name of each key, in entities.tsv, relations.tsv and inverse_relations.tsv.
  // Names that training has not seen have rows too: held-out triples have them, and entities are candidates.
  bool export_model(SavedModel const& model, fs::path const& folder, ModelFormat format,
                    std::vector<std::string>& notices) const override {
    if (is_word2vec(format)) return false;
    Config const& config = model.saved.config;
    auto const read = read_graph(config);
    Dataset const& data = read->dataset();
    RestoredModel restored(model, *read);
    Store& store = restored.store();
    create_unseen(store, TableId{0}, data.entities.keys(), data.seen_entities);
    create_unseen(store, TableId{1}, data.relations.keys(), data.seen_relations);
    say_unseen(data, notices);
    bool const reciprocal = config.settings<GraphSettings>().reciprocal;
    std::vector<Key> const inverses = inverse_keys(data.relations, reciprocal ? data.relations.size() : 0);
    if (reciprocal) create_unseen(store, TableId{1}, inverses, data.seen_relations);
    write_folder(folder, [&](fs::path const& beside) {
      store.export_rows(beside / "rows", array_format(format));
      write_file(beside / "entities.tsv", names_and_keys(data.entities, data.entities.keys()));
      write_file(beside / "relations.tsv", names_and_keys(data.relations, data.relations.keys()));
      if (reciprocal) write_file(beside / "inverse_relations.tsv", names_and_keys(data.relations, inverses));
      write_file(beside / "model.json", description_of(model));
    });
    return true;
  }
};

}  // namespace

TaskKind const& graph_kind() {
  static GraphKind const kind;
  return kind;
}

}  // namespace gpups::trainer
