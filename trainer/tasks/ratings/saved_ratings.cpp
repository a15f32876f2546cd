// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/ratings/saved_ratings.hpp"
#include "trainer/input/saved_columns.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kernels/base/check.hpp"
#include "trainer/base/atomic_folder.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/tasks/ratings/rating_file.hpp"
#include "trainer/tasks/ratings/rating_kind.hpp"

namespace gpups::trainer {

SavedRatings::SavedRatings(SavedModel const& model)
    : saved_(model.saved), scale_(rating_scale(model.blobs)), columns_(saved_columns(model.blobs)) {
  Config const& config = saved_.config;
  store_ = std::make_unique<Store>(Group::alone(), StoreOptions{.device = device_from(config.run.device),
                                                                .threads = static_cast<int>(config.run.threads),
                                                                .seed = static_cast<std::uint64_t>(config.train.seed)});
  for (TableOptions const& table : factor_tables(config, 0, 0, saved_.state.schedule_steps)) store_->add_table(table);
  store_->restore(model.checkpoint);
}

void SavedRatings::predict(std::filesystem::path const& file, std::vector<std::string>& notices,
                           std::function<void(std::span<float const>)> const& take) {
  Stream stream = store_->make_stream();
  RatingPredictor predictor(stream, *store_, saved_.config, scale_);
  std::vector<Key> rows, columns;
  std::uint64_t pairs = 0;
  auto const predict_read = [&] {
    pairs += rows.size();
    if (!rows.empty()) take(predictor.wait_predict(rows, columns));
    rows.clear();
    columns.clear();
  };
  TableSettings settings = saved_.config.data.table;
  if (settings.columns.size() > 2) settings.columns.resize(2);  // of the two ids, without the rating
  read_rating_pairs(file, settings, columns_, notices, [&](RatingLine const& pair) {
    rows.push_back(Key{pair.row});
    columns.push_back(Key{pair.column});
    if (rows.size() == RatingPredictor::kAtOnce) predict_read();
  });
  predict_read();
  if (predictor.unknown() == 0) return;
  notices.push_back(fmt::format("{} of {} in {} have a row or a column without training ratings, which counts as zeros",
                                predictor.unknown(), with_count(pairs, "pair"), file.string()));
}

void SavedRatings::write(std::filesystem::path const& folder, ExportFormat format) {
  Config const& config = saved_.config;
  nlohmann::ordered_json const description{{"model", config.model.name},
                                           {"steps", saved_.state.clock},
                                           {"dim", config.model.dim},
                                           {"biases", config.settings<RatingSettings>().biases},
                                           {"mean", scale_.mean},
                                           {"deviation", scale_.deviation},
                                           {"lowest", scale_.lowest},
                                           {"highest", scale_.highest},
                                           {"configuration", resolved(config)}};
  write_folder(folder, [&](std::filesystem::path const& beside) {
    store_->export_rows(beside / "rows", format);
    write_file(beside / "model.json", description.dump(1) + "\n");
  });
}

}  // namespace gpups::trainer
