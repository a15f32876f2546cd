// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/graph/graph_kind.hpp"

#include <algorithm>

#include "trainer/base/atomic_folder.hpp"
#include "trainer/saved/restored_model.hpp"
#include "trainer/tasks/common/entity_matrix.hpp"
#include "trainer/tasks/graph/graph_settings.hpp"
#include "trainer/tasks/graph/graph_task.hpp"
#include "trainer/tasks/graph/reader.hpp"
#include "trainer/tasks/graph/reciprocal.hpp"

namespace gpups::trainer {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<GraphData const> read_graph(Config const& config) {
  bool const by_query = config.settings<GraphSettings>().sampling == "kvsall";
  return std::make_unique<GraphData>(read_dataset(config.data), by_query);
}

// Creates rows, with their initial values, for the keys from number `seen` on, which have none.
void create_unseen(Store& store, TableId table, std::vector<Key> const& all, std::size_t seen) {
  std::vector<Key> const keys(all.begin() + static_cast<std::ptrdiff_t>(seen), all.end());
  Stream stream = store.make_stream();
  Matrix<float> const rows = read_rows(stream, store, table, keys);
  store.assign(stream, table, to_device(stream, keys), rows);
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
  // Names that training has not seen have rows too.
  bool export_model(SavedModel const& model, fs::path const& folder, ModelFormat format) const override {
    if (is_word2vec(format)) return false;
    Config const& config = model.saved.config;
    auto const read = read_graph(config);
    Dataset const& data = read->dataset();
    RestoredModel restored(model, *read);
    Store& store = restored.store();
    create_unseen(store, TableId{0}, data.entities.keys(), data.seen_entities);
    create_unseen(store, TableId{1}, data.relations.keys(), data.seen_relations);
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
