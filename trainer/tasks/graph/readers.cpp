// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "kernels/base/check.hpp"
#include "trainer/tasks/graph/reader.hpp"

namespace gpups::trainer {
namespace {

constexpr ReaderEntry kAll[] = {
    {"triples", read_triples},
    {"wordnet", read_wordnet},
};

}  // namespace

std::span<ReaderEntry const> readers() { return kAll; }

std::vector<std::string> reader_names() {
  std::vector<std::string> names;
  for (ReaderEntry const& r : kAll) names.emplace_back(r.name);
  return names;
}

Dataset read_dataset(DataConfig const& config) {
  for (ReaderEntry const& r : kAll) {
    if (r.name == config.reader) return r.read(config);
  }
  throw Error(fmt::format("there is no reader '{}' (the data cannot be read): use one of {}", config.reader,
                          fmt::join(reader_names(), ", ")));
}

}  // namespace gpups::trainer
