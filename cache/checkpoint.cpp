// SPDX-License-Identifier: Apache-2.0
#include "cache/checkpoint.hpp"

#include <algorithm>
#include <cstring>

#include "cache/without_padding.hpp"
#include "kernels/check.hpp"
#include "kernels/hash.hpp"
#include "kernels/life.hpp"
#include "kernels/number_type.hpp"

namespace gpups {
namespace cache {
namespace {

constexpr std::uint32_t kEnd = 0xFFFFFFFF;
constexpr std::uint32_t kPieceRows = 16384;
constexpr std::uint32_t kExisting = 0, kWaitingRows = 1;  // kinds of pieces

// One piece on the host, without padding.
struct HostPiece {
  std::vector<Key> keys;
  std::vector<float> values, state;
  std::vector<std::uint32_t> life;  // (n, kLifeWords)
};

template <class T>
void write_column(FileWriter& writer, std::vector<T> const& column) {
  writer.write(column.data(), column.size() * sizeof(T));
}

template <class T>
std::vector<T> read_column(FileReader& reader, std::size_t size) {
  GPUPS_REQUIRE(size <= reader.bytes_left() / sizeof(T),
                "a checkpoint's piece is longer than its file (it would be "
                "read past its end): use another checkpoint");
  std::vector<T> column(size);
  reader.read(column.data(), size * sizeof(T));
  return column;
}

// Values are numbers of their table's type in files, and floats elsewhere.
void write_values(FileWriter& writer, std::vector<float> const& values, NumberType type) {
  if (type == NumberType::kFloat) return write_column(writer, values);
  kernels::with_number(type, [&]<class T>() {
    std::vector<T> column(values.size());
    std::transform(values.begin(), values.end(), column.begin(), kernels::round_to<T>);
    write_column(writer, column);
  });
}

std::vector<float> read_values(FileReader& reader, std::size_t size, NumberType type) {
  if (type == NumberType::kFloat) return read_column<float>(reader, size);
  std::vector<float> values(size);
  kernels::with_number(type, [&]<class T>() {
    auto const column = read_column<T>(reader, size);
    std::transform(column.begin(), column.end(), values.begin(), [](T x) { return kernels::to_float(x); });
  });
  return values;
}

// Keeps the elements of rows whose home is `me`, in place; `width` of each row.
template <class T>
void keep_rows(std::vector<T>& column, std::vector<bool> const& own, std::size_t width) {
  if (column.empty()) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (!own[i]) continue;
    std::copy_n(column.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                column.begin() + static_cast<std::ptrdiff_t>(kept * width));
    ++kept;
  }
  column.resize(kept * width);
}

void keep_own(HostPiece& piece, std::size_t dim, std::size_t state_columns, Rank me, int ranks) {
  std::vector<bool> own;
  for (Key const key : piece.keys) {
    own.push_back(kernels::home_of(key, static_cast<std::uint32_t>(ranks)) == number(me));
  }
  keep_rows(piece.keys, own, 1);
  keep_rows(piece.life, own, kernels::kLifeWords);
  keep_rows(piece.values, own, dim);
  keep_rows(piece.state, own, state_columns);
}

TableShard::Piece to_device_piece(Stream& stream, HostPiece const& host, std::size_t dim) {
  std::size_t const rows = host.values.size() / dim;
  Matrix<float> padded(Device::host(), rows, dim);
  memory::fill_bytes(stream, padded.view().data(), 0, padded.view().flat().bytes());
  for (std::size_t i = 0; i < rows; ++i) {
    std::copy_n(host.values.begin() + static_cast<std::ptrdiff_t>(i * dim), dim, padded.row(i).begin());
  }
  TableShard::Piece piece;
  piece.keys = to_device(stream, host.keys);
  piece.values = Matrix<float>(stream.device(), rows, dim);
  copy<float>(stream, piece.values.view().flat(), padded.view().flat());
  piece.state = to_device(stream, host.state);
  piece.life = to_device(stream, host.life);
  stream.wait();
  return piece;
}

void write_piece(Stream& stream, FileWriter& writer, std::uint32_t table, std::uint32_t kind, NumberType type,
                 TableShard::Piece const& piece) {
  if (piece.rows() == 0) return;
  writer.put(table);
  writer.put(kind);
  writer.put(std::uint64_t{piece.rows()});
  write_column(writer, to_host(stream, piece.keys.view()));
  write_column(writer, to_host(stream, piece.life.view()));
  if (kind != kExisting) return;
  write_values(writer, wait_without_padding(stream, piece.values), type);
  write_column(writer, to_host(stream, piece.state.view()));
}

HostPiece read_piece(FileReader& reader, std::uint32_t kind, std::size_t rows, TableShard const& table) {
  HostPiece piece;
  piece.keys = read_column<Key>(reader, rows);
  piece.life = read_column<std::uint32_t>(reader, rows * kernels::kLifeWords);
  if (kind != kExisting) return piece;
  piece.values = read_values(reader, rows * table.dim(), table.options().values);
  piece.state = read_column<float>(reader, rows * table.state_columns());
  return piece;
}

}  // namespace

FileSeal write_rows(Stream& stream, Tables const& tables, std::filesystem::path const& path) {
  FileWriter writer(path);
  for (std::uint32_t t = 0; t < tables.size(); ++t) {
    auto const& table = *tables[t];
    for (std::size_t first = 0; first < table.rows_reserved(); first += kPieceRows) {
      auto const last = std::min<std::size_t>(first + kPieceRows, table.rows_reserved());
      auto const select = [&](kernels::RowsThat kind) {
        return table.wait_select(stream, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last), kind);
      };
      write_piece(stream, writer, t, kExisting, table.options().values,
                  table.wait_read(stream, select(kernels::RowsThat::kExist), TableShard::Columns::kAll));
      if (!table.counts_sightings()) continue;
      write_piece(stream, writer, t, kWaitingRows, table.options().values,
                  table.wait_read(stream, select(kernels::RowsThat::kWait), TableShard::Columns::kKeysAndLife));
    }
  }
  writer.put(kEnd);
  return writer.finish();
}

void read_rows(Stream& stream, Tables& tables, std::filesystem::path const& path, Rank me, int ranks) {
  FileReader reader(path);
  for (auto t = reader.get<std::uint32_t>(); t != kEnd; t = reader.get<std::uint32_t>()) {
    GPUPS_REQUIRE(t < tables.size(), "'{}' names table {} (the store has {}): use another checkpoint", path.string(), t,
                  tables.size());
    auto& table = *tables[t];
    auto const kind = reader.get<std::uint32_t>();
    GPUPS_REQUIRE(kind <= kWaitingRows,
                  "'{}' has a piece of unknown kind {} (it cannot be read): use another checkpoint", path.string(),
                  kind);
    auto const rows = reader.get<std::uint64_t>();
    GPUPS_REQUIRE(rows <= kPieceRows, "'{}' has a piece of {} rows (the most is {}): use another checkpoint",
                  path.string(), rows, kPieceRows);
    auto piece = read_piece(reader, kind, rows, table);
    keep_own(piece, table.dim(), table.state_columns(), me, ranks);
    if (!piece.keys.empty()) table.wait_write(stream, to_device_piece(stream, piece, table.dim()));
  }
}

std::vector<Blob> read_blobs_of(std::filesystem::path const& folder, Manifest const& manifest) {
  std::vector<Blob> blobs;
  for (auto const& [name, file] : manifest.blobs) {
    verify(folder / manifest.folder, file);
    blobs.push_back({name, read_whole(folder / manifest.folder / file.name)});
  }
  return blobs;
}

}  // namespace cache

std::vector<Blob> read_blobs(std::filesystem::path const& folder) {
  return cache::read_blobs_of(folder, cache::read_manifest(folder));
}

}  // namespace gpups
