// SPDX-License-Identifier: Apache-2.0
#include "cache/checkpoint/collective_export.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cache/checkpoint/unpadded.hpp"
#include "cache/files/checksummed_file.hpp"
#include "cache/files/export_file.hpp"
#include "cache/protocol/collective_call.hpp"
#include "kernels/check.hpp"
#include "kernels/hash.hpp"

namespace gpups::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kExportRowsPerChunk = 16384;
constexpr std::uint64_t kRowsMax = std::uint64_t{1} << 31;  // of one table on one rank

// The layout of one table's files.
struct TableFiles {
  std::string table;
  std::uint64_t dim = 0;
  std::uint64_t rows = 0;   // over all ranks
  std::uint64_t first = 0;  // number of rows of lower ranks: the position of this rank's first row
  ExportFormat format{};

  std::string extension() const { return format == ExportFormat::kNpy ? "npy" : "bin"; }
  std::string keys_name() const { return fmt::format("{}.keys.{}", file_name_of(table), extension()); }
  std::string values_name() const { return fmt::format("{}.values.{}", file_name_of(table), extension()); }
  std::string keys_header() const { return format == ExportFormat::kNpy ? npy_header("<u8", {rows}) : ""; }
  std::string values_header() const { return format == ExportFormat::kNpy ? npy_header("<f4", {rows, dim}) : ""; }
  std::uint64_t row_bytes() const { return dim * sizeof(float); }
};

// Returns the absolute path of the folder without a slash at its end, so that a suffix can be appended.
fs::path plain_path(fs::path const& folder) {
  std::error_code error;
  auto const path = fs::absolute(folder, error).lexically_normal();
  GPUPS_REQUIRE(!error && !folder.empty(), "'{}' is not the path of a folder (the export needs a folder): give a path",
                folder.string());
  return path.has_filename() ? path : path.parent_path();
}

fs::path unfinished(fs::path const& folder) { return fs::path(folder).concat(".unfinished"); }

void make_unfinished(fs::path const& folder) {
  std::error_code error;
  bool const taken = fs::exists(folder, error) && !(fs::is_directory(folder, error) && fs::is_empty(folder, error));
  GPUPS_REQUIRE(
      !taken,
      "'{}' exists and is not an empty folder (an export does not replace files): give the path of a new folder",
      folder.string());
  fs::remove_all(unfinished(folder), error);  // left by an export that was killed
  if (!error) fs::create_directories(unfinished(folder), error);
  GPUPS_REQUIRE(!error, "'{}' cannot be created: {} (the export is written there): check the path and its permissions",
                unfinished(folder).string(), error.message());
}

// Returns the number of rows of each table on this rank, as a list of u64.
std::string count_rows(Engine& engine) {
  std::vector<std::uint64_t> counts;
  engine.wait_invoke([&](Stream& stream) {
    for (auto const& table : engine.tables()) {
      auto const end = static_cast<std::uint32_t>(table->rows_reserved());
      counts.push_back(table->wait_select(stream, 0, end, kernels::RowStatus::kExist).size());
    }
  });
  comm::Writer writer;
  writer.put_list<std::uint64_t>(counts);
  return writer.take();
}

// Computes the position of each rank's rows in the files. Ranks own ascending ranges of the key hash, so the sorted
// rows of rank r + 1 follow those of rank r.
std::vector<TableFiles> plan_files(Engine& engine, std::vector<std::string> const& result, ExportFormat format) {
  std::vector<TableFiles> files;
  for (auto const& table : engine.tables()) files.push_back({table->options().name, table->dim(), 0, 0, format});
  for (std::size_t rank = 0; rank < result.size(); ++rank) {
    auto const counts = parse_result(rank, [&] {
      comm::Reader reader(result[rank]);
      auto list = reader.get_list<std::uint64_t>();
      reader.end();
      return list;
    });
    if (counts.size() != files.size()) throw_invalid_result(rank, fmt::format("rows of {} tables", counts.size()));
    for (std::size_t t = 0; t < counts.size(); ++t) {
      if (counts[t] > kRowsMax) throw_invalid_result(rank, fmt::format("{} rows of one table", counts[t]));
      if (rank < number(engine.rank())) files[t].first += counts[t];
      files[t].rows += counts[t];
    }
  }
  return files;
}

void write_description(fs::path const& folder, TableFiles const& layout) {
  nlohmann::ordered_json const json{
      {"table", layout.table},
      {"byte_order", "little"},
      {"keys", {{"file", layout.keys_name()}, {"dtype", "uint64"}, {"shape", {layout.rows}}}},
      {"values", {{"file", layout.values_name()}, {"dtype", "float32"}, {"shape", {layout.rows, layout.dim}}}}};
  auto const text = json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  FileWriter writer(folder / (file_name_of(layout.table) + ".json"));
  writer.write(text.data(), text.size());
  writer.finish();
}

void create_files(fs::path const& folder, TableFiles const& layout) {
  create_array(folder / layout.keys_name(), layout.keys_header(), layout.rows * sizeof(Key));
  create_array(folder / layout.values_name(), layout.values_header(), layout.rows * layout.row_bytes());
  if (layout.format == ExportFormat::kFlat) write_description(folder, layout);
}

// Returns the numbers of all existing rows, in the order of their keys' hashes. Uses up to 28 bytes of
// host memory per row.
std::vector<std::uint32_t> sorted_rows(Engine& engine, TableShard const& table) {
  std::vector<std::uint32_t> ids;
  std::vector<Key> keys;
  engine.wait_invoke([&](Stream& stream) {
    auto const end = static_cast<std::uint32_t>(table.rows_reserved());
    auto const there = table.wait_select(stream, 0, end, kernels::RowStatus::kExist);
    ids = to_host(stream, there.view());
    keys = to_host(stream, table.wait_keys_of(stream, there).view());
  });
  std::vector<std::pair<std::uint64_t, std::uint32_t>> by_hash;
  by_hash.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) by_hash.emplace_back(kernels::hash_of(keys[i]), ids[i]);
  keys = {};
  std::sort(by_hash.begin(), by_hash.end());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = by_hash[i].second;
  return ids;
}

void write_table(Engine& engine, TableShard const& table, fs::path const& folder, TableFiles const& layout) {
  auto const ids = sorted_rows(engine, table);
  if (ids.empty()) return;
  PartWriter keys_file(folder / layout.keys_name(), layout.keys_header().size() + layout.first * sizeof(Key));
  PartWriter values_file(folder / layout.values_name(),
                         layout.values_header().size() + layout.first * layout.row_bytes());
  for (std::size_t first = 0; first < ids.size(); first += kExportRowsPerChunk) {
    std::size_t const count = std::min(kExportRowsPerChunk, ids.size() - first);
    std::vector<Key> keys;
    std::vector<float> values;
    engine.wait_invoke([&](Stream& stream) {
      auto const from = ids.begin() + static_cast<std::ptrdiff_t>(first);
      auto const some = to_device(stream, std::vector(from, from + static_cast<std::ptrdiff_t>(count)));
      auto const chunk = table.wait_read(stream, some, TableShard::Columns::kKeysAndValues);
      keys = to_host(stream, chunk.keys.view());
      values = wait_unpadded(stream, chunk.values);
    });
    keys_file.write(keys.data(), keys.size() * sizeof(Key));
    values_file.write(values.data(), values.size() * sizeof(float));
  }
  keys_file.finish();
  values_file.finish();
}

// Renames the complete export to its final name.
void put_in_place(fs::path const& folder) {
  sync_folder(unfinished(folder));
  std::error_code error;
  fs::rename(unfinished(folder), folder, error);
  GPUPS_REQUIRE(
      !error, "'{}' cannot be renamed: {} (the export is complete, but not at its path): give the path of a new folder",
      unfinished(folder).string(), error.message());
  sync_folder(folder.parent_path());
}

}  // namespace

void wait_export(Engine& engine, fs::path const& name, ExportFormat format) {
  bool const first = engine.rank() == Rank{0};
  auto const folder = plain_path(name);
  bool created = false;
  auto const collective_call = [&](auto const& share) { return wait_collective_call(engine, Timeout::kNone, share); };
  try {
    auto const counts = collective_call([&] {
      if (first) make_unfinished(folder);
      created = first;
      return count_rows(engine);
    });
    auto const files = plan_files(engine, counts, format);
    collective_call([&] {
      for (auto const& layout : files) {
        if (first) create_files(unfinished(folder), layout);
      }
      return std::string();
    });
    collective_call([&] {
      for (std::size_t t = 0; t < files.size(); ++t) {
        write_table(engine, *engine.tables()[t], unfinished(folder), files[t]);
      }
      return std::string();
    });
    collective_call([&] {
      if (first) put_in_place(folder);
      return std::string();
    });
  } catch (...) {
    std::error_code ignored;
    if (created) fs::remove_all(unfinished(folder), ignored);
    throw;
  }
}

}  // namespace gpups::cache
