// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/nodes/node_kind.hpp"

#include "trainer/tasks/common/named_vectors.hpp"
#include "trainer/tasks/nodes/node_data.hpp"
#include "trainer/tasks/words/skip_gram_task.hpp"

namespace gpups::trainer {
namespace {

using N = NodeSettings;

class NodeKind : public TaskKind {
 public:
  std::vector<std::string> readers() const override { return {"edges"}; }
  std::vector<std::string> models() const override { return skip_gram_model_names(); }

  // The settings of DeepWalk.
  Config defaults() const override {
    Config config = skip_gram_defaults();
    config.data.train = "edges.txt";
    config.model.dim = 128;
    config.train.batch_size = 0;
    config.task.values = NodeSettings{};
    return config;
  }

  std::vector<Field> fields() const override {
    return joined(
        {{train_file(), valid_file(), test_file(), bad_share_max()},
         table_fields(),
         {valid_share().only_if(kValidIsCut), test_share().only_if(kTestIsCut), split_seed().only_if(kAnyIsCut)},
         {FieldBuilder("data", "directed", in_task<&N::directed>, "true: walks follow edges in their direction only")
              .fixed_on_resume()},
         skip_gram_fields<N>(),
         {FieldBuilder("model", "walks", in_task<&N::walks>, "random walks from each node in an epoch")
              .range(1, 1 << 20)
              .fixed_on_resume()
              .same_in_trials(),
          FieldBuilder("model", "walk_length", in_task<&N::walk_length>, "nodes of a walk")
              .range(2, 1 << 16)
              .fixed_on_resume(),
          FieldBuilder("model", "p", in_task<&N::p>, "node2vec's return parameter: above 1, walks rarely go back")
              .range(0.01, 100)
              .fixed_on_resume(),
          FieldBuilder("model", "q", in_task<&N::q>,
                       "node2vec's in-out parameter: above 1, walks stay near their start")
              .range(0.01, 100)
              .fixed_on_resume()}});
  }
  void set_defaults(Config& config, std::set<std::string> const& given) const override {
    set_skip_gram_defaults(config, given);
  }
  void check(Config const& config, std::string const& name) const override { require_train_file(config, name); }

  std::unique_ptr<Data const> read(Config const& config) const override { return read_node_data(config); }

  bool export_model(SavedModel const& model, std::filesystem::path const& folder, ModelFormat format,
                    std::vector<std::string>& notices) const override {
    auto const data = read_node_data(model.saved.config);
    export_named_vectors(model, *data, data->names(), nullptr, folder, format, notices);
    return true;
  }
};

}  // namespace

TaskKind const& node_kind() {
  static NodeKind const kind;
  return kind;
}

}  // namespace gpups::trainer
