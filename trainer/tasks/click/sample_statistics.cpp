// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/sample_statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/base/check.hpp"

namespace gpups::trainer {
namespace {

constexpr char kStatisticsBlob[] = "clicks/statistics.json";

}  // namespace

void each_measured(Samples const& samples, std::uint64_t first, std::uint64_t count, std::uint64_t most,
                   std::function<void(SampleBatch const&)> const& measure) {
  std::uint64_t const pieces = (count + kSampleBlock - 1) / kSampleBlock;
  std::uint64_t const step = std::max<std::uint64_t>(1, pieces * kSampleBlock / most);
  SampleBatch batch;
  for (std::uint64_t piece = 0; piece < pieces; piece += step) {
    std::uint64_t const begin = piece * kSampleBlock;
    samples.read(first + begin, std::min(kSampleBlock, count - begin), batch);
    measure(batch);
  }
}

SampleStatistics measure_samples(Samples const& samples, std::uint64_t first, std::uint64_t count) {
  std::size_t const numbers = samples.layout().numbers.size();
  std::vector<double> sum(numbers), squares(numbers);
  std::uint64_t measured = 0;
  double clicks = 0;
  each_measured(samples, first, count, kMeasured, [&](SampleBatch const& batch) {
    measured += batch.samples;
    for (float label : batch.labels) clicks += static_cast<double>(label);
    for (std::size_t i = 0; i < batch.numbers.size(); ++i) {
      auto const log = static_cast<double>(log_of_number(batch.numbers[i]));
      sum[i % numbers] += log;
      squares[i % numbers] += log * log;
    }
  });
  SampleStatistics statistics;
  for (std::size_t j = 0; j < numbers; ++j) {
    double const mean = sum[j] / static_cast<double>(measured);
    double const variance = squares[j] / static_cast<double>(measured) - mean * mean;
    statistics.mean.push_back(static_cast<float>(mean));
    statistics.deviation.push_back(variance > 1e-12 ? static_cast<float>(std::sqrt(variance)) : 1.0F);
  }
  statistics.click_share = static_cast<float>(clicks / static_cast<double>(measured));
  return statistics;
}

float SampleStatistics::base_logit() const {
  double const share = std::clamp(static_cast<double>(click_share), 1e-6, 1 - 1e-6);
  return static_cast<float>(std::log(share / (1 - share)));
}

Blob to_blob(SampleStatistics const& statistics) {
  return {kStatisticsBlob,
          nlohmann::json{
              {"mean", statistics.mean}, {"deviation", statistics.deviation}, {"click_share", statistics.click_share}}
              .dump()};
}

SampleStatistics sample_statistics(std::span<Blob const> blobs, std::size_t numbers) {
  auto const blob = std::find_if(blobs.begin(), blobs.end(), [](Blob const& b) { return b.name == kStatisticsBlob; });
  try {
    if (blob == blobs.end()) throw std::runtime_error("it is missing");
    auto const json = nlohmann::json::parse(blob->bytes);
    SampleStatistics const statistics{json.at("mean"), json.at("deviation"), json.at("click_share")};
    if (statistics.mean.size() != numbers || statistics.deviation.size() != numbers) {
      throw std::runtime_error(fmt::format("it has {} numbers, and the model {}", statistics.mean.size(), numbers));
    }
    return statistics;
  } catch (std::exception const& error) {
    throw Error(fmt::format("{} of the checkpoint cannot be used ({}): choose another checkpoint", kStatisticsBlob,
                            error.what()));
  }
}

}  // namespace gpups::trainer
