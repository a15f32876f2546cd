// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/common/named_vectors.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/check.hpp"
#include "trainer/base/atomic_folder.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/input/odd_characters.hpp"
#include "trainer/tasks/common/nearest.hpp"

namespace gpups::trainer {

void write_word2vec(std::filesystem::path const& path, Dictionary const& names, MatrixView<float const> rows,
                    bool binary) {
  constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
  std::size_t const dim = rows.columns();
  std::ofstream file(path, std::ios::binary);
  std::string text = fmt::format("{} {}\n", rows.rows(), dim);
  for (std::uint32_t i = 0; i < rows.rows(); ++i) {
    text += names.name(i);
    if (binary) {
      text += ' ';
      text.append(reinterpret_cast<char const*>(rows.row(i)), dim * sizeof(float));
    } else {
      for (std::size_t k = 0; k < dim; ++k) fmt::format_to(std::back_inserter(text), " {}", rows.row(i)[k]);
    }
    text += '\n';
    if (text.size() < kBlockBytes) continue;
    file << text;
    text.clear();
  }
  file << text;
  file.close();
  GPUPS_REQUIRE(file.good(), "{} cannot be written (the disk may be full): free space, or export to another folder",
                path.string());
}

namespace fs = std::filesystem;

namespace {

// Returns the names that have a row. Adds a notice of the others.
Dictionary names_with_rows(Stream& stream, Store& store, TableId table, Dictionary const& names,
                           std::vector<std::string>& notices) {
  std::vector<bool> const have = wait_have_rows(stream, store, table, names.keys());
  Dictionary kept(names.kind());
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    if (have[i]) kept.add(names.name(i));
  }
  if (std::size_t const others = names.size() - kept.size(); others > 0) {
    notices.push_back(fmt::format("left out {} of {}, which training has not seen: they have no rows",
                                  with_count(others, names.kind()), names.size()));
  }
  return kept;
}

}  // namespace

void export_named_vectors(SavedModel const& model, Data const& data, Dictionary const& names,
                          Dictionary const* other_names, fs::path const& folder, ModelFormat format,
                          std::vector<std::string>& notices) {
  RestoredModel restored(model, data);
  Store& store = restored.store();
  Stream stream = store.make_stream();
  Dictionary const kept = names_with_rows(stream, store, TableId{0}, names, notices);
  if (!is_word2vec(format)) {
    std::optional<Dictionary> others;
    if (other_names != nullptr) others = names_with_rows(stream, store, TableId{1}, *other_names, notices);
    return write_folder(folder, [&](fs::path const& beside) {
      store.export_rows(beside / "rows", array_format(format));
      auto const write = [&](Dictionary const& of) {
        write_file(beside / (of.kind() + "s.tsv"), names_and_keys(of, of.keys()));
      };
      write(kept);
      if (others) write(*others);
      write_file(beside / "model.json", description_of(model));
    });
  }
  require_fit_names(
      kept, [](std::string_view name) { return name.empty() || has_white_space(name); },
      "cannot be in a file of word2vec, since a name is empty or has white space",
      "use --format npy or flat, which write the names to a file of their own, or replace the white space in the "
      "data and train again");
  Matrix<float> const rows = read_rows(stream, store, TableId{0}, kept.keys());
  std::vector<float> const host = to_host(stream, rows.view().flat());
  bool const binary = format == ModelFormat::kWord2vecBinary;
  write_folder(folder, [&](fs::path const& beside) {
    write_word2vec(beside / (binary ? "vectors.bin" : "vectors.txt"), kept,
                   {host.data(), rows.rows(), rows.columns(), rows.stride()}, binary);
  });
}

}  // namespace gpups::trainer
