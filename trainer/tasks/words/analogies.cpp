// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/words/analogies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>

#include "kernels/base/check.hpp"
#include "kernels/score/pair_rows.hpp"
#include "trainer/base/long_loop.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/input/line_reader.hpp"
#include "trainer/tasks/common/target_ranks.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kAtOnce = 256;  // questions whose scores are computed together

std::optional<std::uint32_t> find_word(Dictionary const& words, std::string_view name) {
  if (auto const found = words.find(name)) return found;
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return words.find(lower);
}

// Returns the rows with length 1; rows of zeros stay.
std::vector<float> normalized(MatrixView<float const> rows, std::vector<float> numbers) {
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    float* const row = numbers.data() + i * rows.stride();
    double squares = 0;
    for (std::size_t j = 0; j < rows.columns(); ++j) squares += static_cast<double>(row[j]) * row[j];
    auto const factor = static_cast<float>(squares > 0 ? 1 / std::sqrt(squares) : 0);
    for (std::size_t j = 0; j < rows.columns(); ++j) row[j] *= factor;
  }
  return numbers;
}

// Answers questions with all candidates on the device.
class Answers {
 public:
  Answers(Stream& stream, MatrixView<float const> rows)
      : stream_(stream),
        host_(normalized(rows, to_host(stream, rows.flat()))),
        rows_(stream.device(), rows.rows(), rows.columns()) {
    copy<float>(stream, rows_.view().flat(), View<float const>(host_));
  }

  // Adds the number of right answers of each section to `right`.
  void add(std::span<Analogy const> questions, std::span<std::int64_t> right) {
    std::size_t const count = questions.size(), stride = rows_.view().stride(), dim = rows_.columns();
    std::vector<float> queries(count * stride);
    QueryTargets answers;
    for (std::size_t q = 0; q < count; ++q) {
      Analogy const& question = questions[q];
      for (std::size_t j = 0; j < dim; ++j) {
        auto const at = [&](std::uint32_t word) { return host_[word * stride + j]; };
        queries[q * stride + j] = at(question.b) - at(question.a) + at(question.c);
      }
      answers.targets.push_back(question.answer);
      std::array<std::uint32_t, 4> known{question.a, question.b, question.c, question.answer};
      std::sort(known.begin(), known.end());
      answers.left_out.insert(answers.left_out.end(), known.begin(), std::unique(known.begin(), known.end()));
      answers.offsets.push_back(static_cast<std::uint32_t>(answers.left_out.size()));
    }
    Matrix<float> const there(stream_.device(), count, dim), scores(stream_.device(), count, rows_.rows());
    copy<float>(stream_, there.view().flat(), View<float const>(queries));
    kernels::dot_rows(stream_, {.left = there, .right = {rows_}, .out = scores});
    std::vector<TargetRank> const ranks = wait_target_ranks(stream_, scores, answers);
    for (std::size_t q = 0; q < count; ++q) {
      Analogy const& asked = questions[q];
      bool const possible = asked.answer != asked.a && asked.answer != asked.b && asked.answer != asked.c;
      if (possible && ranks[q].better == 0 && ranks[q].equal == 0) ++right[asked.section];
    }
  }

 private:
  Stream& stream_;
  std::vector<float> host_;
  Matrix<float> rows_;
};

}  // namespace

Analogies read_analogies(std::filesystem::path const& file, Corpus const& corpus, std::size_t words_max) {
  Analogies analogies;
  analogies.words = std::min(words_max, corpus.words.size());
  std::uint32_t section = 0;
  auto const begin_section = [&](std::string_view name) {
    auto const found = std::find(analogies.sections.begin(), analogies.sections.end(), name);
    section = static_cast<std::uint32_t>(found - analogies.sections.begin());
    if (found == analogies.sections.end()) analogies.sections.emplace_back(name);
  };
  LineReader reader(file);
  std::string_view line;
  std::vector<std::string_view> words;
  while (reader.next(line)) {
    split_at_blanks(line, words);
    if (words.empty()) continue;
    if (words[0].front() == ':') {
      std::size_t const name = line.find_first_not_of(": \t");
      begin_section(name == std::string_view::npos ? "" : line.substr(name));
      continue;
    }
    GPUPS_REQUIRE(words.size() == 4, "{} has {} (a question has four, and a section begins with ':'): correct the line",
                  reader.position(), with_count(words.size(), "word"));
    if (analogies.sections.empty()) begin_section("all");
    std::array<std::uint32_t, 4> numbers{};
    bool known = true, any_known = false;
    for (std::size_t i = 0; i < 4; ++i) {
      auto const found = find_word(corpus.words, words[i]);
      any_known = any_known || found;
      known = known && found && *found < analogies.words;
      numbers[i] = found.value_or(0);
    }
    if (known) {
      analogies.questions.push_back(
          {numbers[0], numbers[1], numbers[2], numbers[3], static_cast<std::uint32_t>(analogies.sections.size() - 1)});
    } else {
      ++analogies.left_out;
    }
    if (reader.line_number() == 1 && !any_known) {
      analogies.notice = fmt::format(
          "the first line of {} may be a heading, since the text has no word of it: '{}'. It counts as a question that "
          "is left out",
          file.string(), fmt::join(words, " "));
    }
  }
  GPUPS_REQUIRE(!analogies.questions.empty(),
                "{} has no question whose words are among the {} most frequent (there is nothing to answer): use "
                "another file, or raise eval.words_max",
                file.string(), analogies.words);
  return analogies;
}

std::uint64_t analogy_bytes(Analogies const& analogies, std::size_t dim) {
  return (2 * analogies.words + kAtOnce) * row_stride(dim) * sizeof(float) +
         kAtOnce * row_stride(analogies.words) * sizeof(float);
}

Metrics wait_answer(Stream& stream, Store& store, Analogies const& analogies, MatrixView<float const> rows) {
  Answers answers(stream, rows);
  std::vector<std::int64_t> right(analogies.sections.size()), asked(analogies.sections.size());
  std::span<Analogy const> const questions = analogies.questions;
  for (Analogy const& question : questions) ++asked[question.section];
  auto const ranks = static_cast<std::size_t>(store.ranks());
  LongLoop progress("evaluating", static_cast<double>(questions.size()), number(store.rank()) != 0);
  for (std::size_t b = number(store.rank()); b * kAtOnce < questions.size(); b += ranks) {
    store.throw_if_failed();
    if (progress.stops(static_cast<double>(b * kAtOnce))) break;
    answers.add(questions.subspan(b * kAtOnce, std::min(kAtOnce, questions.size() - b * kAtOnce)), right);
  }
  store.wait_allreduce(right);

  auto const share = [](std::int64_t some, std::size_t all) {
    return static_cast<double>(some) / static_cast<double>(std::max<std::size_t>(all, 1));
  };
  std::int64_t const sum = std::accumulate(right.begin(), right.end(), std::int64_t{0});
  Metrics metrics{.json = {{"accuracy", share(sum, questions.size())},
                           {"questions", questions.size()},
                           {"left_out", analogies.left_out},
                           {"sections", nlohmann::json::object()}},
                  .text = fmt::format("accuracy {:.4f} of {}", share(sum, questions.size()),
                                      with_count(questions.size(), "question")),
                  .quality = share(sum, questions.size())};
  if (analogies.left_out > 0) {
    metrics.text += fmt::format(" ({} with other words than the {} most frequent are left out)", analogies.left_out,
                                analogies.words);
  }
  for (std::size_t s = 0; s < right.size(); ++s) {
    if (asked[s] == 0) continue;
    metrics.json["sections"][analogies.sections[s]] = share(right[s], static_cast<std::size_t>(asked[s]));
  }
  return metrics;
}

}  // namespace gpups::trainer
