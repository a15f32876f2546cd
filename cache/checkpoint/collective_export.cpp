// SPDX-License-Identifier: Apache-2.0
#include "cache/checkpoint/collective_checkpoint.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cache/checkpoint/checkpoint.hpp"
#include "cache/files/checksummed_file.hpp"
#include "cache/files/export_file.hpp"
#include "cache/protocol/requests/collective_call.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"

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

// Looks up rows of this home, wherever they are. Returns the request, which is done; key i is request->keys[i].
std::shared_ptr<RowRequest> wait_look_up(Engine& engine, TableId table, std::span<Key const> keys) {
  std::shared_ptr<RowRequest> request;
  engine.wait_invoke([&](Stream& stream) {
    std::vector<Rank> const homes(keys.size(), engine.rank());
    std::vector<std::uint32_t> positions;
    request = make_owned_request(stream, RowRequest::Kind::kLookup, table, keys, homes,
                                 engine.tables()[number(table)]->dim(), 0, engine.ranks(), positions);
  });
  engine.begin_rows(request);
  engine.wait_rows(*request);
  return request;
}

// Returns those of the keys whose rows exist.
std::vector<Key> wait_existing(Engine& engine, TableId table, std::vector<Key> const& keys) {
  std::vector<Key> existing;
  for (std::size_t first = 0; first < keys.size(); first += kExportRowsPerChunk) {
    auto const some = std::span(keys).subspan(first, std::min(kExportRowsPerChunk, keys.size() - first));
    auto const request = wait_look_up(engine, table, some);
    std::vector<std::uint8_t> found;
    engine.wait_invoke([&](Stream& stream) { found = to_host(stream, request->found.view()); });
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (found[i] != 0) existing.push_back(some[i]);
    }
  }
  return existing;
}

// Returns the keys of all existing rows of this home, in the order of their hashes. Uses up to 24 bytes of host memory
// per row.
std::vector<Key> sorted_keys(Engine& engine, TableId table) {
  auto const& shard = *engine.tables()[number(table)];
  std::vector<Key> keys, away;
  engine.wait_invoke([&](Stream& stream) {
    auto const end = static_cast<std::uint32_t>(shard.rows_reserved());
    auto const ids = shard.wait_select(stream, 0, end, kernels::RowStatus::kExist);
    keys = to_host(stream, shard.wait_keys_of(stream, ids).view());
    for (auto const& [key, entry] : engine.placement().at(table).wait_list(stream, engine.complete()))
      away.push_back(key);
  });
  auto const me = number(engine.rank()), ranks = static_cast<std::uint32_t>(engine.ranks());
  std::erase_if(keys, [=](Key key) { return kernels::home_of(key, ranks) != me; });
  for (Key const key : wait_existing(engine, table, away)) keys.push_back(key);
  std::sort(keys.begin(), keys.end(), [](Key a, Key b) { return kernels::hash_of(a) < kernels::hash_of(b); });
  return keys;
}

// Returns the number of rows of each table with this home, as a list of u64.
std::string count_rows(Engine& engine) {
  std::vector<std::uint64_t> counts;
  for (std::uint32_t t = 0; t < engine.tables().size(); ++t) counts.push_back(sorted_keys(engine, TableId{t}).size());
  comm::Writer writer;
  writer.put_list<std::uint64_t>(counts);
  return writer.take();
}

// Computes the position of each rank's rows in the files. Homes have ascending ranges of the key hash, so the sorted
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

void write_table(Engine& engine, TableId table, fs::path const& folder, TableFiles const& layout) {
  auto const keys = sorted_keys(engine, table);
  if (keys.empty()) return;
  PartWriter keys_file(folder / layout.keys_name(), layout.keys_header().size() + layout.first * sizeof(Key));
  PartWriter values_file(folder / layout.values_name(),
                         layout.values_header().size() + layout.first * layout.row_bytes());
  for (std::size_t first = 0; first < keys.size(); first += kExportRowsPerChunk) {
    auto const some = std::span(keys).subspan(first, std::min(kExportRowsPerChunk, keys.size() - first));
    auto const request = wait_look_up(engine, table, some);
    std::vector<float> values;
    engine.wait_invoke([&](Stream& stream) { values = wait_unpadded(stream, request->values); });
    keys_file.write(some.data(), some.size_bytes());
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
        write_table(engine, TableId{static_cast<std::uint32_t>(t)}, unfinished(folder), files[t]);
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
