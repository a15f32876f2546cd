// SPDX-License-Identifier: Apache-2.0
// Synthetic text of click data, and an independent, slow reader of it that splits strings.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "trainer/tasks/click/samples.hpp"
#include "trainer/tasks/click/text/text_cells.hpp"

namespace gpups::test {

// A layout of three numbers and three categories, one category of each kind.
inline trainer::Layout small_layout() { return trainer::make_layout(3, 3, {"C2"}, {"C3"}); }

inline std::vector<std::string> split(std::string const& text, char at) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

struct OracleSample {
  float label = 0;
  std::vector<float> numbers;
  std::vector<std::vector<std::pair<std::uint64_t, float>>> values;  // of each category: id and weight
};

// Reads a line that is a sample.
inline OracleSample oracle_sample(trainer::Layout const& layout, std::string const& line) {
  OracleSample sample;
  auto const cells = split(line, '\t');
  sample.label = std::strtof(cells.at(0).c_str(), nullptr);
  std::size_t at = 1;
  for (std::size_t f = 0; f < layout.numbers.size(); ++f, ++at) {
    sample.numbers.push_back(cells.at(at).empty() ? NAN : std::strtof(cells.at(at).c_str(), nullptr));
  }
  for (auto const& field : layout.categories) {
    auto& values = sample.values.emplace_back();
    auto const parts =
        field.kind == trainer::CategoryField::Kind::kOne ? std::vector{cells.at(at)} : split(cells.at(at), '|');
    for (std::string part : parts) {
      float weight = 1;
      if (auto const colon = part.rfind(':');
          field.kind == trainer::CategoryField::Kind::kWeighted && colon != part.npos) {
        weight = std::strtof(part.c_str() + colon + 1, nullptr);
        part.resize(colon);
      }
      values.emplace_back(trainer::value_id(part), weight);
    }
    ++at;
  }
  return sample;
}

// Expects that row i of the batch is the sample.
inline void expect_sample(trainer::Layout const& layout, trainer::SampleBatch const& batch, std::size_t i,
                          OracleSample const& sample) {
  EXPECT_EQ(batch.labels.at(i), sample.label);
  std::size_t const numbers = layout.numbers.size(), categories = layout.categories.size();
  for (std::size_t f = 0; f < numbers; ++f) {
    float const got = batch.numbers.at(i * numbers + f), wanted = sample.numbers[f];
    EXPECT_TRUE(std::isnan(wanted) ? std::isnan(got) : got == wanted) << got << " is not " << wanted;
  }
  for (std::size_t f = 0; f < categories; ++f) {
    std::size_t const cell = i * categories + f;
    std::size_t const begin = batch.offsets.empty() ? cell : batch.offsets.at(cell);
    std::size_t const end = batch.offsets.empty() ? cell + 1 : batch.offsets.at(cell + 1);
    ASSERT_EQ(end - begin, sample.values[f].size());
    for (std::size_t v = 0; v < end - begin; ++v) {
      EXPECT_EQ(batch.values.at(begin + v), sample.values[f][v].first);
      EXPECT_EQ(batch.weights.empty() ? 1.0F : batch.weights.at(begin + v), sample.values[f][v].second);
    }
  }
}

// Makes random lines of samples of a layout, with cells of all forms.
class SyntheticText {
 public:
  explicit SyntheticText(trainer::Layout layout, unsigned seed = 1) : layout_(std::move(layout)), random_(seed) {}

  std::string line() {
    std::string text = pick({"0", "1", "0", "1", "0.25"});
    for (std::size_t f = 0; f < layout_.numbers.size(); ++f) {
      text += "\t" + pick({"", "0", "-2", "17", "123456789", "-999999999999", "0.5", "1e3", "-1.25e-3", "1e-60"});
    }
    for (auto const& field : layout_.categories) text += "\t" + cell(field.kind);
    return text;
  }
  std::vector<std::string> lines(std::size_t count) {
    std::vector<std::string> all;
    while (all.size() < count) all.push_back(line());
    return all;
  }

 private:
  std::string pick(std::vector<std::string> const& from) { return from[random_() % from.size()]; }
  std::string cell(trainer::CategoryField::Kind kind) {
    std::string text = pick({"", "0123abcd", "ffffffff", "fffffffe", "ABCDEF01", "a:b|c", "longer than eight", "x"});
    if (kind == trainer::CategoryField::Kind::kOne) return text;
    text = pick({"", "deadbeef", "0000000a", "word"});
    if (kind == trainer::CategoryField::Kind::kWeighted) text += pick({"", ":0.5", ":-2", ":more:1e2"});
    return random_() % 3 == 0 ? text + "|" + cell(kind) : text;
  }

  trainer::Layout layout_;
  std::mt19937 random_;
};

inline std::string joined(std::vector<std::string> const& lines, std::string const& end = "\n") {
  std::string text;
  for (auto const& line : lines) text += line + end;
  return text;
}

}  // namespace gpups::test
