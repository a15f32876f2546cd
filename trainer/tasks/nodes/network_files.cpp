// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/nodes/network_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"
#include "trainer/base/finite_number.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/base/random.hpp"
#include "trainer/input/column_names.hpp"
#include "trainer/input/named_files.hpp"
#include "trainer/input/table_reader.hpp"
#include "trainer/tasks/common/first_column.hpp"
#include "trainer/tasks/common/known_samples.hpp"
#include "trainer/tasks/common/odd_names.hpp"
#include "trainer/tasks/common/thousands.hpp"
#include "trainer/tasks/common/times.hpp"
#include "trainer/tasks/common/user_and_item.hpp"
#include "trainer/tasks/nodes/edge_weights.hpp"
#include "trainer/tasks/nodes/relations_of_edges.hpp"

namespace gpups::trainer {
namespace {

bool is_weight(std::string_view field, double& weight) {
  auto const number = finite_number(field);
  weight = number.value_or(0);
  return weight > 0;
}

constexpr TableColumn kEdgeColumns[] = {
    {.is = "from", .headings = "from source src fromnodeid fromid node1 head start user1 sourceid startid"},
    {.is = "to", .headings = "to target dst tonodeid toid node2 tail end user2 targetid endid"},
    {.is = "weight", .headings = "weight edgeweight value count strength", .is_number = true, .may_lack = true},
};
constexpr TableKind kEdges{.columns = kEdgeColumns, .separator = "blanks", .comments = "#%", .is_square = true};

// The edges of a setting's files, as numbers of `nodes`.
struct EdgeFiles {
  std::vector<WeightedEdge> edges;
  bool weighted = false;
  std::uint64_t unknown = 0;  // edges of held-out files whose nodes are not in `nodes`
  std::uint64_t loops = 0;    // edges from a node to itself, which held-out `edges` do not have
};

// Adds a notice if the heading names a column of users and one of items, and some names are in both columns.
void say_users_that_are_items(TableLayout const& layout, std::span<WeightedEdge const> edges, Dictionary const& nodes,
                              std::vector<std::string>& notices) {
  auto const heading = [&](std::size_t column) {
    std::size_t const place = layout.columns[column];
    return place < layout.names.size() ? std::string_view(layout.names[place]) : std::string_view();
  };
  auto const are = [&](std::size_t user, std::size_t item) {
    return is_called(heading(user), kUserAndItem[0]) && is_called(heading(item), kUserAndItem[1]);
  };
  if (!are(0, 1) && !are(1, 0)) return;
  std::vector<bool> is_from(nodes.size()), is_both(nodes.size());
  for (WeightedEdge const& edge : edges) is_from[edge.from] = true;
  for (WeightedEdge const& edge : edges) is_both[edge.to] = is_from[edge.to];
  auto const first = std::find(is_both.begin(), is_both.end(), true);
  if (first == is_both.end()) return;
  notices.push_back(fmt::format(
      "the columns {} and {} share {}, such as '{}', and each is one node: if a name stands for two things, "
      "write names that differ, for example with a letter before those of one column",
      heading(0), heading(1), with_count(static_cast<std::uint64_t>(std::count(first, is_both.end(), true)), "name"),
      nodes.name(static_cast<std::uint32_t>(first - is_both.begin()))));
}

// Lines whose weights are compared with the names of nodes.
constexpr std::size_t kJudgedLines = 100'000;

// Whether the columns of a file are the first three, and a heading, if there is one, does not call the last one a
// weight.
bool reads_first_three(TableLayout const& layout) {
  return layout.columns == std::vector<std::size_t>{0, 1, 2} &&
         (layout.names.size() < 3 || !is_called(layout.names[2], kEdgeColumns[2]));
}

// trains: the files are those of data.train, whose nodes are added.
EdgeFiles read_edges(DataConfig const& config, std::string const& names, bool directed, bool trains, Dictionary& nodes,
                     SameColumns& same, std::vector<std::string>& notices) {
  EdgeFiles read;
  LikeTimes times;
  LikeThousands thousands;
  std::uint64_t without_weight = 0;
  for (std::filesystem::path const& path : files_named(config.folder, names, notices)) {
    require_no_sif(path, config.table);
    TableReader reader(path, config.table, kEdges);
    require_one_target(path, reader.layout());
    if (config.table.columns.empty() && reads_first_three(reader.layout()))
      require_no_relations(reader.first_rows(), path.string());
    same.check(reader.layout(), path.string());
    bool const looks_at_weights = config.table.columns.empty() && !reader.layout().heading;
    if (config.table.columns.empty()) {
      say_odd_first_column(reader.first_rows(), reader.layout(), kEdges, path.string(), notices);
    }
    std::vector<std::vector<std::string>> judged;  // rows that have a weight
    bool const symmetric = reader.matrix() && reader.matrix()->symmetric;
    for (std::vector<std::string_view> fields; reader.next(fields);) {
      double weight = 1;
      if (fields.size() == 3 && !is_weight(fields[2], weight)) {
        reader.reject("has a weight that is not a number above 0");
        continue;
      }
      if (fields.size() == 3) {
        read.weighted = true;
        if (looks_at_weights && judged.size() < kJudgedLines) judged.emplace_back(fields.begin(), fields.end());
        times.add(weight);
        thousands.add(fields[2]);
      } else {
        ++without_weight;
      }
      read.loops += fields[0] == fields[1] ? 1 : 0;
      if (!trains && fields[0] == fields[1]) continue;
      if (!trains && !(nodes.find(fields[0]) && nodes.find(fields[1]))) {
        ++read.unknown;
        continue;
      }
      std::uint32_t const from = nodes.add(fields[0]), to = nodes.add(fields[1]);
      read.edges.push_back({from, to, weight});
      if (symmetric && directed && from != to) read.edges.push_back({to, from, weight});
    }
    reader.finish(config.bad_share_max, "two nodes and perhaps a weight", notices);
    if (looks_at_weights) {
      say_weights_that_are_nodes(judged, nodes, path.string(), notices);
      say_weights_that_count(reader.first_rows(), path.string(), notices);
      say_nodes_that_are_weights(reader.first_rows(), reader.comments_in_data().names(), path.string(), notices);
    }
    if (config.table.columns.empty() && reads_first_three(reader.layout())) {
      say_first_nodes_that_number_rows(reader.first_rows(), path.string(), notices);
    }
  }
  GPUPS_REQUIRE(!read.edges.empty() || read.unknown + read.loops > 0,
                "{} has no edges (a network needs some): check the file",
                (std::filesystem::path(config.folder) / names).string());
  GPUPS_REQUIRE(!trains || read.loops < read.edges.size(),
                "{} has edges from a node to itself only (no walk leads to another node): check the file, and "
                "data.columns",
                (std::filesystem::path(config.folder) / names).string());
  if (trains && read.weighted) {
    notices.push_back(without_weight == 0 ? "edges have weights"
                                          : fmt::format("edges have weights; {} without one, of {}, have weight 1",
                                                        with_count(without_weight, "line"), read.edges.size()));
  }
  if (trains) say_users_that_are_items(same.first(), read.edges, nodes, notices);
  times.say("weights of edges", "[\"1\", \"2\"]", notices);
  thousands.say("weights of edges", notices);
  return read;
}

std::uint64_t pair_hash(Dictionary const& nodes, WeightedEdge const& edge) {
  std::uint64_t const from = number(nodes.keys()[edge.from]), to = number(nodes.keys()[edge.to]);
  return kernels::mix(std::min(from, to) ^ kernels::mix(std::max(from, to)));
}

// Moves the edges whose draw is in [begin, end) from `edges` to `held_out`. All edges of two nodes have the same draw.
void hold_out(std::vector<WeightedEdge>& edges, Dictionary const& nodes, std::uint64_t seed, double begin, double end,
              std::vector<WeightedEdge>& held_out) {
  if (begin >= end) return;
  std::erase_if(edges, [&](WeightedEdge const& edge) {
    double const draw = static_cast<double>(random_bits(seed, pair_hash(nodes, edge)) >> 11) * 0x1p-53;
    if (edge.from == edge.to || draw < begin || draw >= end) return false;
    held_out.push_back(edge);
    return true;
  });
}

// Returns the pairs of held-out edges, without those of nodes that are not in `network`, and each once.
std::vector<HeldOutPair> pairs_of(EdgeFiles const& held_out, Network const& network, std::string_view split,
                                  std::vector<std::string>& notices) {
  std::vector<WeightedEdge> const& edges = held_out.edges;
  std::vector<bool> has_edges(network.nodes().size());
  for (std::uint32_t n = 0; n < has_edges.size(); ++n) {
    for (std::uint32_t const to : network.neighbours(n)) has_edges[n] = has_edges[to] = true;
  }
  std::vector<HeldOutPair> pairs;
  std::set<std::pair<std::uint32_t, std::uint32_t>> known;
  std::uint64_t alone = held_out.unknown;
  for (WeightedEdge const& edge : edges) {
    if (edge.from == edge.to || !known.insert(std::minmax(edge.from, edge.to)).second) continue;
    if (has_edges[edge.from] && has_edges[edge.to]) {
      pairs.push_back({edge.from, edge.to});
    } else {
      ++alone;
    }
  }
  if (alone > 0) {
    notices.push_back(fmt::format("left out {} of the {} split, of {}: a node has no edges for training",
                                  with_count(alone, "edge"), split, pairs.size() + alone));
  }
  GPUPS_REQUIRE(held_out.loops == 0 || alone > 0 || !pairs.empty(),
                "the {} split has edges from a node to itself only (they are not compared): check data.{}, and "
                "data.columns",
                split, split);
  GPUPS_REQUIRE((edges.empty() && alone == 0) || !pairs.empty(),
                "no edge of the {} split has two nodes with edges for training (nothing could be compared): hold out "
                "fewer edges, or check data.{}",
                split, split);
  return pairs;
}

}  // namespace

SplitNetwork read_network(DataConfig const& config, bool directed, std::vector<std::string>& notices) {
  Dictionary nodes("node");
  SameColumns same;
  EdgeFiles train = read_edges(config, config.train, directed, true, nodes, same, notices);
  auto const read = [&](std::string const& names) {
    return names.empty() ? EdgeFiles{} : read_edges(config, names, directed, false, nodes, same, notices);
  };
  EdgeFiles valid = read(config.valid), test = read(config.test);

  auto const pair = [&](WeightedEdge const& edge) {
    return pair_hash(nodes, edge) ^ (directed && number(nodes.keys()[edge.from]) > number(nodes.keys()[edge.to]));
  };
  say_odd_names(nodes, notices);
  say_known_samples(train.edges, valid.edges, "edge", "validation", pair, notices);
  say_known_samples(train.edges, test.edges, "edge", "test", pair, notices);
  auto const seed = static_cast<std::uint64_t>(config.split_seed);
  double const test_share = config.test.empty() ? config.test_share : 0;
  double const valid_share = config.valid.empty() ? config.valid_share : 0;
  hold_out(train.edges, nodes, seed, 0, test_share, test.edges);
  hold_out(train.edges, nodes, seed, test_share, test_share + valid_share, valid.edges);
  say_known_samples(valid.edges, test.edges, "edge", "test", pair, notices, "validation");
  auto const require_some = [](double share, auto const& edges, std::string_view name) {
    GPUPS_REQUIRE(share <= 0 || !edges.empty(),
                  "data.{}_share is {} and the network is small (nothing is held out): choose a larger share, or 0",
                  name, share);
  };
  require_some(test_share, test.edges, "test");
  require_some(valid_share, valid.edges, "valid");
  GPUPS_REQUIRE(!train.edges.empty(),
                "{} has no edges for training (all of them are held out): lower data.valid_share and data.test_share",
                config.train);

  SplitNetwork split{.network = {std::move(nodes), std::move(train.edges), directed, train.weighted}};
  split.valid = pairs_of(valid, split.network, "valid", notices);
  split.test = pairs_of(test, split.network, "test", notices);
  return split;
}

}  // namespace gpups::trainer
