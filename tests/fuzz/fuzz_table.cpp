// SPDX-License-Identifier: Apache-2.0
// Any bytes as a text file with columns, plain or compressed, for each reader and some settings: the file is rejected,
// or what is read is well-formed.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "gpups/error.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "trainer/input/text_source.hpp"
#include "trainer/tasks/graph/reader.hpp"
#include "trainer/tasks/interactions/interaction_set.hpp"
#include "trainer/tasks/nodes/network_files.hpp"
#include "trainer/tasks/ratings/rating_file.hpp"
#include "trainer/tasks/words/corpus.hpp"

namespace gpups::fuzz {
namespace {

using namespace gpups::trainer;

void require(bool holds) {
  if (!holds) std::abort();
}

// Names are text, and have no blanks around them.
void require_names(Dictionary const& names) {
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    std::string_view const name = names.name(i);
    require(!name.empty() && find_no_text(name) == name.npos);
    require(name.front() != ' ' && name.front() != '\t' && name.back() != ' ' && name.back() != '\t');
  }
}

TableSettings settings_of(std::uint8_t choice) {
  switch (choice / 8 % 8) {
    case 1:
      return {.separator = "comma", .heading = "yes"};
    case 2:
      return {.heading = "no", .comment = ""};
    case 3:
      return {.comment = "//", .columns = {"2", "1"}};
    case 4:
      return {.columns = {"item", "user", "1"}};
    case 5:
      return {.columns = {"2", "3-"}};
    default:
      return {};
  }
}

void read(std::uint8_t reader, std::string const& path, DataConfig data) {
  data.train = path;
  std::vector<std::string> notices;
  switch (reader) {
    case 0: {
      Dataset const graph = read_triples(data);
      require_names(graph.entities);
      require_names(graph.relations);
      return require(!graph.train.empty());
    }
    case 1: {
      Network const network = read_network(data, true, notices).network;
      require_names(network.nodes());
      for (double const weight : network.weights_of_nodes()) require(weight >= 0 && !std::isnan(weight));
      return require(network.edges() > 0);
    }
    case 2: {
      for (RatingLine const& line : read_rating_file(data, path, notices)) require(std::isfinite(line.value));
      return;
    }
    case 3: {
      InteractionSet const set = read_interactions(data);
      require_names(set.users);
      require_names(set.items);
      return;
    }
    default: {
      Corpus const corpus = read_corpus("", path, 1);
      require_names(corpus.words);
      return require(corpus.positions.size() >= corpus.total);
    }
  }
}

}  // namespace
}  // namespace gpups::fuzz

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace gpups::fuzz;
  if (size == 0) return 0;
  MemoryFile const file({reinterpret_cast<char const*>(data) + 1, size - 1});
  gpups::trainer::DataConfig config{.valid = "", .test = "", .valid_share = 0, .test_share = 0, .bad_share_max = 1};
  config.table = settings_of(data[0]);
  try {
    read(data[0] % 5, file.path(), config);
  } catch (gpups::Error const&) {
  }
  return 0;
}
