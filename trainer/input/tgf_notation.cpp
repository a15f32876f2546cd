// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/tgf_notation.hpp"

#include <unordered_set>
#include <vector>

#include "kernels/base/check.hpp"
#include "trainer/input/line_reader.hpp"

namespace gpups::trainer {
namespace {

// Removes the first line from a text and returns it, without blanks around it.
std::string_view next_trimmed(std::string_view& text) {
  std::size_t const end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return trim_blanks(line);
}

// The lines above the "#".
struct TgfNodes {
  std::unordered_set<std::string_view> ids{};
  std::vector<std::string_view> labels{};  // other than the id of their line

  // Adds the lines up to a "#", and removes them from the text. Returns whether there is one, and all lines have
  // different ids.
  bool add(std::string_view& text) {
    while (!text.empty()) {
      std::string_view const line = next_trimmed(text);
      if (line.empty()) continue;
      if (line == "#") return !ids.empty();
      if (line.front() == '#' || line.front() == '%') return false;
      std::string_view const id = line.substr(0, line.find_first_of(kBlanks));
      if (!ids.insert(id).second) return false;
      std::string_view const label = trim_blanks(line.substr(id.size()));
      if (!label.empty() && label != id) labels.push_back(label);
    }
    return false;
  }
};

}  // namespace

void require_no_tgf(std::string_view text, std::string_view path) {
  if (text.find("\n#") == text.npos) return;
  TgfNodes nodes;
  if (!nodes.add(text)) return;
  for (std::string_view const label : nodes.labels) {
    if (nodes.ids.contains(label)) return;  // the lines may be edges
  }
  std::size_t edges = 0;
  std::vector<std::string_view> words;
  while (!text.empty()) {
    std::string_view const line = next_trimmed(text);
    if (line.empty()) continue;
    bool const may_continue = text.empty() && edges > 0;
    split_at_blanks(line, words);
    if (words.size() < 2 || !nodes.ids.contains(words[0]) || !nodes.ids.contains(words[1])) {
      if (may_continue) break;
      return;
    }
    ++edges;
  }
  GPUPS_REQUIRE(
      edges == 0,
      "{} is a TGF network, with nodes and their labels above a line '#' (the labels would be read as nodes): "
      "write the edges below it alone, for example with sed '1,/^#/d', or, if all lines are edges, remove '#'",
      path);
}

}  // namespace gpups::trainer
