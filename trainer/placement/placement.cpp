// SPDX-License-Identifier: Apache-2.0
#include "trainer/placement/placement.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/base/assert.hpp"

namespace gpups::trainer {
namespace {

// A part that has rows of a sample.
struct Candidate {
  float cost;  // of these rows, see RowWeights
  std::uint32_t part;
};

// Returns the parts of a sample's rows, the best first.
void list_candidates(std::span<std::uint32_t const> rows, Partition const& partition,
                     std::vector<Candidate>& candidates) {
  candidates.clear();
  for (std::uint32_t const row : rows) {
    std::uint32_t const part = partition.of_row[row];
    auto const known =
        std::find_if(candidates.begin(), candidates.end(), [part](auto const& c) { return c.part == part; });
    if (known == candidates.end()) {
      candidates.push_back({partition.cost_of_row[row], part});
    } else {
      known->cost += partition.cost_of_row[row];
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](auto const& a, auto const& b) { return a.cost > b.cost; });
}

// Returns the part with room that is nearest to `part`. Neighbouring parts read the same rows more often than others.
std::uint32_t nearest_with_room(std::span<std::uint32_t const> room, std::uint32_t part) {
  auto const parts = static_cast<std::uint32_t>(room.size());
  for (std::uint32_t distance = 1; distance < parts; ++distance) {
    if (distance <= part && room[part - distance] > 0) return part - distance;
    if (part + distance < parts && room[part + distance] > 0) return part + distance;
  }
  return part;
}

}  // namespace

Placement::Placement(SampleRows rows, PartitionOptions const& options)
    : rows_(std::move(rows)), partition_(partition(rows_.graph, options)) {}

std::vector<TableId> Placement::tables() const {
  std::vector<TableId> all;
  for (auto const& of_table : rows_.tables) all.push_back(of_table.table);
  return all;
}

std::vector<Key> Placement::keys(TableId table, std::uint32_t begin, std::uint32_t end) const {
  std::vector<Key> keys;
  std::size_t row = 0;
  for (auto const& [id, of_table] : rows_.tables) {
    for (std::size_t k = 0; k < of_table.size(); ++k, ++row) {
      std::uint32_t const part = partition_.of_row[row];
      if (id == table && part >= begin && part < end) keys.push_back(of_table[k]);
    }
  }
  return keys;
}

std::vector<std::uint32_t> Placement::assign(std::span<std::uint64_t const> samples,
                                             std::span<std::uint32_t const> sizes) const {
  GPUPS_ASSERT(sizes.size() == parts());
  auto const count = static_cast<std::uint32_t>(samples.size());
  std::vector<Candidate> candidates;
  std::vector<float> loss(count);  // of each sample, if it goes to the second best part
  for (std::uint32_t i = 0; i < count; ++i) {
    list_candidates(rows_.graph.rows_of(samples[i]), partition_, candidates);
    loss[i] = candidates[0].cost - (candidates.size() > 1 ? candidates[1].cost : 0);
  }
  std::vector<std::uint32_t> by_loss(count), room(sizes.begin(), sizes.end()), part(count);
  std::iota(by_loss.begin(), by_loss.end(), 0U);
  std::stable_sort(by_loss.begin(), by_loss.end(), [&](auto a, auto b) { return loss[a] > loss[b]; });
  for (std::uint32_t const i : by_loss) {
    list_candidates(rows_.graph.rows_of(samples[i]), partition_, candidates);
    auto const best =
        std::find_if(candidates.begin(), candidates.end(), [&](auto const& c) { return room[c.part] > 0; });
    part[i] = best != candidates.end() ? best->part : nearest_with_room(room, candidates[0].part);
    GPUPS_ASSERT(room[part[i]] > 0);
    --room[part[i]];
  }
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return part[a] < part[b]; });
  return order;
}

double Placement::remote_share(std::uint32_t ranks) const {
  std::uint32_t const owners = ranks == 0 ? parts() : ranks;
  std::vector<std::uint32_t> owner(parts());
  for (std::uint32_t r = 0; r < owners; ++r) {
    for (std::uint32_t p = first_microbatch(r, owners, parts()); p < first_microbatch(r + 1, owners, parts()); ++p) {
      owner[p] = r;
    }
  }
  std::uint64_t remote = 0;
  for (std::size_t i = 0; i < rows_.graph.samples(); ++i) {
    for (std::uint32_t const row : rows_.graph.rows_of(i)) {
      remote += owner[partition_.of_row[row]] != owner[partition_.of_sample[i]] ? 1 : 0;
    }
  }
  return static_cast<double>(remote) / static_cast<double>(rows_.graph.entries.size());
}

std::uint64_t Placement::bytes() const {
  return rows_.graph.bytes() + rows_.graph.rows * (sizeof(Key) + sizeof(float) + sizeof(std::uint16_t)) +
         partition_.of_sample.size() * sizeof(std::uint16_t);
}

}  // namespace gpups::trainer
