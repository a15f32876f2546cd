// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/replay.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/base/hash.hpp"

namespace gpups::cache {
namespace {

// Bytes of a key in an intent or a forward, if it is in the dictionary of both ends; measured.
constexpr double kKeyBytes = 1.5;
// The plan of a step is made when the step two before it has ended, so the first two steps have none.
constexpr std::int64_t kFirstPlanned = 2;

void take_largest(std::vector<std::uint64_t>& most, std::vector<std::uint64_t> const& now) {
  for (std::size_t i = 0; i < now.size(); ++i) most[i] = std::max(most[i], now[i]);
}

}  // namespace

PlacementReplay::PlacementReplay(ReplayOptions options)
    : options_(std::move(options)), tables_(options_.tables.size()), host_(Device::host(), 1), uses_(options_.window) {
  std::vector<std::uint64_t> const none(static_cast<std::size_t>(options_.ranks));
  for (auto& table : tables_) table.now = table.most = {none, none, none, none, none};
  std::vector<std::uint32_t> nodes;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    nodes.push_back(static_cast<std::uint32_t>(rank / options_.ranks_of_node));
  }
  nodes_ = to_device(host_, nodes);
}

Rank PlacementReplay::home_of(Key key) const {
  return Rank{kernels::home_of(key, static_cast<std::uint32_t>(options_.ranks))};
}

Clock PlacementReplay::announced_end() const {
  std::int64_t const next = number(next_), prepared = std::max<std::int64_t>(next - kFirstPlanned, 0);
  return Clock{std::min(prepared + options_.lookahead + 1, next + kPolicyWindow)};
}

// Returns the keys that the batch announces: those of rows that it does not read from replicas as they are, and those
// whose gradients have waited.
std::vector<Key> PlacementReplay::without_leased(TableState& table, Rank reader, Clock step,
                                                 std::span<Key const> keys) {
  static constexpr auto kNoLimit = std::numeric_limits<std::size_t>::max();
  std::vector<Key> announced, others;
  for (Key const key : keys) {
    auto const row = table.rows.find(key);
    Rank const owner = row == table.rows.end() ? home_of(key) : row->second.owner;
    (home_of(key) == reader && owner == reader ? announced : others).push_back(key);
  }
  auto& leases = table.leases.try_emplace(reader, Device::host(), 1, options_.staleness, 1, Rank{0}).first->second;
  std::vector<std::uint32_t> const homes{0, static_cast<std::uint32_t>(others.size())};
  UndividedPart const part{.keys = View<Key const>(others), .homes = homes};
  auto const divided =
      leases.wait_divide(host_, {&part, 1}, {.step = step, .leases_max = {&kNoLimit, 1}, .plans_own = true});
  table.leased[step] += divided.leased_keys.size();
  auto const refreshed = others.size() - divided.leased_keys.size();
  for (std::size_t i = 0; i < divided.keys.size(); ++i) {
    Key const key = divided.keys[i];
    // The owner of a row has the gradients that wait.
    bool const is_due = i >= refreshed;
    if (!is_due || home_of(key) != reader || table.rows.at(key).owner != reader) announced.push_back(key);
  }
  return announced;
}

void PlacementReplay::announce(Rank reader, Clock step, std::size_t table, std::span<Key const> used) {
  auto& of_table = tables_[table];
  std::vector<Key> announced;
  if (options_.staleness > 0) announced = without_leased(of_table, reader, step, used);
  auto const keys = options_.staleness > 0 ? std::span<Key const>(announced) : used;
  auto const memory = std::make_shared<Array<Key>>(Device::host(), keys.size());
  std::copy(keys.begin(), keys.end(), memory->data());
  uses_.add(step, {reader, {{TableId{static_cast<std::uint32_t>(table)}, *memory, memory}}});
  for (Key const key : keys) {
    auto const home = home_of(key);
    of_table.rows.try_emplace(key, RowState{.owner = home});
    ++of_table.now.uses[number(home)];
  }
}

// Counts what is sent for a row in the step.
void PlacementReplay::count(std::size_t table, Key key, Rank before, Rank in_step, std::span<RowUser const> users,
                            ReplayedStep& step) {
  Rank const home = home_of(key);
  auto const& bytes = options_.tables[table].bytes;
  auto const node_of = [&](Rank rank) { return number(rank) / static_cast<std::uint32_t>(options_.ranks_of_node); };
  auto const send = [&](Rank from, Rank to, double of_row, double& of_kind) {
    (node_of(from) == node_of(to) ? step.from_node : step.from_others)[number(to)] += of_row;
    of_kind += of_row;
  };
  bool const is_away = before != home || in_step != home;
  for (auto const& user : users) {
    if (!user.uses_now()) continue;
    ++step.keys;
    if (user.rank != in_step) ++tables_[table].now.replicas[number(user.rank)];
    if (user.rank != home) step.key_bytes += kKeyBytes + (is_away ? 1 + 1.0 / 8 : 0);  // an intent, a route
    if (before != in_step && user.rank == in_step) {
      ++step.moves;
      send(before, in_step, bytes.move, step.move_bytes);
      if (before != home) step.key_bytes += kKeyBytes;
      continue;
    }
    if (user.rank != before) {
      ++step.reads;
      send(before, user.rank, bytes.read, step.value_bytes);
      if (before != home) step.key_bytes += kKeyBytes;
    }
    if (user.rank != in_step) {
      ++step.updates;
      send(user.rank, in_step, bytes.update, step.gradient_bytes);
      if (in_step != home && in_step != before) step.key_bytes += kKeyBytes;
    }
  }
}

// Updates what ranks keep for a row that the step uses.
void PlacementReplay::keep(TableState& table, Key key, RowState& row, Rank owner) const {
  auto& now = table.now;
  Rank const home = home_of(key);
  if (row.used) --now.owned[number(row.owner)];
  ++now.owned[number(owner)];
  now.away[number(home)] -= row.owner != home ? 1 : 0;
  now.away[number(home)] += owner != home ? 1 : 0;
  row.owner = owner;
  row.used = true;
}

void PlacementReplay::begin(TableState& state, ReplayedStep& step) {
  take_largest(state.most.uses, state.now.uses);
  for (auto& [reader, leases] : state.leases) {
    leases.complete(next_);
    state.now.leases[number(reader)] = leases.leases(TableId{0});
  }
  take_largest(state.most.leases, state.now.leases);
  if (auto const leased = state.leased.extract(next_); !leased.empty()) {
    step.leased += leased.mapped();
    step.keys += leased.mapped();
  }
  std::fill(state.now.replicas.begin(), state.now.replicas.end(), 0);
}

void PlacementReplay::replay(std::size_t table, UsedRows const& used, ReplayedStep& step) {
  auto& state = tables_[table];
  auto const [first, size] = std::pair(used.tables[table].first, used.tables[table].size);
  bool const moves = options_.tables[table].moves && number(next_) >= kFirstPlanned;
  kernels::RowsOfTable const rows{first, size, options_.tables[table].bytes,
                                  moves ? options_.policy : PlacementPolicy::kStatic};
  Array<std::uint32_t> const before(Device::host(), used.keys.size()), in_step(Device::host(), used.keys.size());
  Array<std::int64_t> const sent(Device::host(), used.users.size());
  std::vector<RowState*> states;
  for (std::size_t row = first; row < first + size; ++row) {
    before.data()[row] = number(states.emplace_back(&state.rows.at(used.keys.view()[row]))->owner);
  }
  planning_ -= std::clock();
  kernels::choose_owners(host_,
                         {.step = next_,
                          .ranks = static_cast<std::uint32_t>(options_.ranks),
                          .tables = {&rows, 1},
                          .keys = used.keys,
                          .owners = before,
                          .first_user = used.first_user,
                          .user_count = used.user_count,
                          .users = used.users,
                          .sent = sent,
                          .hosts = {options_.between_nodes > 1 ? nodes_.data() : nullptr, options_.between_nodes},
                          .chosen = in_step});
  planning_ += std::clock();
  for (std::size_t i = 0; i < size; ++i) {
    auto const row = first + i;
    auto const users = used.users.view().slice(used.first_user.view()[row], used.user_count.view()[row]);
    count(table, used.keys.view()[row], states[i]->owner, Rank{in_step.view()[row]}, users.span(), step);
    keep(state, used.keys.view()[row], *states[i], Rank{in_step.view()[row]});
  }
  auto const& rows_of_table = used.tables[table];
  for (std::uint32_t u = rows_of_table.first_use; u < rows_of_table.first_use + rows_of_table.uses; ++u) {
    --state.now.uses[number(home_of(uses_.at(next_)->keys.view()[u]))];
  }
  take_largest(state.most.owned, state.now.owned);
  take_largest(state.most.replicas, state.now.replicas);
  take_largest(state.most.away, state.now.away);
}

ReplayedStep PlacementReplay::advance() {
  ReplayedStep step;
  for (auto* const bytes : {&step.from_node, &step.from_others}) {
    bytes->assign(static_cast<std::size_t>(options_.ranks), 0);
  }
  for (auto& table : tables_) begin(table, step);
  if (uses_.at(next_) != nullptr) {
    planning_ -= std::clock();
    kernels::HostReads reads(host_);
    uses_.list_keys(host_, tables_.size(), next_, reads);
    reads.wait();
    auto const used = uses_.list_rows_with_users(host_, next_, reads);
    reads.wait();
    planning_ += std::clock();
    for (std::size_t table = 0; table < tables_.size(); ++table) replay(table, used, step);
    uses_.drop(next_);
  }
  next_ = next_ + 1;
  return step;
}

std::vector<std::uint64_t> PlacementReplay::rows_owned() const {
  std::vector<std::uint64_t> rows(static_cast<std::size_t>(options_.ranks));
  for (auto const& table : tables_) {
    for (std::size_t rank = 0; rank < rows.size(); ++rank) rows[rank] += table.now.owned[rank];
  }
  return rows;
}

}  // namespace gpups::cache
