// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/click_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace gpups::trainer {
namespace {

double entropy(double share) {
  if (share <= 0 || share >= 1) return 0;
  return -share * std::log(share) - (1 - share) * std::log(1 - share);
}

// Sums in the order of the values, so that the result does not depend on the order of samples.
double sum_of(std::vector<Prediction> const& sorted, float Prediction::*what) {
  return std::accumulate(sorted.begin(), sorted.end(), 0.0,
                         [what](double sum, Prediction const& p) { return sum + static_cast<double>(p.*what); });
}

}  // namespace

std::optional<double> area_under_curve(std::vector<Prediction>& predicted) {
  auto const rank = [](Prediction const& p) { return std::isnan(p.probability) ? -1.0F : p.probability; };
  std::sort(predicted.begin(), predicted.end(), [rank](Prediction const& a, Prediction const& b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : a.label < b.label;
  });
  auto const [least, most] = std::minmax_element(predicted.begin(), predicted.end(),
                                                 [](auto const& a, auto const& b) { return a.label < b.label; });
  if (predicted.empty() || least->label == most->label) return std::nullopt;  // also if no label is 0 or 1
  double clicks = 0, others = 0, above = 0;  // pairs of a click and another sample, in which the click ranks higher
  for (std::size_t first = 0, last = 0; first < predicted.size(); first = last) {
    double clicks_here = 0, others_here = 0;
    for (; last < predicted.size() && rank(predicted[last]) == rank(predicted[first]); ++last) {
      auto const label = static_cast<double>(predicted[last].label);
      clicks_here += label;
      others_here += 1 - label;
    }
    above += clicks_here * (others + others_here / 2);
    clicks += clicks_here;
    others += others_here;
  }
  if (clicks == 0 || others == 0) return std::nullopt;
  return above / (clicks * others);
}

void PredictionCollector::add(std::span<float const> probabilities, std::span<float const> labels,
                              std::span<std::int64_t const> losses) {
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    predicted_.push_back({probabilities[i], labels[i]});
    loss_ += losses[i];
  }
}

// Returns the predictions of all ranks, in no particular order.
std::vector<Prediction> PredictionCollector::wait_all(Store& store) {
  std::vector<Prediction> mine = std::move(predicted_), all;
  predicted_.clear();
  if (store.ranks() == 1) return mine;
  for (bool more = true; more;) {
    std::size_t const count = std::min(mine.size(), piece_);
    std::string piece(count * sizeof(Prediction), '\0');
    if (count > 0) std::memcpy(piece.data(), mine.data() + (mine.size() - count), piece.size());
    mine.resize(mine.size() - count);
    more = false;
    for (std::string const& other : store.wait_allgather(piece)) {
      std::size_t const got = other.size() / sizeof(Prediction);
      all.resize(all.size() + got);
      if (got > 0) std::memcpy(all.data() + (all.size() - got), other.data(), other.size());
      more = more || got == piece_;  // the same on all ranks
    }
  }
  return all;
}

ClickMetrics PredictionCollector::wait_metrics(Store& store) {
  std::int64_t loss[] = {loss_};
  store.wait_allreduce(loss);
  std::vector<Prediction> all = wait_all(store);
  loss_ = 0;

  ClickMetrics metrics;
  metrics.samples = static_cast<std::int64_t>(all.size());
  if (all.empty()) return metrics;
  auto const samples = static_cast<double>(all.size());
  metrics.auc = area_under_curve(all);  // sorts
  metrics.clicks = sum_of(all, &Prediction::label);
  metrics.log_loss = static_cast<double>(loss[0]) * 0x1p-30 / samples;
  if (metrics.clicks > 0) metrics.calibration = sum_of(all, &Prediction::probability) / metrics.clicks;
  double const base = entropy(metrics.clicks / samples);
  if (base > 0) metrics.normalized_entropy = metrics.log_loss / base;
  return metrics;
}

Metrics to_metrics(ClickMetrics const& m) {
  auto const json = [](std::optional<double> value) { return value ? nlohmann::json(*value) : nlohmann::json(); };
  auto const text = [](std::optional<double> value, int digits) {
    return value ? fmt::format("{:.{}f}", *value, digits) : "undefined";
  };
  std::string of_one_class;
  if (!m.auc && m.samples > 0) of_one_class = fmt::format(" (all {} labels are equal)", m.samples);
  return {.json = {{"samples", m.samples},
                   {"clicks", m.clicks},
                   {"auc", json(m.auc)},
                   {"log_loss", m.log_loss},
                   {"calibration", json(m.calibration)},
                   {"normalized_entropy", json(m.normalized_entropy)}},
          .text = fmt::format("auc {}{}  log-loss {:.4f}  calibration {}  normalized entropy {}", text(m.auc, 4),
                              of_one_class, m.log_loss, text(m.calibration, 3), text(m.normalized_entropy, 4)),
          .quality = m.auc.value_or(1 / (1 + m.log_loss))};
}

}  // namespace gpups::trainer
