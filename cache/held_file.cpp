// SPDX-License-Identifier: Apache-2.0
#include "cache/held_file.hpp"

#include <algorithm>

#include "kernels/check.hpp"
#include "kernels/wire/hold_rows.hpp"

namespace gpups::cache {
namespace {

constexpr std::uint32_t kEnd = 0xFFFFFFFF;

template <class T>
void write_column(FileWriter& writer, std::vector<T> const& column) {
  writer.write(column.data(), column.size() * sizeof(T));
}

template <class T>
std::vector<T> read_column(FileReader& reader, std::uint64_t rows, std::size_t width) {
  GPUPS_REQUIRE(rows <= reader.bytes_left() / (width * sizeof(T)),
                "a checkpoint's list of held gradients is longer than its file (it would be read past its end): use "
                "another checkpoint");
  std::vector<T> column(static_cast<std::size_t>(rows) * width);
  reader.read(column.data(), column.size() * sizeof(T));
  return column;
}

}  // namespace

Matrix<std::int64_t> padded_sums(Stream& stream, HeldPiece const& piece, std::size_t dim) {
  std::size_t const rows = piece.keys.size(), stride = row_stride(dim);
  std::vector<std::int64_t> padded(rows * stride, 0);
  for (std::size_t i = 0; i < rows; ++i) {
    std::copy_n(piece.sums.data() + i * dim, dim, padded.data() + i * stride);
  }
  Matrix<std::int64_t> there(stream.device(), rows, dim);
  copy<std::int64_t>(stream, there.view().flat(), View<std::int64_t const>(padded));
  stream.wait();
  return there;
}

FileSeal write_held(HeldFile const& file, std::filesystem::path const& path) {
  FileWriter writer(path);
  writer.put(number(file.writer));
  writer.put(file.writers);
  writer.put(file.samples);
  for (auto const& piece : file.pieces) {
    writer.put(number(piece.table));
    writer.put(number(piece.peer));
    writer.put(piece.bound.steps);
    writer.put(piece.bound.bound);
    writer.put(std::uint64_t{piece.keys.size()});
    write_column(writer, piece.keys);
    write_column(writer, piece.marks);
    write_column(writer, piece.sums);
  }
  writer.put(kEnd);
  return writer.finish();
}

HeldFile read_held(std::filesystem::path const& path, std::vector<std::size_t> const& dims) {
  FileReader reader(path);
  HeldFile file;
  file.writer = Rank{reader.get<std::uint32_t>()};
  file.writers = reader.get<std::uint32_t>();
  file.samples = reader.get<std::uint64_t>();
  for (auto table = reader.get<std::uint32_t>(); table != kEnd; table = reader.get<std::uint32_t>()) {
    GPUPS_REQUIRE(table < dims.size(), "'{}' names table {} (the store has {}): use another checkpoint", path.string(),
                  table, dims.size());
    HeldPiece piece{
        .table = TableId{table}, .peer = Rank{reader.get<std::uint32_t>()}, .keys = {}, .marks = {}, .sums = {}};
    GPUPS_REQUIRE(number(piece.peer) < file.writers,
                  "'{}' has gradients for rank {} of {} (there is none): use another checkpoint", path.string(),
                  number(piece.peer), file.writers);
    piece.bound.steps = reader.get<std::uint64_t>();
    piece.bound.bound = reader.get<float>();
    auto const rows = reader.get<std::uint64_t>();
    piece.keys = read_column<Key>(reader, rows, 1);
    piece.marks = read_column<std::uint32_t>(reader, rows, kernels::kHeldMarks);
    piece.sums = read_column<std::int64_t>(reader, rows, dims[table]);
    file.pieces.push_back(std::move(piece));
  }
  return file;
}

}  // namespace gpups::cache
