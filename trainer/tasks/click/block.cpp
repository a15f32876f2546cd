// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/block.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/base/check.hpp"

namespace gpups::trainer {
namespace {

std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

// Builds a block: appends columns, and fills in their entries.
class Writer {
 public:
  Writer(std::size_t columns, std::size_t bytes_at_most) {
    bytes_.reserve(bytes_at_most);
    bytes_.resize(padded(columns * sizeof(ColumnEntry)));
  }

  // Appends a column of `count` elements; element i is value_of(i).
  template <class T, class ValueOf>
  void add(std::size_t count, ValueOf value_of, std::uint32_t missing = 0) {
    std::size_t const begin = bytes_.size();
    bytes_.resize(begin + padded(count * sizeof(T)));
    T* const column = reinterpret_cast<T*>(bytes_.data() + begin);
    for (std::size_t i = 0; i < count; ++i) column[i] = static_cast<T>(value_of(i));
    reinterpret_cast<ColumnEntry*>(bytes_.data())[column_++] = {static_cast<std::uint32_t>(begin), sizeof(T), missing};
  }

  // Appends a column of ids, in 4 bytes each if all of them fit.
  template <class IdOf>
  void add_ids(std::size_t count, IdOf id_of) {
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < count; ++i) any |= id_of(i) == kMissingId ? 0 : id_of(i);
    if (any >> 32 != 0) return add<std::uint64_t>(count, id_of);
    std::uint32_t const missing = unused(count, id_of);
    add<std::uint32_t>(
        count, [&](std::size_t i) { return id_of(i) == kMissingId ? missing : id_of(i); }, missing);
  }

  std::vector<std::byte> finish() {
    bytes_.shrink_to_fit();
    return std::move(bytes_);
  }

 private:
  // Returns the largest 32-bit number that is not an id. It is one of the count + 1 largest numbers.
  template <class IdOf>
  static std::uint32_t unused(std::size_t count, IdOf id_of) {
    constexpr std::uint64_t kLargest = 0xFFFFFFFFU;
    std::vector<bool> is_id(count + 1);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t const below = kLargest - id_of(i);  // far above count for kMissingId
      if (below <= count) is_id[below] = true;
    }
    auto const below = std::find(is_id.begin(), is_id.end(), false) - is_id.begin();
    return static_cast<std::uint32_t>(kLargest - static_cast<std::uint64_t>(below));
  }

  std::vector<std::byte> bytes_;
  std::size_t column_ = 0;
};

// Appends the columns of a category of many values. In the batch its values are not contiguous.
void add_lists(Writer& out, SampleBatch const& from, std::size_t categories, std::size_t f, bool weighted) {
  std::vector<std::uint32_t> offsets(1), places;
  for (std::size_t i = 0; i < from.samples; ++i) {
    std::uint32_t const* const cell = from.offsets.data() + i * categories + f;
    for (std::uint32_t place = cell[0]; place < cell[1]; ++place) places.push_back(place);
    offsets.push_back(static_cast<std::uint32_t>(places.size()));
  }
  out.add<std::uint32_t>(offsets.size(), [&](std::size_t i) { return offsets[i]; });
  out.add_ids(places.size(), [&](std::size_t i) { return from.values[places[i]]; });
  if (weighted) out.add<float>(places.size(), [&](std::size_t i) { return from.weights[places[i]]; });
}

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

// Both test the bits of a float, so that loops are vectorised and do not depend on comparisons with NaN.
bool infinite(float value) { return (bits_of(value) & 0x7FFFFFFFU) == 0x7F800000U; }
bool no_number(float value) { return (bits_of(value) & 0x7FFFFFFFU) > 0x7F800000U; }

template <class T, class Holds>
bool all(std::span<T const> values, Holds holds) {
  unsigned failed = 0;
  for (T const& value : values) failed |= holds(value) ? 0U : 1U;
  return failed == 0;
}

// Checks a block column by column: first the entry of a column, then its elements.
class Checker {
 public:
  Checker(BlockShape const& shape, std::span<std::byte const> block, std::size_t samples)
      : shape_(shape), block_(block), samples_(samples) {}

  std::string check() {
    end_ = padded(shape_.columns * sizeof(ColumnEntry));
    if (end_ > block_.size()) return "it is too short for its columns";
    std::string wrong = check_label();
    for (std::size_t f = 0; f < shape_.numbers && wrong.empty(); ++f) wrong = check_number();
    for (auto const& category : shape_.categories) {
      if (wrong.empty())
        wrong = category.kind == CategoryField::Kind::kOne ? check_ids(samples_) : check_lists(category.kind);
    }
    if (wrong.empty() && end_ != block_.size()) return "it is longer than its columns";
    return wrong;
  }

 private:
  // Checks the entry of the next column, which must have `count` elements of `width` bytes (0: of 4 or 8 bytes), and
  // makes it the current column. Returns what is wrong, or an empty text.
  std::string take(std::size_t width, std::size_t count) {
    auto const& entry = reinterpret_cast<ColumnEntry const*>(block_.data())[column_++];
    if (entry.begin != end_) return fmt::format("column {} begins at {}, not {}", column_ - 1, entry.begin, end_);
    if (width == 0 ? entry.width != 4 && entry.width != 8 : entry.width != width) {
      return fmt::format("elements of column {} have {} bytes", column_ - 1, entry.width);
    }
    std::size_t const bytes = padded(count * entry.width);
    if (bytes > block_.size() - end_) return fmt::format("column {} ends after the end of the block", column_ - 1);
    now_ = block_.data() + end_;
    end_ += bytes;
    return {};
  }
  template <class T>
  std::span<T const> column(std::size_t count) const {
    return {reinterpret_cast<T const*>(now_), count};
  }

  std::string check_label() {
    bool const narrow = reinterpret_cast<ColumnEntry const*>(block_.data())->width == 1;
    std::string wrong = take(narrow ? 1 : sizeof(float), samples_);
    if (!wrong.empty()) return wrong;
    bool const good = narrow
                          ? all(column<std::uint8_t>(samples_), [](std::uint8_t label) { return label <= 1; })
                          : all(column<float>(samples_), [](float label) { return bits_of(label) <= bits_of(1.0F); });
    return good ? "" : "a label is not in [0, 1]";
  }
  std::string check_number() {
    std::string wrong = take(sizeof(float), samples_);
    if (!wrong.empty()) return wrong;
    return all(column<float>(samples_), [](float x) { return !infinite(x); }) ? "" : "a number is infinite";
  }
  std::string check_ids(std::size_t count) { return take(0, count); }
  std::string check_lists(CategoryField::Kind kind) {
    std::string wrong = take(sizeof(std::uint32_t), samples_ + 1);
    if (!wrong.empty()) return wrong;
    auto const offsets = column<std::uint32_t>(samples_ + 1);
    unsigned falling = offsets[0] != 0 ? 1 : 0;
    for (std::size_t i = 0; i < samples_; ++i) falling |= offsets[i + 1] < offsets[i] ? 1U : 0U;
    if (falling != 0) return "offsets of values decrease";
    std::size_t const values = offsets[samples_];
    values_ += values;
    if (values_ > kBlockValuesMax) return fmt::format("it has more than {} values", kBlockValuesMax);
    wrong = check_ids(values);
    if (!wrong.empty() || kind != CategoryField::Kind::kWeighted) return wrong;
    wrong = take(sizeof(float), values);
    if (!wrong.empty()) return wrong;
    return all(column<float>(values), [](float x) { return !infinite(x) && !no_number(x); }) ? ""
                                                                                             : "a weight is not finite";
  }

  BlockShape const& shape_;
  std::span<std::byte const> block_;
  std::size_t samples_;
  std::size_t column_ = 0, end_ = 0, values_ = 0;
  std::byte const* now_ = nullptr;  // the current column
};

std::size_t bytes_at_most(BlockShape const& shape, SampleBatch const& from) {
  std::size_t const padding = 8, lists = shape.lists ? shape.categories.size() : 0;
  return (shape.columns + 1) * (sizeof(ColumnEntry) + padding) + from.samples * (1 + shape.numbers) * sizeof(float) +
         (from.samples + 1) * lists * sizeof(std::uint32_t) +
         from.values.size() * (sizeof(std::uint64_t) + sizeof(float));
}

}  // namespace

BlockShape::BlockShape(Layout const& layout) : numbers(layout.numbers.size()), columns(1 + numbers) {
  for (CategoryField const& field : layout.categories) {
    bool const many = field.kind != CategoryField::Kind::kOne, weights = field.kind == CategoryField::Kind::kWeighted;
    categories.push_back({.kind = field.kind, .values = columns + many});
    columns += 1U + many + weights;
    lists = lists || many;
    weighted = weighted || weights;
  }
}

std::vector<std::byte> make_block(BlockShape const& shape, SampleBatch const& from) {
  GPUPS_REQUIRE(from.values.size() <= kBlockValuesMax,
                "{} consecutive samples have {} values (a block of samples has at most {}): shorten long lists",
                from.samples, from.values.size(), kBlockValuesMax);
  std::size_t const n = from.samples, categories = shape.categories.size();
  Writer out(shape.columns, bytes_at_most(shape, from));
  auto const label = [&](std::size_t i) { return from.labels[i]; };
  bool const whole = all(std::span(from.labels), [](float x) { return x == 0 || x == 1; });
  whole ? out.add<std::uint8_t>(n, label) : out.add<float>(n, label);
  for (std::size_t f = 0; f < shape.numbers; ++f) {
    out.add<float>(n, [&](std::size_t i) { return from.numbers[i * shape.numbers + f]; });
  }
  for (std::size_t f = 0; f < categories; ++f) {
    if (shape.categories[f].kind != CategoryField::Kind::kOne) {
      add_lists(out, from, categories, f, shape.categories[f].kind == CategoryField::Kind::kWeighted);
    } else if (shape.lists) {
      out.add_ids(n, [&](std::size_t i) { return from.values[from.offsets[i * categories + f]]; });
    } else {
      out.add_ids(n, [&](std::size_t i) { return from.values[i * categories + f]; });
    }
  }
  return out.finish();
}

std::string check_block(BlockShape const& shape, std::span<std::byte const> block, std::size_t samples) {
  return Checker(shape, block, samples).check();
}

}  // namespace gpups::trainer
