// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/graph/reader/wordnet_database.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "kernels/base/check.hpp"
#include "trainer/input/line_reader.hpp"

namespace gpups::trainer {
namespace {

struct Part {
  char letter;  // in pointers; adjective satellites count as adjectives
  char const* file;
};
constexpr Part kParts[] = {{'n', "noun"}, {'v', "verb"}, {'a', "adj"}, {'r', "adv"}};

// The id of a synset in the database: its part of speech, and the byte offset of its line in that file.
using Place = std::uint64_t;
Place place_of(char letter, std::uint64_t offset) { return offset << 8 | static_cast<unsigned char>(letter); }

// Reads the fields of a line in order.
class Fields {
 public:
  Fields(std::string_view line, LineReader const& reader) : line_(line), reader_(reader) {}

  bool ended() {
    std::size_t const start = line_.find_first_not_of(' ');
    line_.remove_prefix(std::min(start, line_.size()));
    return line_.empty();
  }
  std::string_view word() {
    require(!ended());
    std::size_t const stop = std::min(line_.find(' '), line_.size());
    std::string_view const field = line_.substr(0, stop);
    line_.remove_prefix(stop);
    return field;
  }
  std::uint64_t number(int base = 10) {
    std::string_view const field = word();
    std::uint64_t value = 0;
    auto const [stop, error] = std::from_chars(field.data(), field.data() + field.size(), value, base);
    require(error == std::errc{} && stop == field.data() + field.size());
    return value;
  }
  void require(bool ok) const {
    GPUPS_REQUIRE(ok, "{} is not a line of a WordNet database (see wndb(5WN) for its fields): check data.folder",
                  reader_.position());
  }

 private:
  std::string_view line_;
  LineReader const& reader_;
};

// Returns whether a line is an entry. Lines of the licence begin with two spaces.
bool is_entry(std::string_view line) { return !line.starts_with("  ") && !line.empty(); }

std::string lower(std::string_view text) {
  std::string copy(text);
  for (char& c : copy) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return copy;
}

// Reads the files of a database, then resolves names and pointers.
class Database {
 public:
  // Reads a data file: for each synset the first word, the kind and the pointers.
  void read_data(std::filesystem::path const& path, char letter) {
    LineReader reader(path);
    std::string_view line;
    while (reader.next(line)) {
      if (!is_entry(line)) continue;
      Fields fields(line.substr(0, line.find(" | ")), reader);
      std::uint64_t const offset = fields.number();
      fields.number();  // number of the lexicographer file
      std::string_view const kind = fields.word();
      std::uint64_t const words = fields.number(16);
      fields.require(kind.size() == 1 && words > 0);
      std::string_view first;
      for (std::uint64_t i = 0; i < words; ++i) {
        std::string_view const word = fields.word();
        if (i == 0) first = word.substr(0, word.find('('));  // a syntactic marker follows some adjectives
        fields.word();                                       // id in the lexicographer file
      }
      fields.require(by_place_.emplace(place_of(letter, offset), synsets_.size()).second);
      synsets_.push_back({lower(first), {}});
      kinds_.push_back(kind[0]);
      senses_.push_back(0);
      links_.emplace_back();
      for (std::uint64_t left = fields.number(); left > 0; --left) {
        std::string_view const symbol = fields.word();
        std::uint64_t const to = fields.number();
        std::string_view const part = fields.word();
        fields.require(part.size() == 1);
        if (fields.word() == "0000") links_.back().push_back({std::string(symbol), place_of(part[0], to)});
      }
    }
  }

  // Reads an index file, which lists the synsets of each word in the order of senses. The number of a synset's sense is
  // its position in the list of its first word.
  void read_index(std::filesystem::path const& path, char letter) {
    LineReader reader(path);
    std::string_view line;
    while (reader.next(line)) {
      if (!is_entry(line)) continue;
      Fields fields(line, reader);
      std::string_view const word = fields.word();
      fields.word();  // part of speech
      std::uint64_t const senses = fields.number();
      for (std::uint64_t symbols = fields.number() + 2; symbols > 0; --symbols) fields.word();
      for (std::uint64_t sense = 1; sense <= senses; ++sense) {
        auto const found = by_place_.find(place_of(letter, fields.number()));
        fields.require(found != by_place_.end());
        if (synsets_[found->second].name == word) senses_[found->second] = sense;
      }
      fields.require(fields.ended());
    }
  }

  // Returns the synsets with their names and pointers.
  std::vector<Synset> finish(std::filesystem::path const& folder) {
    std::unordered_set<std::string> names;
    for (std::size_t i = 0; i < synsets_.size(); ++i) {
      Synset& synset = synsets_[i];
      GPUPS_REQUIRE(senses_[i] > 0,
                    "the index files in {} do not list '{}' (the names of synsets need its senses): check the files",
                    folder.string(), synset.name);
      synset.name = fmt::format("{}.{}.{:02}", synset.name, kinds_[i], senses_[i]);
      GPUPS_REQUIRE(names.insert(synset.name).second,
                    "two synsets in {} have the name '{}' (names must be unique): check the files", folder.string(),
                    synset.name);
      for (Link const& link : links_[i]) {
        auto const found = by_place_.find(link.to);
        GPUPS_REQUIRE(found != by_place_.end(),
                      "a pointer of '{}' in {} has no target (the files do not match): check the files", synset.name,
                      folder.string());
        synset.pointers.push_back({link.symbol, found->second});
      }
    }
    return std::move(synsets_);
  }

 private:
  struct Link {
    std::string symbol;
    Place to;
  };
  std::vector<Synset> synsets_;
  std::vector<char> kinds_;
  std::vector<std::uint64_t> senses_;
  std::vector<std::vector<Link>> links_;
  std::unordered_map<Place, std::uint32_t> by_place_;
};

}  // namespace

std::vector<Synset> read_wordnet_database(std::filesystem::path const& folder) {
  Database database;
  for (Part const& part : kParts) database.read_data(folder / (std::string("data.") + part.file), part.letter);
  for (Part const& part : kParts) database.read_index(folder / (std::string("index.") + part.file), part.letter);
  return database.finish(folder);
}

}  // namespace gpups::trainer
