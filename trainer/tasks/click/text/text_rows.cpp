// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/text/text_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/tasks/click/text/text_cells.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kGrowRows = 1024;

// Parses lines one by one.
class RowParser {
 public:
  RowParser(Layout const& layout, char const* end, SampleBatch& out) : layout_(layout), end_(end), out_(out) {
    for (CategoryField const& field : layout.categories) {
      lists_ = lists_ || field.kind != CategoryField::Kind::kOne;
      weights_ = weights_ || field.kind == CategoryField::Kind::kWeighted;
    }
    out.samples = 0;
    out.offsets.clear();
    out.weights.clear();
    if (lists_) {
      out.values.clear();
      out.offsets.push_back(0);
    }
  }

  // Adds the sample of the line at `at`, or sets `wrong` to what is wrong with the line. Returns the next line.
  char const* add_line(char const* at, std::string& wrong) {
    if (out_.samples == rows_) grow();
    at_ = at;
    if (label() && numbers() && (lists_ ? category_lists() : categories())) {
      ++out_.samples;
      return at_;
    }
    remove_bad_line();
    auto const* const stop = static_cast<char const*>(std::memchr(at, '\n', static_cast<std::size_t>(end_ - at)));
    wrong = why_bad(std::string_view(at, static_cast<std::size_t>(stop - at)));
    return stop + 1;
  }

  // Resizes arrays to the samples that were added.
  void finish() {
    out_.labels.resize(out_.samples);
    out_.numbers.resize(out_.samples * layout_.numbers.size());
    if (!lists_) out_.values.resize(out_.samples * layout_.categories.size());
  }

 private:
  bool last(std::size_t column) const { return column + 1 == layout_.columns(); }

  // Sets `text` to the cell at at_, and moves at_ to the next one. Returns false if the cell does not end as column
  // `column` must.
  bool cell(std::size_t column, std::string_view& text) {
    char const* const end = end_of_cell(at_);
    if ((*end == '\n') != last(column)) return false;
    text = std::string_view(at_, static_cast<std::size_t>(end - at_));
    if (last(column) && text.ends_with('\r')) text.remove_suffix(1);
    at_ = end + 1;
    return true;
  }

  bool label() {
    float& label = out_.labels[out_.samples];
    if ((at_[0] == '0' || at_[0] == '1') && at_[1] == '\t') {
      label = static_cast<float>(at_[0] - '0');
      at_ += 2;
      return true;
    }
    std::string_view text;
    if (!cell(0, text)) return false;
    reason_ = read_label(text, label);
    return reason_.empty();
  }

  bool numbers() {
    std::size_t const count = layout_.numbers.size();
    float* const row = out_.numbers.data() + out_.samples * count;
    for (std::size_t f = 0; f < count; ++f) {
      char const end = last(1 + f) ? '\n' : '\t';
      if (*at_ == end) {
        row[f] = kMissing;
        ++at_;
        continue;
      }
      bool const negative = *at_ == '-';
      char const* const digits = at_ + negative;
      char const* stop = digits;
      std::int32_t value = 0;
      while (stop < digits + 9 && static_cast<unsigned char>(*stop - '0') < 10) value = value * 10 + (*stop++ - '0');
      if (stop != digits && *stop == end) {
        row[f] = static_cast<float>(negative ? -value : value);
        at_ = stop + 1;
        continue;
      }
      std::string_view text;
      if (!cell(1 + f, text)) return false;
      reason_ = read_number(text, layout_.numbers[f], row[f]);
      if (!reason_.empty()) return false;
    }
    return true;
  }

  // Reads categories with one value each; value f of a sample has a fixed place.
  bool categories() {
    std::size_t const count = layout_.categories.size(), first = 1 + layout_.numbers.size();
    std::uint64_t* const row = out_.values.data() + out_.samples * count;
    for (std::size_t f = 0; f < count; ++f) {
      char const end = last(first + f) ? '\n' : '\t';
      if (*at_ == end) {
        row[f] = kMissingId;
        ++at_;
        continue;
      }
      if (auto const number = at_[8] == end ? hexadecimal_number(at_) : std::nullopt) {
        row[f] = *number;
        at_ += 9;
        continue;
      }
      std::string_view text;
      if (!cell(first + f, text)) return false;
      row[f] = value_id(text);
    }
    return true;
  }

  bool category_lists() {
    std::size_t const first = 1 + layout_.numbers.size();
    for (std::size_t f = 0; f < layout_.categories.size(); ++f) {
      std::string_view text;
      if (!cell(first + f, text)) return false;
      reason_ = read_values(text, layout_.categories[f], out_.values, weights_ ? &out_.weights : nullptr);
      if (!reason_.empty()) return false;
      out_.offsets.push_back(static_cast<std::uint32_t>(out_.values.size()));
    }
    return true;
  }

  // Removes the values that a bad line has added.
  void remove_bad_line() {
    if (!lists_) return;
    out_.offsets.resize(out_.samples * layout_.categories.size() + 1);
    out_.values.resize(out_.offsets.back());
    if (weights_) out_.weights.resize(out_.offsets.back());
  }

  std::string why_bad(std::string_view line) {
    auto const columns = static_cast<std::size_t>(std::count(line.begin(), line.end(), '\t')) + 1;
    if (columns == layout_.columns()) return std::exchange(reason_, {});
    reason_.clear();
    return fmt::format("has {} field{}, not {}", columns, columns == 1 ? "" : "s", layout_.columns());
  }

  void grow() {
    rows_ = std::max(rows_ + rows_ / 2, kGrowRows);
    out_.labels.resize(rows_);
    out_.numbers.resize(rows_ * layout_.numbers.size());
    if (!lists_) out_.values.resize(rows_ * layout_.categories.size());
  }

  Layout const& layout_;
  char const* end_;  // of the text
  SampleBatch& out_;
  bool lists_ = false, weights_ = false;
  std::size_t rows_ = 0;  // that out_ has room for
  char const* at_ = nullptr;
  std::string reason_;
};

}  // namespace

void parse_rows(Layout const& layout, std::string_view text, std::string_view path, std::uint64_t first_line,
                SampleBatch& out, BadLines& bad) {
  GPUPS_ASSERT(text.empty() || text.ends_with('\n'));
  char const* const end = text.data() + text.size();
  RowParser parser(layout, end, out);
  std::string wrong;
  std::uint64_t number = first_line;
  for (char const* at = text.data(); at != end; ++number) {
    if (*at == '\n' || (*at == '\r' && at[1] == '\n')) {
      at += *at == '\n' ? 1 : 2;
      continue;
    }
    ++bad.lines;
    at = parser.add_line(at, wrong);
    if (wrong.empty()) continue;
    bad.add(fmt::format("{}:{}", path, number), wrong);
    wrong.clear();
  }
  parser.finish();
}

}  // namespace gpups::trainer
