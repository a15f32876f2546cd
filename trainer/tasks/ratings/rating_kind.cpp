// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/ratings/rating_kind.hpp"

#include "trainer/config/table_settings.hpp"
#include "trainer/saved/saved_model.hpp"
#include "trainer/tasks/ratings/rating_data.hpp"
#include "trainer/tasks/ratings/saved_ratings.hpp"

namespace gpups::trainer {

namespace {

class RatingKind : public TaskKind {
 public:
  std::vector<std::string> readers() const override { return {"ratings"}; }
  std::vector<std::string> models() const override { return {"factorization"}; }

  Config defaults() const override {
    Config config;
    config.data.train = config.data.valid = config.data.test = "";
    config.data.valid_share = 0;
    config.data.test_share = 0.1;
    config.model.name = "factorization";
    config.model.dim = 32;
    config.task.values = RatingSettings{};
    return config;
  }

  std::vector<Field> fields() const override {
    return joined(
        {{train_file(), valid_file(), test_file(), bad_share_max()},
         table_fields(),
         {valid_share().only_if(kValidIsCut), test_share().only_if(kTestIsCut), split_seed().only_if(kAnyIsCut)},
         row_fields(),
         {FieldBuilder("model", "biases", in_task<&RatingSettings::biases>,
                       "true: predictions add the mean rating, and a bias of the row and of the column")
              .fixed_on_resume(),
          FieldBuilder("model", "l2", in_task<&RatingSettings::l2>,
                       "weight of the squared norms of a rating's two rows in its loss")
              .range(0, 1e6)
              .only_if(kAddsL2)
              .fixed_on_resume()},
         optimizer_fields(),
         schedule_fields(),
         {reuse_batches(), initial_placement()}});
  }
  void check(Config const& config, std::string const& name) const override { require_train_file(config, name); }

  std::unique_ptr<Data const> read(Config const& config) const override {
    return std::make_unique<RatingData>(read_ratings(config.data));
  }
  ModelShape shape(Config const& config) const override { return {.widest_row = factor_dim(config)}; }

  bool export_model(SavedModel const& model, std::filesystem::path const& folder, ModelFormat format,
                    std::vector<std::string>&) const override {
    if (is_word2vec(format)) return false;
    SavedRatings(model).write(folder, array_format(format));
    return true;
  }
  bool predict(SavedModel const& model, std::filesystem::path const& file, std::vector<std::string>& notices,
               std::function<void(std::span<float const>)> const& take) const override {
    SavedRatings(model).predict(file, notices, take);
    return true;
  }
};

}  // namespace

TaskKind const& rating_kind() {
  static RatingKind const kind;
  return kind;
}

std::size_t factor_dim(Config const& config) {
  return static_cast<std::size_t>(config.model.dim) + (config.settings<RatingSettings>().biases ? 1 : 0);
}

std::vector<TableOptions> factor_tables(Config const& config, std::size_t rows, std::size_t columns,
                                        std::int64_t schedule_steps) {
  std::size_t const dim = factor_dim(config);
  return {vector_table(config, "rows", dim, rows, schedule_steps),
          vector_table(config, "columns", dim, columns, schedule_steps)};
}

}  // namespace gpups::trainer
