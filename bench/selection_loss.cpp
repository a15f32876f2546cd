// SPDX-License-Identifier: Apache-2.0
// Computes from recorded times how much longer the selected algorithms take than the fastest ones: the loss from
// selection by modelled time. Measures nothing.
//   selection_loss bench/results/exchange.jsonl bench/results/link_costs.jsonl
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "comm/collectives/allreduce/dense.hpp"
#include "comm/collectives/selection/select_algorithm.hpp"

namespace {

using namespace gpups;
using nlohmann::json;
using Cell = std::tuple<std::string, int, std::uint64_t, double>;  // link, ranks, elements, density

std::vector<json> lines_of(char const* file) {
  std::vector<json> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  return lines;
}

comm::LinkCosts costs_of(json const& line) {
  auto const ns = [&](char const* name) { return line.at(name).get<double>() * 1e-9; };
  return {.round_s = line.at("round_us").get<double>() * 1e-6,
          .byte_s = 1e-9 / line.at("gb_per_s").get<double>(),
          .add_s = ns("add_ns"),
          .entry_s = ns("entry_ns"),
          .code_s = ns("code_ns")};
}

// Returns the name that bench_exchange uses for the selected algorithm. From this density on, bench_exchange gives sums
// an array, otherwise a list.
std::string way_of(comm::LinkCosts const& costs, Cell const& cell) {
  auto const& [link, ranks, elements, density] = cell;
  bool const is_list = density < comm::kDenseFromDensity;
  auto const given = static_cast<std::uint64_t>(std::llround(density * static_cast<double>(elements)));
  auto const selected =
      comm::select_algorithm(costs, {.ranks = ranks, .elements = elements, .sparse = is_list, .nonzeros_max = given});
  std::string const name = comm::name_of(selected);
  return is_list || selected.algorithm->info.sparse ? name : "dense_" + name;
}

int run(char const* exchange, char const* link_costs) {
  std::map<std::pair<std::string, int>, comm::LinkCosts> costs;
  for (json const& line : lines_of(link_costs)) costs[{line.at("link"), line.at("ranks")}] = costs_of(line);
  std::map<Cell, std::map<std::string, double>> cells;  // milliseconds by way
  for (json const& line : lines_of(exchange)) {
    if (line.at("way") == "auto") continue;  // it is not an algorithm
    Cell const cell{line.at("link"), line.at("ranks"), line.at("elements"), line.at("density")};
    cells[cell][line.at("way")] = line.at("ms");
  }
  std::vector<double> ratios;
  for (auto const& [cell, ms] : cells) {
    auto const& [link, ranks, elements, density] = cell;
    std::string const selected = way_of(costs.at({link, ranks}), cell);
    auto const best = *std::min_element(ms.begin(), ms.end(), [](auto& a, auto& b) { return a.second < b.second; });
    ratios.push_back(ms.at(selected) / best.second);
    fmt::print("{} {} ranks, {} M, {:g} %: {} {:.3g} ms, {} {:.3g} ms: {:.2f}\n", link, ranks, elements >> 20,
               density * 100, selected, ms.at(selected), best.first, best.second, ratios.back());
  }
  std::sort(ratios.begin(), ratios.end());
  std::size_t const n = ratios.size();
  fmt::print("{} cells: median {:.3f}, 90 % at most {:.3f}, worst {:.3f}\n", n, ratios.at(n / 2), ratios.at(n * 9 / 10),
             ratios.back());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 3) return run(argv[1], argv[2]);
    fmt::print(stderr, "usage: selection_loss EXCHANGE.jsonl LINK_COSTS.jsonl\n");
  } catch (std::exception const& error) {
    fmt::print(stderr, "selection_loss: error: {}\n", error.what());
  }
  return 2;
}
