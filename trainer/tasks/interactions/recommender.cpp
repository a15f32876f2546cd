// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/interactions/recommender.hpp"

#include <fmt/format.h>

#include "kernels/base/nvtx.hpp"
#include "trainer/config/table_settings.hpp"
#include "trainer/tasks/common/nearest.hpp"

namespace gpups::trainer {
namespace {

nlohmann::json to_json(RecommendationMetrics const& metrics, std::span<std::int64_t const> ks) {
  nlohmann::json json;
  for (std::size_t i = 0; i < ks.size(); ++i) {
    json[fmt::format("recall@{}", ks[i])] = metrics.recall[i];
    json[fmt::format("ndcg@{}", ks[i])] = metrics.ndcg[i];
  }
  return json;
}

std::string to_text(RecommendationMetrics const& metrics, std::span<std::int64_t const> ks) {
  std::string text;
  for (std::size_t i = 0; i < ks.size(); ++i) {
    text += fmt::format("{}recall@{} {:.4f}  ndcg@{} {:.4f}", i == 0 ? "" : "  ", ks[i], metrics.recall[i], ks[i],
                        metrics.ndcg[i]);
  }
  return text;
}

std::vector<Key> keys_of(Dictionary const& names, std::vector<std::uint32_t> const& numbers) {
  std::vector<Key> keys;
  keys.reserve(numbers.size());
  for (std::uint32_t const n : numbers) keys.push_back(names.keys()[n]);
  return keys;
}

// Returns a matrix of one column.
Matrix<float> column_matrix(Stream& stream, std::vector<float> const& values) {
  Matrix<float> matrix(stream.device(), values.size(), 1);
  std::size_t const stride = matrix.view().stride();
  std::vector<float> padded(values.size() * stride);
  for (std::size_t i = 0; i < values.size(); ++i) padded[i * stride] = values[i];
  copy<float>(stream, matrix.view().flat(), View<float const>(padded));
  stream.wait();
  return matrix;
}

}  // namespace

std::vector<TableOptions> recommender_tables(InteractionSet const& set, Config const& config,
                                             std::int64_t schedule_steps) {
  auto const dim = static_cast<std::size_t>(config.model.dim);
  return {vector_table(config, "items", dim, set.known_items, schedule_steps),
          vector_table(config, "users", dim, set.known_users, schedule_steps)};
}

Metrics Recommender::wait_evaluate(Stream& stream, Store& store, std::string_view split) {
  kernels::NvtxRange const range("evaluate");
  RecommendationMetrics const& popularity = wait_popularity(stream, store, std::string(split));
  Matrix<float> const items = read_rows(stream, store, kItemsTable, set_.items.keys());
  RecommendationMetrics const metrics = wait_recommendation_metrics(
      stream, store, set_, split, items,
      [&](std::vector<std::uint32_t> const& users) {
        return read_rows(stream, store, kUsersTable, keys_of(set_.users, users));
      },
      ks_);
  nlohmann::json json = to_json(metrics, ks_);
  json["interactions"] = set_.split(split).size();
  json["popularity"] = to_json(popularity, ks_);
  return {.json = json,
          .text = fmt::format("{}  (most popular items: {})", to_text(metrics, ks_), to_text(popularity, ks_)),
          .quality = metrics.ndcg.back()};
}

RecommendationMetrics const& Recommender::wait_popularity(Stream& stream, Store& store, std::string const& split) {
  auto const found = popularity_.find(split);
  if (found != popularity_.end()) return found->second;
  Matrix<float> const items = column_matrix(stream, set_.popularity());
  RecommendationMetrics const metrics = wait_recommendation_metrics(
      stream, store, set_, split, items,
      [&](std::vector<std::uint32_t> const& users) {
        return column_matrix(stream, std::vector<float>(users.size(), 1));
      },
      ks_);
  return popularity_.emplace(split, metrics).first->second;
}

}  // namespace gpups::trainer
