// SPDX-License-Identifier: Apache-2.0
#include "cache/checkpoint.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/check.hpp"
#include "kernels/hash.hpp"

namespace gpups {
namespace cache {
namespace {

constexpr std::uint32_t kEnd = 0xFFFFFFFF;
constexpr std::uint32_t kPieceRows = 16384;

// One piece on the host, without padding.
struct HostPiece {
  std::vector<Key> keys;
  std::vector<float> values, state;
  std::vector<std::uint32_t> life;
};

std::vector<float> without_padding(Stream& stream, MatrixView<float const> from) {
  auto const padded = to_host(stream, from.flat());
  std::vector<float> values(from.rows() * from.columns());
  for (std::size_t i = 0; i < from.rows(); ++i) {
    std::copy_n(padded.data() + i * from.stride(), from.columns(), values.data() + i * from.columns());
  }
  return values;
}

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

// Keeps the rows whose home is `me`, in place.
void keep_own(HostPiece& piece, std::size_t dim, std::size_t state_columns, Rank me, int ranks) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < piece.keys.size(); ++i) {
    if (kernels::home_of(piece.keys[i], static_cast<std::uint32_t>(ranks)) != number(me)) continue;
    piece.keys[kept] = piece.keys[i];
    piece.life[kept] = piece.life[i];
    std::copy_n(piece.values.begin() + static_cast<std::ptrdiff_t>(i * dim), dim,
                piece.values.begin() + static_cast<std::ptrdiff_t>(kept * dim));
    std::copy_n(piece.state.begin() + static_cast<std::ptrdiff_t>(i * state_columns), state_columns,
                piece.state.begin() + static_cast<std::ptrdiff_t>(kept * state_columns));
    ++kept;
  }
  piece.keys.resize(kept);
  piece.life.resize(kept);
  piece.values.resize(kept * dim);
  piece.state.resize(kept * state_columns);
}

TableShard::Piece to_device_piece(Stream& stream, HostPiece const& host, std::size_t dim) {
  Matrix<float> padded(Device::host(), host.keys.size(), dim);
  memory::fill_bytes(stream, padded.view().data(), 0, padded.view().flat().bytes());
  for (std::size_t i = 0; i < host.keys.size(); ++i) {
    std::copy_n(host.values.begin() + static_cast<std::ptrdiff_t>(i * dim), dim, padded.row(i).begin());
  }
  TableShard::Piece piece;
  piece.keys = to_device(stream, host.keys);
  piece.values = Matrix<float>(stream.device(), host.keys.size(), dim);
  copy<float>(stream, piece.values.view().flat(), padded.view().flat());
  piece.state = to_device(stream, host.state);
  piece.life = to_device(stream, host.life);
  stream.wait();
  return piece;
}

}  // namespace

FileSeal write_rows(Stream& stream, Tables const& tables, std::filesystem::path const& path) {
  FileWriter writer(path);
  for (std::uint32_t t = 0; t < tables.size(); ++t) {
    auto const& table = *tables[t];
    for (std::size_t first = 0; first < table.rows_reserved(); first += kPieceRows) {
      auto const last = std::min<std::size_t>(first + kPieceRows, table.rows_reserved());
      auto const piece =
          table.wait_read(stream, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last), true);
      if (piece.rows() == 0) continue;
      writer.put(t);
      writer.put(std::uint64_t{piece.rows()});
      write_column(writer, to_host(stream, piece.keys.view()));
      write_column(writer, without_padding(stream, piece.values));
      write_column(writer, to_host(stream, piece.state.view()));
      write_column(writer, to_host(stream, piece.life.view()));
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
    auto const rows = reader.get<std::uint64_t>();
    GPUPS_REQUIRE(rows <= kPieceRows, "'{}' has a piece of {} rows (the most is {}): use another checkpoint",
                  path.string(), rows, kPieceRows);
    HostPiece piece;
    piece.keys = read_column<Key>(reader, rows);
    piece.values = read_column<float>(reader, rows * table.dim());
    piece.state = read_column<float>(reader, rows * table.state_columns());
    piece.life = read_column<std::uint32_t>(reader, rows);
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
