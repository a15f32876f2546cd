// SPDX-License-Identifier: Apache-2.0
// Writes synthetic click data in Criteo's layout, and prints the metrics of the best possible predictions.
//
// usage: make_clicks SAMPLES SEED FILE    FILE: - for standard output; the line of JSON is then on standard error
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/click_teacher.hpp"
#include "trainer/accounts/stage_times.hpp"
#include "trainer/base/random.hpp"

namespace gpups::tools {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20, kLineBytesMax = 1024;

// Area under the ROC curve and mean log-loss of the teacher's own probabilities. Logits are counted in small bins, so
// that memory does not grow with the samples.
class Quality {
 public:
  void add(double logit, bool click) {
    double const place = (std::clamp(logit, -kLogitMax, kLogitMax) / kLogitMax + 1) / 2 * (kBins - 1);
    ++(click ? clicks_ : others_)[static_cast<std::size_t>(place)];
    loss_ += std::log1p(std::exp(click ? -logit : logit));
    ++samples_;
  }

  nlohmann::json json() const {
    double below = 0, pairs = 0, clicks = 0;  // samples without a click in lower bins; pairs in right order
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      auto const with = static_cast<double>(clicks_[bin]), without = static_cast<double>(others_[bin]);
      pairs += with * (below + without / 2);
      below += without;
      clicks += with;
    }
    auto const samples = static_cast<double>(samples_);
    nlohmann::json json = {{"samples", samples_}, {"clicks", clicks / samples}, {"log_loss", loss_ / samples}};
    json["auc"] = clicks > 0 && below > 0 ? nlohmann::json(pairs / (clicks * below)) : nlohmann::json();
    return json;
  }

 private:
  static constexpr std::size_t kBins = 1 << 17;
  static constexpr double kLogitMax = 32;

  std::vector<std::uint64_t> clicks_ = std::vector<std::uint64_t>(kBins), others_ = clicks_;
  double loss_ = 0;
  std::uint64_t samples_ = 0;
};

char* put_hexadecimal(char* to, std::uint32_t number) {
  for (int shift = 28; shift >= 0; shift -= 4) *to++ = "0123456789abcdef"[number >> shift & 15];
  return to;
}

// Writes a line without its end, and returns where the end is. REQUIRES: there is room for kLineBytesMax.
char* put_sample(char* to, ClickSample const& sample) {
  *to++ = sample.click ? '1' : '0';
  for (std::int64_t number : sample.numbers) {
    *to++ = '\t';
    if (number != kMissingNumber) to = std::to_chars(to, to + 24, number).ptr;
  }
  for (std::size_t f = 0; f < sample.values.size(); ++f) {
    *to++ = '\t';
    if (sample.values[f] == kMissingValue) continue;
    to = put_hexadecimal(to, static_cast<std::uint32_t>(trainer::random_bits(f, sample.values[f])));
  }
  return to;
}

// Writes samples, and adds them to `all`, and the last fifth to `last`. Returns the bytes written.
std::uint64_t write_samples(std::uint64_t samples, std::uint64_t seed, std::FILE* file, Quality& all, Quality& last) {
  ClickTeacher const teacher;
  std::vector<char> buffer(kBufferBytes + kLineBytesMax);
  char* at = buffer.data();
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < samples; ++i) {
    ClickSample const sample = teacher.sample(seed, i);
    all.add(sample.logit, sample.click);
    if (i >= samples - samples / 5) last.add(sample.logit, sample.click);
    at = put_sample(at, sample);
    *at++ = '\n';
    auto const filled = static_cast<std::size_t>(at - buffer.data());
    if (filled < kBufferBytes && i + 1 < samples) continue;
    if (std::fwrite(buffer.data(), 1, filled, file) != filled) throw std::runtime_error("the file cannot be written");
    bytes += filled;
    at = buffer.data();
  }
  if (std::fflush(file) != 0) throw std::runtime_error("the file cannot be written");
  return bytes;
}

std::uint64_t number_from(char const* text, char const* name) {
  std::uint64_t number = 0;
  auto const [stop, error] = std::from_chars(text, text + std::strlen(text), number);
  if (error != std::errc() || *stop != '\0') throw std::runtime_error(fmt::format("{} is not a whole number", name));
  return number;
}

void run(char** arguments) {
  std::uint64_t const samples = number_from(arguments[1], "SAMPLES"), seed = number_from(arguments[2], "SEED");
  if (samples < 5) throw std::runtime_error("SAMPLES is below 5 (the last fifth has separate metrics): use 5 or more");
  std::string const path = arguments[3];
  bool const to_output = path == "-";
  std::FILE* const file = to_output ? stdout : std::fopen(path.c_str(), "wb");
  if (file == nullptr) throw std::runtime_error(fmt::format("{} cannot be created", path));
  trainer::Stopwatch watch;
  watch.start();
  Quality all, last;
  std::uint64_t const bytes = write_samples(samples, seed, file, all, last);
  if (!to_output && std::fclose(file) != 0) throw std::runtime_error("the file cannot be written");
  nlohmann::json const json = {
      {"bytes", bytes}, {"seconds", watch.seconds()}, {"all", all.json()}, {"last_fifth", last.json()}};
  fmt::print(to_output ? stderr : stdout, "{}\n", json.dump());
}

}  // namespace
}  // namespace gpups::tools

int main(int count, char** arguments) {
  if (count != 4) {
    std::fputs("usage: make_clicks SAMPLES SEED FILE    (FILE: - for standard output)\n", stderr);
    return 2;
  }
  try {
    gpups::tools::run(arguments);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "make_clicks: error: %s\n", error.what());
    return 2;
  }
  return 0;
}
