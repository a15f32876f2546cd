// SPDX-License-Identifier: Apache-2.0
// Gradients of many tables, from lists of every form, are merged without a wait, and the merged rows are updated: the
// host and a GPU give the rows, sums and errors of a simple reference, in a number of launches that does not depend on
// the number of tables and lists.
#include "kernels/sum/merge_gradients.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <utility>

#include "kernels/codec/pack_sums.hpp"
#include "kernels/rows/number_type.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/rows/selected_rows.hpp"
#include "kernels/update/update_rows.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"
#include "tests/support/stream_calls.hpp"

namespace gpups::test::merge_gradients_test {
namespace {

using kernels::kNoRow;
using Ids = std::vector<std::uint32_t>;
using Sums = std::vector<std::int64_t>;
__extension__ typedef __int128 Wide;

enum class Form { kPlain, kPositions, kMarked, kPacked };

// A list on the host.
struct ListInput {
  Form form;
  Ids ids;
  std::vector<bool> has_sum;  // (ids)
  Sums sums;                  // (ids, dim), zeros where there is no sum
};

struct TableInput {
  std::size_t dim, rows;
  std::vector<ListInput> lists;

  // Returns the number of rows whose sums are added up in the first list.
  std::size_t rows_in_place() const {
    bool const may_be = !lists.empty() && (lists[0].form == Form::kPlain || lists[0].form == Form::kPositions);
    return may_be ? lists[0].ids.size() : 0;
  }
};

// The merged rows of a table.
struct Merged {
  Ids ids;
  Sums sums;  // (ids, stride)
  std::uint32_t bad_row = kNoRow;

  bool operator==(Merged const&) const = default;
};

TableInput random_table(Random& random, std::size_t number) {
  TableInput table{.dim = std::array<std::size_t, 6>{16, 1, 7, 100, 64, 130}[number % 6],
                   .rows = 1 + below(random, 200),
                   .lists = {}};
  std::size_t const lists = number % 9 == 4 ? 0 : below(random, 9);
  for (std::size_t l = 0; l < lists; ++l) {
    ListInput list{.form = static_cast<Form>(below(random, 4)), .ids = {}, .has_sum = {}, .sums = {}};
    list.ids = distinct_ids(random, below(random, 7) == 0 ? 0 : below(random, table.rows + 1), table.rows);
    for (std::size_t i = 0; i < list.ids.size(); ++i) {
      list.has_sum.push_back(list.form != Form::kMarked || below(random, 3) > 0);
      std::uint64_t const bits = 1 + below(random, 60);
      for (std::size_t j = 0; j < table.dim; ++j) {
        auto const sum = static_cast<std::int64_t>(random()) >> (64 - bits);
        list.sums.push_back(list.has_sum[i] && below(random, 9) > 0 ? sum : 0);
      }
    }
    table.lists.push_back(std::move(list));
  }
  return table;
}

Merged reference(TableInput const& table) {
  Merged merged;
  std::map<std::uint32_t, std::vector<Wide>> sums;
  for (auto const& list : table.lists) {
    for (std::size_t i = 0; i < list.ids.size(); ++i) {
      auto& sum = sums[list.ids[i]];
      if (sum.empty()) {
        sum.resize(table.dim);
        merged.ids.push_back(list.ids[i]);
      }
      for (std::size_t j = 0; j < table.dim; ++j) sum[j] += list.sums[i * table.dim + j];
    }
  }
  for (auto const id : merged.ids) {
    for (std::size_t j = 0; j < row_stride(table.dim); ++j) {
      Wide const sum = j < table.dim ? sums[id][j] : 0;
      merged.sums.push_back(static_cast<std::int64_t>(sum));
      if (sum != merged.sums.back()) merged.bad_row = std::min(merged.bad_row, id);
    }
  }
  return merged;
}

// The lists and results of all tables on a device.
class Tables {
 public:
  Tables(Stream& stream, std::vector<TableInput> const& inputs) : stream_(stream), inputs_(inputs) {
    lists_.resize(inputs.size());
    counts_ = Array<std::uint32_t>(stream.device(), inputs.size());
    bad_rows_ = to_device(stream, Ids(inputs.size(), kNoRow));
    for (std::size_t t = 0; t < inputs.size(); ++t) add(inputs[t], lists_[t]);
    for (std::size_t t = 0; t < inputs.size(); ++t) {
      merges_.push_back({.lists = lists_[t],
                         .dim = inputs[t].dim,
                         .mark = marks_[t].ref(),
                         .epoch = 0,
                         .ids = ids_[t],
                         .sums = sums_[t],
                         .count = counts_.view().slice(t, 1),
                         .bad_row = bad_rows_.view().slice(t, 1),
                         .in_place = first_[t]});
    }
  }

  void merge(std::uint32_t epoch) {
    for (std::size_t t = 0; t < merges_.size(); ++t) {
      merges_[t].epoch = epoch;
      auto const& before = before_[t];
      memory::copy(stream_, first_[t].data(), stream_.device(), before.data(), Device::host(),
                   before.size() * sizeof before[0]);
    }
    stream_.wait();
    StreamCallCounter const counter(stream_);
    kernels::merge_gradients(stream_, merges_);
    bool const host = stream_.device().is_host();
    EXPECT_EQ(counter.calls(), (host ? StreamCalls{1, 0, 0} : StreamCalls{5, 0, 1}));
  }
  // Returns the rows in place and those after them.
  Merged merged(std::size_t t) {
    std::size_t const count = to_host(stream_, counts_.view())[t], stride = row_stride(inputs_[t].dim);
    Merged merged{inputs_[t].rows_in_place() > 0 ? inputs_[t].lists[0].ids : Ids{}, {}, 0};
    auto const in_place = to_host(stream_, first_[t].flat());
    auto const positions = merged.ids.empty() ? Ids{} : to_host(stream_, lists_[t][0].positions);
    for (std::size_t i = 0; i < merged.ids.size(); ++i) {
      auto const from = in_place.begin() + static_cast<std::ptrdiff_t>((positions.empty() ? i : positions[i]) * stride);
      merged.sums.insert(merged.sums.end(), from, from + static_cast<std::ptrdiff_t>(stride));
    }
    auto const ids = to_host(stream_, ids_[t].view().slice(0, count));
    auto const sums = to_host(stream_, sums_[t].view().slice(0, count).flat());
    merged.ids.insert(merged.ids.end(), ids.begin(), ids.end());
    merged.sums.insert(merged.sums.end(), sums.begin(), sums.end());
    merged.bad_row = to_host(stream_, bad_rows_.view())[t];
    return merged;
  }
  kernels::MergeGradients const& arguments(std::size_t t) const { return merges_[t]; }

 private:
  void add(TableInput const& input, std::vector<kernels::GradientList>& lists) {
    std::size_t total = 0;
    for (auto const& list : input.lists) {
      lists.push_back(there(list, input.dim));
      total += list.ids.size();
      if (lists.size() == 1)
        first_.push_back(input.rows_in_place() > 0 ? matrices_.back() : MatrixView<std::int64_t>());
    }
    if (lists.empty()) first_.emplace_back();
    before_.push_back(to_host(stream_, first_.back().flat()));
    total -= input.rows_in_place();
    marks_.push_back(rows(stream_, std::vector<std::uint64_t>(input.rows, 0), input.rows, 1));
    ids_.emplace_back(stream_.device(), total);
    sums_.emplace_back(stream_.device(), total, input.dim);
  }
  kernels::GradientList there(ListInput const& list, std::size_t dim) {
    std::size_t const n = list.ids.size(), stride = row_stride(dim);
    words_.push_back(to_device(stream_, list.ids));
    kernels::GradientList made{.ids = words_.back()};
    Sums padded;
    Ids bitmap(kernels::bitmap_words(n), 0), order;
    for (std::uint32_t i = 0; i < n; ++i) {
      if (!list.has_sum[i]) continue;
      bitmap[i / 32] |= 1U << i % 32;
      order.push_back(static_cast<std::uint32_t>(order.size()));
      for (std::size_t j = 0; j < stride; ++j) padded.push_back(j < dim ? list.sums[i * dim + j] : 0);
    }
    if (list.form == Form::kPositions && n > 0) {  // every second row, from the last to the first
      Sums const in_order = std::exchange(padded, Sums(2 * n * stride, -1));
      for (std::size_t i = 0; i < n; ++i) {
        order[i] = static_cast<std::uint32_t>(2 * (n - i) - 1);
        for (std::size_t j = 0; j < stride; ++j) padded[order[i] * stride + j] = in_order[i * stride + j];
      }
      words_.push_back(to_device(stream_, order));
      made.positions = words_.back();
    }
    matrices_.push_back(matrix(stream_, padded, padded.size() / stride, dim));
    if (list.form != Form::kPacked) made.sums = matrices_.back();
    if (list.form == Form::kMarked && n > 0) {
      words_.push_back(to_device(stream_, bitmap));
      made.marked = words_.back();
    } else if (list.form == Form::kPacked) {
      auto const rows_there = to_device(stream_, order);
      packed_.push_back(kernels::wait_pack_sums(stream_, {matrices_.back(), rows_there}));
      made.packed = {packed_.back().memory.view().slice(0, packed_.back().size), n, dim};
      starts_.emplace_back(stream_.device(), kernels::packed_blocks(n) + 1);
      EXPECT_TRUE(kernels::wait_find_packed_rows(stream_, made.packed, starts_.back()));
      made.starts = starts_.back();
    }
    return made;
  }

  Stream& stream_;
  std::vector<TableInput> const& inputs_;
  std::vector<std::vector<kernels::GradientList>> lists_;
  std::vector<MatrixView<std::int64_t>> first_;  // the sums of the first list, if they are added to in place
  std::vector<Sums> before_;                     // the same, before that
  std::vector<Array<std::uint32_t>> words_, ids_;
  std::vector<Array<std::uint64_t>> starts_;
  std::deque<Matrix<std::int64_t>> matrices_;
  std::vector<Matrix<std::int64_t>> sums_;
  std::vector<kernels::PackedBytes> packed_;
  std::vector<kernels::RowStorage<std::uint64_t>> marks_;
  std::vector<kernels::MergeGradients> merges_;
  Array<std::uint32_t> counts_, bad_rows_;
};

class MergeGradients : public OnDevice {};

TEST_P(MergeGradients, GivesRowsInOrderOfFirstUse) {
  for (std::size_t const count : {1, 2, 40}) {
    Random random(count);
    std::vector<TableInput> inputs;
    for (std::size_t t = 0; t < count; ++t) inputs.push_back(random_table(random, t));
    for (int const threads : {1, 3}) {
      Stream stream(GetParam(), threads);
      Tables tables(stream, inputs);
      // Marks of earlier epochs do not matter, whether these are smaller or larger.
      for (std::uint32_t const epoch : {7U, 0xFFFFFFFFU, 1U}) {
        tables.merge(epoch);
        for (std::size_t t = 0; t < count; ++t) {
          EXPECT_EQ(tables.merged(t), reference(inputs[t])) << t << " of " << count << ", epoch " << epoch;
        }
      }
    }
  }
}

// Overflows that later additions undo are none.
TEST_P(MergeGradients, ReportsSmallestRowWhoseSumOverflows) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  for (std::size_t const dim : {1, 9, 80}) {
    for (Form const form : {Form::kPlain, Form::kPositions, Form::kMarked, Form::kPacked}) {
      auto const list = [&](Ids const& ids, Sums const& last) {
        ListInput made{.form = form, .ids = ids, .has_sum = std::vector<bool>(ids.size(), true), .sums = {}};
        for (auto const sum : last) {
          made.sums.resize(made.sums.size() + dim - 1, 1);
          made.sums.push_back(sum);
        }
        return made;
      };
      TableInput const fits{dim, 10, {list({4, 2}, {kMost, 5}), list({2, 4}, {kMost - 5, 9}), list({4}, {-9})}};
      TableInput const high{dim, 10, {list({8, 4, 2}, {1, kMost, kMost}), list({2, 8, 4}, {1, 1, 1})}};
      TableInput const low{dim, 10, {list({3, 5}, {-kMost, 0}), list({3}, {-1}), list({3}, {-1})}};
      // The sum has overflowed twice, and it is the same modulo 2^64.
      TableInput const twice{dim, 10, {list({6, 7}, {kMost, kMost}), list({7, 6}, {kMost, kMost}), list({7}, {2})}};
      std::vector<TableInput> const inputs{fits, high, low, twice};
      Stream stream(GetParam(), 2);
      Tables tables(stream, inputs);
      tables.merge(1);
      EXPECT_EQ(tables.merged(0).bad_row, kNoRow);
      EXPECT_EQ(tables.merged(1).bad_row, 2U);
      EXPECT_EQ(tables.merged(2).bad_row, 3U);
      EXPECT_EQ(tables.merged(3).bad_row, 6U);
      for (std::size_t t = 0; t < inputs.size(); ++t) EXPECT_EQ(tables.merged(t), reference(inputs[t]));
    }
  }
}

// The rows of many tables with each kind of optimizer and data type.
struct UpdatedTables {
  std::vector<kernels::ValueStorage> values;
  std::vector<kernels::RowStorage<float>> state;
  std::vector<kernels::RowStorage<std::uint32_t>> lifecycle;
  std::vector<kernels::RowStorage<std::uint64_t>> keys;
  Array<std::uint32_t> bad_rows;
  std::vector<kernels::UpdateRows> updates;

  UpdatedTables(Stream& stream, std::vector<TableInput> const& inputs, Tables const& merged) {
    bad_rows = to_device(stream, Ids(inputs.size(), kNoRow));
    for (std::size_t t = 0; t < inputs.size(); ++t) {
      Optimizer optimizer;
      optimizer.kind = static_cast<Optimizer::Kind>(t % 6);
      auto const type = static_cast<DataType>(t / 6 % 3);
      std::size_t const n = inputs[t].rows, dim = inputs[t].dim, columns = kernels::state_columns(optimizer, dim);
      values.emplace_back(stream.device(), dim, type);
      values.back().reserve(stream, n);
      each_chunk(stream, values.back().ref().as<std::byte>(), 1, [&](std::size_t, View<std::byte> chunk) {
        std::size_t const row_bytes = kernels::row_stride(dim, type) * kernels::bytes_of_number(type);
        memory::fill_bytes(stream, chunk.data(), 0, n * row_bytes);
      });
      state.push_back(rows(stream, std::vector<float>(n * columns, 0.5F), n, columns));
      lifecycle.push_back(rows(stream, Ids(n * kernels::kLifecycleWords, 0), n, kernels::kLifecycleWords));
      std::vector<std::uint64_t> numbers;
      for (auto const key : distinct_keys(n)) numbers.push_back(number(key));
      keys.push_back(rows(stream, numbers, n, 1));
      auto const& from = merged.arguments(t);
      updates.push_back({.ids = from.ids,
                         .sums = from.sums,
                         .values = values.back().ref(),
                         .state = state.back().ref(),
                         .lifecycle = lifecycle.back().ref(),
                         .dim = dim,
                         .grid_log2 = -60,
                         .scale = 0.25,
                         .optimizer = optimizer,
                         .rate = 0.1F,
                         .step = 3,
                         .admission_count = 1,
                         .bad_row = bad_rows.view().slice(t, 1),
                         .keys = keys.back().const_ref(),
                         .rounding_seed = t,
                         .count = from.count});
    }
  }
  std::vector<std::byte> bytes(Stream& stream, std::size_t t, std::size_t n) const {
    auto const& u = updates[t];
    std::vector<std::byte> all(n * u.values.stride * kernels::bytes_of_number(u.values.type));
    each_chunk(stream, u.values.as<std::byte>(), 1, [&](std::size_t, View<std::byte> chunk) {
      memory::copy(stream, all.data(), Device::host(), chunk.data(), stream.device(), all.size());
    });
    auto const add = [&](auto const& words) {
      auto const* const from = reinterpret_cast<std::byte const*>(words.data());
      all.insert(all.end(), from, from + words.size() * sizeof words[0]);
    };
    if (u.state.stride > 0) add(to_host(stream, u.state, n));
    add(to_host(stream, u.lifecycle, n));
    add(to_host(stream, bad_rows.view()));
    return all;
  }
};

TEST_P(MergeGradients, UpdateReadsTheNumberOfRows) {
  Random random(5);
  std::vector<TableInput> inputs;
  for (std::size_t t = 0; t < 36; ++t) inputs.push_back(random_table(random, t));
  Stream stream(GetParam(), 3);
  Tables tables(stream, inputs);
  tables.merge(1);
  UpdatedTables together(stream, inputs, tables), apart(stream, inputs, tables);
  StreamCallCounter const counter(stream);
  kernels::update_rows(stream, together.updates);
  EXPECT_LE(counter.calls().launches, GetParam().is_host() ? 1U : 18U) << "6 kinds, 3 data types";
  EXPECT_EQ(counter.calls().waits, 0U);
  for (std::size_t t = 0; t < inputs.size(); ++t) {
    auto update = apart.updates[t];
    update.ids = update.ids.slice(0, to_host(stream, update.count)[0]);
    update.count = {};
    kernels::update_rows(stream, update);
  }
  for (std::size_t t = 0; t < inputs.size(); ++t) {
    EXPECT_TRUE(together.bytes(stream, t, inputs[t].rows) == apart.bytes(stream, t, inputs[t].rows)) << t;
  }
}

TEST_P(MergeGradients, UpdateReadsSumsInPlace) {
  Random random(6);
  std::vector<TableInput> inputs;
  for (std::size_t number = 0; number < 60; ++number) {
    auto table = random_table(random, number);
    if (table.rows_in_place() > 0) inputs.push_back(std::move(table));
  }
  Stream stream(GetParam(), 2);
  Tables tables(stream, inputs);
  tables.merge(1);
  UpdatedTables in_place(stream, inputs, tables), copied(stream, inputs, tables);
  for (std::size_t t = 0; t < inputs.size(); ++t) {
    auto const& merge = tables.arguments(t);
    auto update = in_place.updates[t];
    update.ids = merge.lists[0].ids;
    update.count = {};
    update.sums = merge.in_place;
    update.positions = merge.lists[0].positions;
    kernels::update_rows(stream, update);
    auto const sums = tables.merged(t).sums;
    std::size_t const n = update.ids.size();
    auto const copy =
        matrix(stream, Sums(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(n * row_stride(inputs[t].dim))), n,
               inputs[t].dim);
    auto plain = copied.updates[t];
    plain.ids = update.ids;
    plain.count = {};
    plain.sums = copy;
    kernels::update_rows(stream, plain);
    EXPECT_TRUE(in_place.bytes(stream, t, inputs[t].rows) == copied.bytes(stream, t, inputs[t].rows)) << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, MergeGradients, kDevices, device_name);

}  // namespace
}  // namespace gpups::test::merge_gradients_test
