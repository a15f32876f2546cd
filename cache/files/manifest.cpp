// SPDX-License-Identifier: Apache-2.0
#include "cache/files/manifest.hpp"

#include <nlohmann/json.hpp>

#include "gpups/files.hpp"
#include "kernels/base/check.hpp"
#include "kernels/update/update_rows.hpp"

namespace gpups::cache {
namespace {

constexpr int kFormat = 3;
constexpr int kFormatWithResiduals = 5;  // with residuals and mirrors; versions that do not know these must reject it
constexpr int kFormatWithPlacement = 6;  // with rows that are away from their homes
constexpr int kFormatOfFloats = 2;       // without value_type: values are floats. Otherwise the same.
constexpr char const* kFloats = "float32";

constexpr char kManifest[] = "manifest.json";
constexpr char kUnfinished[] = "manifest.json.unfinished";  // until the first save is complete

// Returns the name if it is a plain file name, so that it cannot lead out of the checkpoint's folder. Otherwise throws
// Error.
std::string safe_name(std::string const& name) {
  GPUPS_REQUIRE(
      !name.empty() && name.find('/') == std::string::npos && name != "." && name != "..",
      "a checkpoint's manifest lists the file '{}' (only files in its own folder are allowed): use another checkpoint",
      name);
  return name;
}

nlohmann::json to_json(FileChecksum const& checksum) {
  return {{"name", checksum.name}, {"bytes", checksum.bytes}, {"xxh3", checksum.xxh3}};
}
FileChecksum checksum_of(nlohmann::json const& json) {
  return {safe_name(json.at("name").get<std::string>()), json.at("bytes").get<std::uint64_t>(),
          json.at("xxh3").get<std::uint64_t>()};
}

}  // namespace

bool is_utf8(std::string const& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (nlohmann::json::exception const&) {
    return false;
  }
}

Manifest::Table describe(TableOptions const& options) {
  static constexpr char const* kInitial[] = {"constant", "uniform", "normal"};
  static constexpr char const* kValueTypes[] = {kFloats, "float16", "bfloat16"};
  static constexpr char const* kOptimizer[] = {"sgd", "adagrad", "rowwise_adagrad", "adam", "lamb", "ftrl"};
  return {.name = options.name,
          .dim = options.dim,
          .state_columns = kernels::state_columns(options.optimizer, options.dim),
          .initial =
              fmt::format("{} {:a}", kInitial[static_cast<int>(options.initializer.kind)], options.initializer.scale),
          .optimizer = kOptimizer[static_cast<int>(options.optimizer.kind)],
          .grid_log2 = options.grid_log2,
          .admission_count = options.admission_count,
          .value_type = kValueTypes[static_cast<int>(options.value_type)]};
}

void require_same(Manifest const& manifest, std::uint64_t seed, std::vector<Manifest::Table> const& tables) {
  auto const same = [](std::string const& what, auto const& there, auto const& here) {
    GPUPS_REQUIRE(there == here,
                  "{} is {} in the checkpoint and {} here (a run can only be resumed with equal settings): use the "
                  "checkpoint's configuration",
                  what, there, here);
  };
  same("the seed", manifest.seed, seed);
  same("the number of tables", manifest.tables.size(), tables.size());
  for (std::size_t t = 0; t < tables.size(); ++t) {
    auto const& there = manifest.tables[t];
    auto const& here = tables[t];
    same(fmt::format("the name of table {}", t), there.name, here.name);
    same(fmt::format("the dim of table '{}'", here.name), there.dim, here.dim);
    same(fmt::format("the optimizer of table '{}'", here.name), there.optimizer, here.optimizer);
    same(fmt::format("the optimizer state of table '{}'", here.name), there.state_columns, here.state_columns);
    same(fmt::format("the initializer of table '{}'", here.name), there.initial, here.initial);
    same(fmt::format("grid_log2 of table '{}'", here.name), there.grid_log2, here.grid_log2);
    same(fmt::format("admission_count of table '{}'", here.name), there.admission_count, here.admission_count);
    same(fmt::format("value_type of table '{}'", here.name), there.value_type, here.value_type);
  }
}

Manifest read_manifest(std::filesystem::path const& folder) {
  auto const path = folder / kManifest;
  std::error_code none;  // a path that cannot be read counts as missing
  GPUPS_REQUIRE(
      std::filesystem::is_regular_file(path, none),
      "'{}' has no manifest.json (it is not a checkpoint, or its first save was interrupted): give another folder",
      folder.string());
  try {
    auto const json = nlohmann::json::parse(read_whole(path));
    auto const format = json.at("format").get<int>();
    GPUPS_REQUIRE(format >= kFormatOfFloats && format <= kFormatWithPlacement,
                  "'{}' has format {} (this program reads {} to {}): use the version that wrote it", path.string(),
                  format, kFormatOfFloats, kFormatWithPlacement);
    Manifest manifest{.clock = Clock{json.at("clock").get<std::int64_t>()},
                      .seed = json.at("seed").get<std::uint64_t>(),
                      .folder = safe_name(json.at("folder").get<std::string>()),
                      .tables = {},
                      .rows = {},
                      .residuals = {},
                      .placement = {},
                      .blobs = {}};
    for (auto const& table : json.at("tables")) {
      manifest.tables.push_back(
          {.name = table.at("name").get<std::string>(),
           .dim = table.at("dim").get<std::uint64_t>(),
           .state_columns = table.at("state_columns").get<std::uint64_t>(),
           .initial = table.at("initial").get<std::string>(),
           .optimizer = table.at("optimizer").get<std::string>(),
           .grid_log2 = table.at("grid_log2").get<int>(),
           .admission_count = table.at("admission_count").get<std::uint32_t>(),
           .value_type = format >= kFormat ? table.at("value_type").get<std::string>() : kFloats});
    }
    for (auto const& file : json.at("rows")) manifest.rows.push_back(checksum_of(file));
    for (auto const& file : json.value("residuals", nlohmann::json::array()))
      manifest.residuals.push_back(checksum_of(file));
    for (auto const& file : json.value("placement", nlohmann::json::array()))
      manifest.placement.push_back(checksum_of(file));
    for (auto const& blob : json.at("blobs")) {
      manifest.blobs.push_back({blob.at("name").get<std::string>(), checksum_of(blob.at("file"))});
    }
    return manifest;
  } catch (nlohmann::json::exception const& error) {
    throw Error(fmt::format("'{}' is not a manifest: {} (it was changed after it was written): use another checkpoint",
                            path.string(), error.what()));
  }
}

void mark_unfinished(std::filesystem::path const& folder) {
  FileWriter(folder / kUnfinished).finish();
  sync_folder(folder);
}

void remove_unfinished_mark(std::filesystem::path const& folder) {
  std::error_code ignored;  // it says nothing about a folder without files
  std::filesystem::remove(folder / kUnfinished, ignored);
}

void write_manifest(std::filesystem::path const& folder, Manifest const& manifest) {
  int const format = !manifest.placement.empty()   ? kFormatWithPlacement
                     : !manifest.residuals.empty() ? kFormatWithResiduals
                                                   : kFormat;
  nlohmann::ordered_json json{
      {"format", format}, {"clock", number(manifest.clock)}, {"seed", manifest.seed}, {"folder", manifest.folder}};
  json["tables"] = nlohmann::json::array();
  for (auto const& table : manifest.tables) {
    json["tables"].push_back({{"name", table.name},
                              {"dim", table.dim},
                              {"state_columns", table.state_columns},
                              {"initial", table.initial},
                              {"optimizer", table.optimizer},
                              {"grid_log2", table.grid_log2},
                              {"admission_count", table.admission_count},
                              {"value_type", table.value_type}});
  }
  json["rows"] = nlohmann::json::array();
  for (auto const& file : manifest.rows) json["rows"].emplace_back(to_json(file));
  for (auto const& file : manifest.residuals) json["residuals"].emplace_back(to_json(file));
  for (auto const& file : manifest.placement) json["placement"].emplace_back(to_json(file));
  json["blobs"] = nlohmann::json::array();
  for (auto const& blob : manifest.blobs) json["blobs"].push_back({{"name", blob.name}, {"file", to_json(blob.file)}});
  std::error_code none;
  bool const is_first = std::filesystem::exists(folder / kUnfinished, none);
  replace_whole(folder / kManifest, json.dump(1) + "\n", folder / (is_first ? kUnfinished : "manifest.json.new"));
}

}  // namespace gpups::cache

namespace gpups {

bool is_unfinished_checkpoint(std::filesystem::path const& folder) {
  std::error_code none;
  return std::filesystem::exists(folder / cache::kUnfinished, none) &&
         !std::filesystem::exists(folder / cache::kManifest, none);
}

}  // namespace gpups
