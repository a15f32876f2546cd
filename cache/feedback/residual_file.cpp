// SPDX-License-Identifier: Apache-2.0
#include "cache/feedback/residual_file.hpp"

#include <algorithm>
#include <optional>

#include "kernels/base/check.hpp"
#include "kernels/codec/accumulate_residual.hpp"

namespace gpups::cache {
namespace {

constexpr std::uint32_t kNoMoreTables = 0xFFFFFFFF, kAllChanges = 1, kHasKind = 0x80000000;

template <class T>
void write_list(FileWriter& writer, std::vector<T> const& column) {
  writer.write(column.data(), column.size() * sizeof(T));
}

template <class T>
std::vector<T> read_list(FileReader& reader, std::uint64_t rows, std::size_t width) {
  GPUPS_REQUIRE(
      rows <= reader.bytes_left() / (width * sizeof(T)),
      "a list of residuals or mirrors in a checkpoint is longer than its file (the file is damaged): use another "
      "checkpoint");
  std::vector<T> column(static_cast<std::size_t>(rows) * width);
  reader.read(column.data(), column.size() * sizeof(T));
  return column;
}

template <class T>
void read_rows(FileReader& reader, std::size_t dim, std::vector<Key>& keys, std::vector<std::uint32_t>& marks,
               std::vector<T>& numbers) {
  auto const rows = reader.get<std::uint64_t>();
  keys = read_list<Key>(reader, rows, 1);
  marks = read_list<std::uint32_t>(reader, rows, kernels::kResidualMarks);
  numbers = read_list<T>(reader, rows, dim);
}

// of: the kind of a residual chunk, or the reader of mirrors.
void write_head(FileWriter& writer, TableId table, std::uint32_t of, AdaptiveThreshold::State const& threshold) {
  writer.put(number(table));
  writer.put(of);
  writer.put(threshold.steps);
  writer.put(threshold.threshold);
}

template <class T>
void write_rows(FileWriter& writer, std::vector<Key> const& keys, std::vector<std::uint32_t> const& marks,
                std::vector<T> const& numbers) {
  writer.put(std::uint64_t{keys.size()});
  write_list(writer, keys);
  write_list(writer, marks);
  write_list(writer, numbers);
}

// The table of a chunk, and its kind or a rank. read_head() returns nullopt at the end of a list.
struct ChunkHead {
  TableId table;
  std::uint32_t of;

  Rank rank(std::string const& path, std::uint32_t ranks) const {
    GPUPS_REQUIRE(of < ranks, "'{}' has data for rank {} of {} ranks (there is no such rank): use another checkpoint",
                  path, of, ranks);
    return Rank{of};
  }
};
std::optional<ChunkHead> read_head(FileReader& reader, std::string const& path, std::size_t tables) {
  auto const table = reader.get<std::uint32_t>();
  if (table == kNoMoreTables) return std::nullopt;
  GPUPS_REQUIRE(
      table < tables,
      "'{}' has rows of table {}, but its checkpoint has {} tables (the file is inconsistent): use another checkpoint",
      path, table, tables);
  return ChunkHead{TableId{table}, reader.get<std::uint32_t>()};
}

ResidualChunk::Kind kind_of(ChunkHead const& head, std::string const& path, ResidualFile const& file) {
  using Kind = ResidualChunk::Kind;
  if ((head.of & kHasKind) == 0) return head.rank(path, file.writers) == file.writer ? Kind::kWaits : Kind::kResidual;
  std::uint32_t const kind = head.of ^ kHasKind;
  GPUPS_REQUIRE(kind <= static_cast<std::uint32_t>(Kind::kOwned),
                "'{}' has residuals of the kind {} (this program does not know it): use the version that wrote it",
                path, kind);
  return static_cast<Kind>(kind);
}

AdaptiveThreshold::State read_threshold(FileReader& reader) {
  AdaptiveThreshold::State state;
  state.steps = reader.get<std::uint64_t>();
  state.threshold = reader.get<float>();
  return state;
}

}  // namespace

Matrix<std::int64_t> padded_sums(Stream& stream, ResidualChunk const& chunk, std::size_t dim) {
  std::size_t const rows = chunk.keys.size(), stride = row_stride(dim);
  std::vector<std::int64_t> padded(rows * stride, 0);
  for (std::size_t i = 0; i < rows; ++i) {
    std::copy_n(chunk.sums.data() + i * dim, dim, padded.data() + i * stride);
  }
  Matrix<std::int64_t> there(stream.device(), rows, dim);
  copy<std::int64_t>(stream, there.view().flat(), View<std::int64_t const>(padded));
  stream.wait();
  return there;
}

FileChecksum write_residuals(ResidualFile const& file, std::filesystem::path const& path) {
  FileWriter writer(path);
  writer.put(number(file.writer));
  writer.put(file.writers);
  writer.put(file.samples);
  for (auto const& chunk : file.chunks) {
    write_head(writer, chunk.table, kHasKind | static_cast<std::uint32_t>(chunk.kind), chunk.threshold);
    write_rows(writer, chunk.keys, chunk.marks, chunk.sums);
  }
  writer.put(kNoMoreTables);
  for (auto const& chunk : file.mirrors) {
    write_head(writer, chunk.table, number(chunk.reader), chunk.threshold);
    writer.put(number(chunk.step));
    write_rows(writer, chunk.keys, chunk.marks, chunk.values);
  }
  writer.put(kNoMoreTables);
  if (file.resends_all_values) writer.put(kAllChanges);
  return writer.finish();
}

ResidualFile read_residuals(std::filesystem::path const& path, std::vector<std::size_t> const& dims) {
  FileReader reader(path);
  ResidualFile file;
  file.writer = Rank{reader.get<std::uint32_t>()};
  file.writers = reader.get<std::uint32_t>();
  file.samples = reader.get<std::uint64_t>();
  while (auto const of = read_head(reader, path.string(), dims.size())) {
    ResidualChunk chunk{.table = of->table,
                        .kind = kind_of(*of, path.string(), file),
                        .threshold = read_threshold(reader),
                        .keys = {},
                        .marks = {},
                        .sums = {}};
    read_rows(reader, dims[number(of->table)], chunk.keys, chunk.marks, chunk.sums);
    file.chunks.push_back(std::move(chunk));
  }
  if (reader.bytes_left() == 0) return file;  // format 4
  while (auto const of = read_head(reader, path.string(), dims.size())) {
    MirrorChunk chunk{.table = of->table,
                      .reader = of->rank(path.string(), file.writers),
                      .threshold = read_threshold(reader),
                      .keys = {},
                      .marks = {},
                      .values = {}};
    chunk.step = Clock{reader.get<std::int64_t>()};
    read_rows(reader, dims[number(of->table)], chunk.keys, chunk.marks, chunk.values);
    file.mirrors.push_back(std::move(chunk));
  }
  if (reader.bytes_left() == 0) return file;
  file.resends_all_values = reader.get<std::uint32_t>() == kAllChanges && reader.bytes_left() == 0;
  GPUPS_REQUIRE(file.resends_all_values, "'{}' has bytes after its end (the file is damaged): use another checkpoint",
                path.string());
  return file;
}

}  // namespace gpups::cache
