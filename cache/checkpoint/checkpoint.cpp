// SPDX-License-Identifier: Apache-2.0
#include "cache/checkpoint/checkpoint.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/base/check.hpp"
#include "kernels/rows/number_type.hpp"
#include "kernels/rows/row_lifecycle.hpp"

namespace gpups {
namespace cache {
namespace {

constexpr std::uint32_t kEnd = 0xFFFFFFFF;
constexpr std::uint32_t kRowsPerChunk = 16384;
constexpr std::uint32_t kExisting = 0, kWaitingRows = 1;  // kinds of chunks

// A chunk on the host, without padding.
struct HostRowChunk {
  std::vector<Key> keys;
  std::vector<float> values, state;
  std::vector<std::uint32_t> lifecycle;  // (n, kLifecycleWords)
};

template <class T>
void write_column(FileWriter& writer, std::vector<T> const& column) {
  writer.write(column.data(), column.size() * sizeof(T));
}

template <class T>
std::vector<T> read_column(FileReader& reader, std::size_t size) {
  GPUPS_REQUIRE(size <= reader.bytes_left() / sizeof(T),
                "a chunk of a checkpoint is longer than its file (the file is damaged): use another checkpoint");
  std::vector<T> column(size);
  reader.read(column.data(), size * sizeof(T));
  return column;
}

// Writes values as numbers of the table's data type; in memory they are floats.
void write_values(FileWriter& writer, std::vector<float> const& values, DataType type) {
  if (type == DataType::kFloat) return write_column(writer, values);
  kernels::with_number(type, [&]<class T>() {
    std::vector<T> column(values.size());
    std::transform(values.begin(), values.end(), column.begin(), kernels::round_to<T>);
    write_column(writer, column);
  });
}

std::vector<float> read_values(FileReader& reader, std::size_t size, DataType type) {
  if (type == DataType::kFloat) return read_column<float>(reader, size);
  std::vector<float> values(size);
  kernels::with_number(type, [&]<class T>() {
    auto const column = read_column<T>(reader, size);
    std::transform(column.begin(), column.end(), values.begin(), [](T x) { return kernels::to_float(x); });
  });
  return values;
}

// Removes the rows that are not `own` from a column with `width` elements per row, in place.
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

void keep_owned(HostRowChunk& chunk, std::size_t dim, std::size_t state_columns, TableId table, OwnsRow const& owns) {
  std::vector<bool> own;
  for (Key const key : chunk.keys) own.push_back(owns(table, key));
  keep_rows(chunk.keys, own, 1);
  keep_rows(chunk.lifecycle, own, kernels::kLifecycleWords);
  keep_rows(chunk.values, own, dim);
  keep_rows(chunk.state, own, state_columns);
}

TableShard::RowChunk to_device_chunk(Stream& stream, HostRowChunk const& host, std::size_t dim) {
  std::size_t const rows = host.values.size() / dim;
  Matrix<float> padded(Device::host(), rows, dim);
  // On the host, whatever the device of the stream.
  std::fill_n(padded.view().data(), padded.view().flat().size(), 0.0F);
  for (std::size_t i = 0; i < rows; ++i) {
    std::copy_n(host.values.begin() + static_cast<std::ptrdiff_t>(i * dim), dim, padded.row(i).begin());
  }
  TableShard::RowChunk chunk;
  chunk.keys = to_device(stream, host.keys);
  chunk.values = Matrix<float>(stream.device(), rows, dim);
  copy<float>(stream, chunk.values.view().flat(), padded.view().flat());
  chunk.state = to_device(stream, host.state);
  chunk.lifecycle = to_device(stream, host.lifecycle);
  stream.wait();
  return chunk;
}

void write_chunk(Stream& stream, FileWriter& writer, std::uint32_t table, std::uint32_t kind, DataType type,
                 TableShard::RowChunk const& chunk) {
  if (chunk.rows() == 0) return;
  writer.put(table);
  writer.put(kind);
  writer.put(std::uint64_t{chunk.rows()});
  write_column(writer, to_host(stream, chunk.keys.view()));
  write_column(writer, to_host(stream, chunk.lifecycle.view()));
  if (kind != kExisting) return;
  write_values(writer, wait_unpadded(stream, chunk.values), type);
  write_column(writer, to_host(stream, chunk.state.view()));
}

HostRowChunk read_chunk(FileReader& reader, std::uint32_t kind, std::size_t rows, TableShard const& table) {
  HostRowChunk chunk;
  chunk.keys = read_column<Key>(reader, rows);
  chunk.lifecycle = read_column<std::uint32_t>(reader, rows * kernels::kLifecycleWords);
  if (kind != kExisting) return chunk;
  chunk.values = read_values(reader, rows * table.dim(), table.options().value_type);
  chunk.state = read_column<float>(reader, rows * table.state_columns());
  return chunk;
}

}  // namespace

FileChecksum write_rows(Stream& stream, TableShards const& tables, std::filesystem::path const& path) {
  FileWriter writer(path);
  for (std::uint32_t t = 0; t < tables.size(); ++t) {
    auto const& table = *tables[t];
    for (std::size_t first = 0; first < table.rows_reserved(); first += kRowsPerChunk) {
      auto const last = std::min<std::size_t>(first + kRowsPerChunk, table.rows_reserved());
      auto const select = [&](kernels::RowStatus kind) {
        return table.wait_select(stream, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last), kind);
      };
      write_chunk(stream, writer, t, kExisting, table.options().value_type,
                  table.wait_read(stream, select(kernels::RowStatus::kExist), TableShard::Columns::kAll));
      if (!table.counts_occurrences()) continue;
      write_chunk(stream, writer, t, kWaitingRows, table.options().value_type,
                  table.wait_read(stream, select(kernels::RowStatus::kWait), TableShard::Columns::kKeysAndLifecycle));
    }
  }
  writer.put(kEnd);
  return writer.finish();
}

void read_rows(Stream& stream, TableShards& tables, std::filesystem::path const& path, OwnsRow const& owns) {
  FileReader reader(path);
  for (auto t = reader.get<std::uint32_t>(); t != kEnd; t = reader.get<std::uint32_t>()) {
    GPUPS_REQUIRE(t < tables.size(),
                  "'{}' has rows of table {}, but its checkpoint has {} tables (the file is inconsistent): use another "
                  "checkpoint",
                  path.string(), t, tables.size());
    auto& table = *tables[t];
    auto const kind = reader.get<std::uint32_t>();
    GPUPS_REQUIRE(kind <= kWaitingRows,
                  "'{}' has a chunk of unknown kind {} (the file is damaged): use another checkpoint", path.string(),
                  kind);
    auto const rows = reader.get<std::uint64_t>();
    GPUPS_REQUIRE(rows <= kRowsPerChunk, "'{}' has a chunk of {} rows (the maximum is {}): use another checkpoint",
                  path.string(), rows, kRowsPerChunk);
    auto chunk = read_chunk(reader, kind, rows, table);
    keep_owned(chunk, table.dim(), table.state_columns(), TableId{t}, owns);
    if (!chunk.keys.empty()) table.wait_write(stream, to_device_chunk(stream, chunk, table.dim()));
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
