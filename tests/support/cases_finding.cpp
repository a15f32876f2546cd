// SPDX-License-Identifier: Apache-2.0
// Cases of kernels that find distinct keys and their rows, entries and slots.
#include <array>
#include <map>
#include <memory>
#include <set>

#include "kernels/base/hash.hpp"
#include "kernels/index/key_index.hpp"
#include "kernels/index/unique_keys.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/rows/selected_rows.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/oracle.hpp"

namespace gpups::test {
namespace {

using kernels::kNoRow;
using Ids = std::vector<std::uint32_t>;

// The keys of one part of a batch, and the results for them.
struct KeyPartState {
  std::vector<Key> keys;
  Array<Key> in, unique;
  Array<std::uint32_t> positions, offsets, order;
  Ids home_offsets;

  KeyPartState(Stream& stream, std::vector<Key> these, std::uint32_t homes)
      : keys(std::move(these)),
        in(to_device(stream, keys)),
        unique(stream.device(), keys.size()),
        positions(stream.device(), keys.size()),
        offsets(stream.device(), keys.size() + 1),
        order(stream.device(), keys.size()),
        home_offsets(homes + 1) {}

  kernels::KeyPart arguments() { return {in, unique, positions, View<std::uint32_t>(home_offsets), offsets, order}; }
  std::size_t rows() const { return home_offsets.back(); }

  std::string wrong(Stream& on) const {
    auto const found = to_host(on, unique.view().slice(0, rows()));
    auto const places = to_host(on, positions.view());
    if (std::set<Key>(found.begin(), found.end()).size() != rows()) return "a key occurs twice";
    if (std::set<Key>(keys.begin(), keys.end()).size() != rows()) return "wrong number of keys";
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (places[i] >= rows() || found[places[i]] != keys[i]) return fmt::format("positions[{}]", i);
    }
    if (home_offsets.front() != 0) return "home offsets do not begin with 0";
    for (std::uint32_t h = 0; h + 1 < home_offsets.size(); ++h) {
      if (home_offsets[h] > home_offsets[h + 1]) return "home offsets decrease";
      for (auto k = home_offsets[h]; k < home_offsets[h + 1]; ++k) {
        auto const homes = static_cast<std::uint32_t>(home_offsets.size() - 1);
        if (kernels::home_of(found[k], homes) != h) return fmt::format("unique[{}] is not of home {}", k, h);
      }
    }
    Ids want_offsets{0}, want_order;
    for (auto const& entries : entries_of_rows(places, rows())) {
      want_order.insert(want_order.end(), entries.begin(), entries.end());
      want_offsets.push_back(static_cast<std::uint32_t>(want_order.size()));
    }
    return differ("offsets", to_host(on, offsets.view().slice(0, rows() + 1)), want_offsets) +
           differ("order", to_host(on, order.view()), want_order);
  }
  std::string bits(Stream& on) const {
    return bytes_of(to_host(on, unique.view().slice(0, rows()))) + bytes_of(to_host(on, positions.view())) +
           bytes_of(to_host(on, order.view()));
  }
};

// One part, or several parts that share keys; the first of several parts is empty.
Problem unique_keys(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    std::vector<KeyPartState> parts;
    std::uint32_t homes;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  s->homes = static_cast<std::uint32_t>(1 + seed % 5);
  std::size_t const parts = 1 + seed % 4;
  for (std::size_t p = 0, first = 0; p < parts; ++p) {
    std::size_t const last = p + 1 == parts ? size.n : p * size.n / parts;
    s->parts.emplace_back(stream, zipf_keys(random, last - first, size.n / 3 + 1), s->homes);
    first = last;
  }

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * 16;
  p.run = [s](Stream& on) {
    std::vector<kernels::KeyPart> arguments;
    for (auto& part : s->parts) arguments.push_back(part.arguments());
    kernels::wait_unique_keys(on, {arguments, s->homes});
  };
  p.wrong = [s](Stream& on) {
    std::string all;
    for (auto const& part : s->parts) all += part.wrong(on);
    return all;
  };
  p.bits = [s](Stream& on) {
    std::string all;
    for (auto const& part : s->parts) all += part.bits(on);
    return all;
  };
  return p;
}

// The index has about half of the keys.
Problem find_keys(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    Ids want;
    kernels::KeyIndex index;
    Array<Key> keys;
    Array<std::uint32_t> ids;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  auto const there = to_device(stream, distinct_keys(size.n));
  Array<std::uint32_t> ids(stream.device(), size.n);
  s->index = kernels::KeyIndex(stream.device(), 1);
  s->index.wait_find_or_insert(stream, there, ids);
  std::vector<Key> keys;
  for (std::size_t i = 0; i < size.n; ++i) {
    std::uint64_t const number = below(random, 2 * size.n);
    keys.push_back(scrambled(number));
    s->want.push_back(number < size.n ? static_cast<std::uint32_t>(number) : kNoRow);
  }
  s->keys = to_device(stream, keys);
  s->ids = Array<std::uint32_t>(stream.device(), size.n);

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * 76;
  p.run = [s](Stream& on) { s->index.find(on, s->keys, s->ids); };
  p.wrong = [s](Stream& on) { return differ("ids", to_host(on, s->ids.view()), s->want); };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->ids.view())); };
  return p;
}

// A third of the keys are in the index, which grows for the others. A quarter of the batch may be repeated keys.
Problem find_or_insert(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    std::size_t old, added = 0;
    std::vector<Key> keys;
    Array<Key> before, in;
    Array<std::uint32_t> ids;
    kernels::KeyIndex index;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  s->old = size.n / 3;
  for (auto number : distinct_ids(random, size.n, size.n)) {
    s->keys.push_back(scrambled(below(random, 4) == 0 ? number / 2 : number));
  }
  s->before = to_device(stream, distinct_keys(s->old));
  s->in = to_device(stream, s->keys);
  s->ids = Array<std::uint32_t>(stream.device(), size.n);

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * 140;
  p.run = [s](Stream& on) {
    s->index = kernels::KeyIndex(on.device(), s->old);
    s->index.wait_find_or_insert(on, s->before, s->ids);
    s->added = s->index.wait_find_or_insert(on, s->in, s->ids).size();
  };
  p.wrong = [s](Stream& on) -> std::string {
    if (s->index.size() > s->index.capacity()) return "the index has more keys than its capacity";
    std::map<Key, std::uint32_t> numbers;
    std::vector<std::uint64_t> key_of_id;
    auto const number_key = [&](Key key) {
      if (numbers.try_emplace(key, static_cast<std::uint32_t>(key_of_id.size())).second) {
        key_of_id.push_back(number(key));
      }
      return numbers[key];
    };
    for (Key key : distinct_keys(s->old)) number_key(key);
    Ids want;
    for (Key key : s->keys) want.push_back(number_key(key));
    if (s->added != numbers.size() - s->old) return "the number of new keys is wrong";
    if (s->index.size() != numbers.size()) return "the size is wrong";
    return differ("ids", to_host(on, s->ids.view()), want) +
           differ("keys", to_host(on, s->index.keys(), s->index.size()), key_of_id);
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->ids.view())); };
  return p;
}

Problem select_rows(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    Ids want;
    std::uint32_t first, last;
    kernels::RowStatus kind;
    std::size_t count = 0;
    Array<std::uint32_t> ids;
    kernels::RowStorage<std::uint32_t> lifecycle;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  s->first = static_cast<std::uint32_t>(size.n / 5);
  s->last = static_cast<std::uint32_t>(size.n - size.n / 7);
  // The first word of a lifecycle: free, waiting with two counts, existing with two counts. The second word is not
  // used.
  Ids const words{0, 0x80000000, 0xFFFFFFFF, 1, 0x7FFFFFFF};
  std::array const kinds{kernels::RowStatus::kFree, kernels::RowStatus::kWait, kernels::RowStatus::kExist};
  s->kind = kinds[seed % 3];
  Ids lifecycle;
  for (std::uint32_t id = 0; id < size.n; ++id) {
    std::size_t const which = below(random, words.size());
    lifecycle.insert(lifecycle.end(), {words[which], id});
    bool const wanted = s->kind == kinds[(which + 1) / 2];
    if (wanted && id >= s->first && id < s->last) s->want.push_back(id);
  }
  s->lifecycle = rows(stream, lifecycle, size.n, kernels::kLifecycleWords);
  s->ids = Array<std::uint32_t>(stream.device(), s->last - s->first);

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * 12;
  p.run = [s](Stream& on) {
    s->count = kernels::wait_select_rows(on, {s->lifecycle.const_ref(), s->first, s->last, s->ids, s->kind});
  };
  p.wrong = [s](Stream& on) { return differ("ids", to_host(on, s->ids.view().slice(0, s->count)), s->want); };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->ids.view().slice(0, s->count))); };
  return p;
}

constexpr KernelCase kFindingCases[] = {
    {"unique_keys", unique_keys},
    {"find_keys", find_keys},
    {"find_or_insert", find_or_insert},
    {"select_rows", select_rows},
};

}  // namespace

std::span<KernelCase const> finding_cases() { return kFindingCases; }

}  // namespace gpups::test
