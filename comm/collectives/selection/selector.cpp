// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/selection/selector.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>

#include "comm/base/host_name.hpp"
#include "comm/collectives/selection/link_costs.hpp"

namespace gpups::comm {
namespace {

constexpr LinkCosts kSimulatedLinks{.round_s = 2e-5, .byte_s = 1e-9, .add_s = 5e-10, .entry_s = 5e-9, .code_s = 2e-9};
constexpr std::size_t kKindsMax = 1000;  // kinds in explain(); each sum may have another length

// Returns a digest that identifies this rank's end of its links: the machine, the device, the number of threads, and
// the transports that UCX may use.
std::uint64_t place_of_rank(Communicator const& comm) {
  std::string text =
      fmt::format("{} {} {} threads", host_name(), to_string(comm.stream().device()), comm.stream().threads());
  for (char const* name : {"UCX_TLS", "UCX_NET_DEVICES"}) {
    char const* const value = std::getenv(name);
    text += fmt::format(" {}={}", name, value == nullptr ? "" : value);
  }
  return XXH3_64bits(text.data(), text.size());
}

// Returns the costs of rank 0 on all ranks.
CoTask<LinkCosts> of_rank_0(Communicator& comm, LinkCosts costs) {
  for (auto const cost : kLinkCostMembers) {
    auto const all = co_await allgather_number(comm, std::bit_cast<std::uint64_t>(costs.*cost));
    costs.*cost = std::bit_cast<double>(all[0]);
  }
  co_return costs;
}

}  // namespace

CoTask<> Selector::learn_costs(Communicator& comm) {
  std::string key = "ranks at";
  auto const places = co_await allgather_number(comm, place_of_rank(comm));
  for (std::uint64_t const place : places) key += fmt::format(" {:016x}", place);
  source_ = "from " + cache_.file_of(key).string();
  LinkCosts costs = co_await of_rank_0(comm, cache_.find(key).value_or(LinkCosts{}));
  if (!is_possible(costs)) {
    auto const start = std::chrono::steady_clock::now();
    costs = co_await measure_links(comm);
    std::chrono::duration<double, std::milli> const took = std::chrono::steady_clock::now() - start;
    source_ = fmt::format("measured in {:.0f} ms", took.count());
    if (comm.me() == Rank{0}) cache_.put(key, costs);
    costs = co_await of_rank_0(comm, costs);
  }
  if (!is_possible(costs)) comm.throw_peer_error(Rank{0}, "sent link costs that are not positive and finite");
  costs_ = costs;
}

CoTask<Selection> Selector::select(Communicator& comm, AllreduceShape shape) {
  bool const learns = !std::exchange(is_learning_, true) && !costs_;  // true in the first call, on all ranks
  auto const given = co_await allgather_number(comm, shape.nonzeros_max);
  auto const most = std::max_element(given.begin(), given.end());
  Rank const its{static_cast<std::uint32_t>(most - given.begin())};
  if (*most > shape.elements)
    comm.throw_peer_error(its, fmt::format("has {} nonzero elements of {}", *most, shape.elements));
  shape.nonzeros_max = *most;
  if (learns) {
    co_await learn_costs(comm);
    for (auto const& selection : std::exchange(waiting_, {})) selection->end();
  } else if (!costs_) {
    waiting_.push_back(std::make_shared<Completion>());
    co_await SendRequest(waiting_.back());
  }
  Selection const selection = select_algorithm(*costs_, shape);
  Kind const kind{shape.elements, shape.sparse, shape.format, selection.algorithm, selection.format};
  if (sums_.size() < kKindsMax || sums_.contains(kind)) sums_[kind] = {sums_[kind].count + 1, shape, selection};
  co_return selection;
}

std::vector<std::string> Selector::explain() const {
  std::vector<std::string> lines;
  if (sums_.empty()) return lines;
  lines = {fmt::format("links: {:.3g} us a round, {:.3g} GB/s, ", costs_->round_s * 1e6, 1e-9 / costs_->byte_s)};
  lines[0] += fmt::format("{:.3g} ns per added element, {:.3g} ns per entry, {:.3g} ns per code ({})",
                          costs_->add_s * 1e9, costs_->entry_s * 1e9, costs_->code_s * 1e9, source_);
  for (auto const& [kind, sums] : sums_) {
    auto const& [count, shape, selection] = sums;
    double const share = static_cast<double>(shape.nonzeros_max) / std::max(static_cast<double>(shape.elements), 1.0);
    std::string line = fmt::format(
        "{} sum{} of {}{} floats, at most {:.3g} % nonzero on a rank, as {}{}, by {}; modelled", count,
        count == 1 ? "" : "s", shape.sparse ? "sparse vectors of " : "", shape.elements, share * 100,
        name_of(shape.format), shape.format == WireFormat::kFloat ? "" : " or more exactly", name_of(selection));
    auto all = candidates(*costs_, shape);
    std::stable_sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.modelled_s < b.modelled_s; });
    for (Selection const& one : all) line += fmt::format(" {} {:.3g} ms,", name_of(one), one.modelled_s * 1e3);
    line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

Selector make_selector(bool simulated) {
  if (simulated) return Selector(LinkCostCache({}), kSimulatedLinks);
  return Selector(LinkCostCache(user_cache_folder()), std::nullopt);
}

}  // namespace gpups::comm
