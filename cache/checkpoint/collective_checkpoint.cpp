// SPDX-License-Identifier: Apache-2.0
#include "cache/checkpoint/collective_checkpoint.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "cache/checkpoint/checkpoint.hpp"
#include "cache/feedback/residual_file.hpp"
#include "cache/files/placement_file.hpp"
#include "cache/protocol/requests/collective_call.hpp"
#include "comm/base/peer_error.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"

namespace gpups::cache {
namespace {

namespace fs = std::filesystem;

void encode(comm::Writer& writer, FileChecksum const& checksum) {
  writer.put_text(checksum.name);
  writer.put<std::uint64_t>(checksum.bytes);
  writer.put<std::uint64_t>(checksum.xxh3);
}

FileChecksum decode_checksum(comm::Reader& reader) {
  FileChecksum checksum;
  checksum.name = reader.get_text();
  checksum.bytes = reader.get<std::uint64_t>();
  checksum.xxh3 = reader.get<std::uint64_t>();
  return checksum;
}

bool is_step_folder(fs::path const& path) { return path.filename().string().starts_with("step-"); }

// Returns the name of the file with a rank's rows.
std::string rows_name(std::size_t rank, int ranks) { return fmt::format("rows-{}-of-{}.bin", rank, ranks); }

// Returns the name of the file with a rank's residuals and mirrors.
std::string residuals_name(std::size_t rank, int ranks) { return fmt::format("residuals-{}-of-{}.bin", rank, ranks); }

// Returns the name of the file with the rows of a home that are away.
std::string placement_name(std::size_t rank, int ranks) { return fmt::format("placement-{}-of-{}.bin", rank, ranks); }

// The files that a rank has written. A rank without residuals and mirrors, or without rows that are away, does not
// write these files; their names are empty.
struct RankChecksums {
  FileChecksum rows, residuals, placement;
};
RankChecksums decode_checksums(std::string const& bytes) {
  comm::Reader reader(bytes);
  RankChecksums checksums;
  for (auto* file : {&checksums.rows, &checksums.residuals, &checksums.placement}) *file = decode_checksum(reader);
  reader.end();
  return checksums;
}

// Returns whether a folder has files of a checkpoint.
bool has_parts(fs::path const& folder) {
  std::error_code none;  // a folder that cannot be listed is reported when it is written
  auto const is_part = [](auto const& entry) {
    return is_step_folder(entry.path()) || entry.path().filename() == "manifest.json";
  };
  return std::any_of(fs::directory_iterator(folder, none), {}, is_part);
}

// Returns whether a folder has a checkpoint, or files of one whose manifest was removed.
bool has_checkpoint(fs::path const& folder) { return !is_unfinished_checkpoint(folder) && has_parts(folder); }

// Creates a new folder for the files of a checkpoint, and returns its name.
std::string make_step_folder(fs::path const& folder, Clock clock) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error && !has_checkpoint(folder)) mark_unfinished(folder);
  for (int attempt = 0; !error; ++attempt) {
    auto const name = fmt::format("step-{}{}", number(clock), attempt == 0 ? "" : fmt::format("-{}", attempt));
    if (fs::create_directory(folder / name, error)) return name;
  }
  throw Error(fmt::format(
      "'{}' cannot be written: {} (the checkpoint needs a folder there): check the path and its permissions",
      folder.string(), error.message()));
}

void remove_other_steps(fs::path const& folder, std::string const& keep) {
  std::error_code ignored;  // a folder that cannot be removed only uses space
  for (auto const& entry : fs::directory_iterator(folder, ignored)) {
    if (is_step_folder(entry.path()) && entry.path().filename() != keep) fs::remove_all(entry.path(), ignored);
  }
}

std::vector<Manifest::Table> describe_all(Engine& engine) {
  std::vector<Manifest::Table> tables;
  for (auto const& table : engine.tables()) tables.push_back(describe(table->options()));
  return tables;
}

// Returns the rows of this home that are away.
std::vector<PlacedRow> wait_rows_away(Stream& stream, OwnerDirectories const& placement, Clock clock) {
  std::vector<PlacedRow> rows;
  for (std::uint32_t t = 0; t < placement.tables(); ++t) {
    for (auto const& [key, entry] : placement.at(TableId{t}).wait_list(stream, clock)) {
      rows.push_back({TableId{t}, key, entry.owner, entry.reason, entry.since});
    }
  }
  return rows;
}

// The rows that a rank owns after a restore: those of its home that have not left it, and those that have
// arrived from other homes.
class RestoredPlacement {
 public:
  explicit RestoredPlacement(Engine& engine)
      : engine_(engine), arrived_(engine.tables().size()), left_(engine.tables().size()) {}

  // Takes over the placement of a file. Rows whose owner does not exist any more return to their homes.
  void wait_place(Stream& stream, std::vector<PlacedRow> const& rows) {
    struct LeavingRows {
      std::vector<Key> keys;
      std::vector<OwnerDirectory::Entry> entries;
    };
    std::map<TableId, LeavingRows> leaving;  // this home
    for (auto const& row : rows) {
      Rank const home = home_of(row.key);
      if (number(row.owner) >= static_cast<std::uint32_t>(engine_.ranks()) || row.owner == home) continue;
      engine_.placement().any_moved = true;
      if (row.owner == engine_.rank()) arrived_[number(row.table)].insert(row.key);
      if (home != engine_.rank()) continue;
      left_[number(row.table)].insert(row.key);
      leaving[row.table].keys.push_back(row.key);
      leaving[row.table].entries.push_back({row.owner, row.reason, row.since});
    }
    for (auto const& [table, of_table] : leaving) {
      engine_.placement().at(table).wait_set(stream, View<Key const>(of_table.keys), of_table.entries,
                                             engine_.complete());
    }
  }
  bool contains(TableId table, Key key) const {
    if (home_of(key) != engine_.rank()) return arrived_[number(table)].contains(key);
    return !left_[number(table)].contains(key);
  }

 private:
  Rank home_of(Key key) const { return Rank{kernels::home_of(key, static_cast<std::uint32_t>(engine_.ranks()))}; }

  Engine& engine_;
  std::vector<std::set<Key>> arrived_, left_;  // by table: rows of other homes, and of this one
};

// Throws Error if a name is not valid, or if two blobs have the same name.
void check_blobs(std::span<Blob const> blobs) {
  std::set<std::string_view> names;
  for (Blob const& blob : blobs) {
    GPUPS_REQUIRE(!blob.name.empty() && is_utf8(blob.name),
                  "save() was called with a blob that has {} (blobs are found by their names): give it a name in UTF-8",
                  blob.name.empty() ? "no name" : "a name that is not UTF-8");
    GPUPS_REQUIRE(names.insert(blob.name).second,
                  "save() was called with two blobs named '{}' (blobs are found by their names): rename one",
                  blob.name);
  }
}

// Returns text that identifies a checkpoint: its folder and a checksum of its files.
std::string identity_of(Manifest const& manifest) {
  std::uint64_t hash = 0;
  for (auto const& file : manifest.rows) hash = kernels::mix(hash ^ file.xxh3);
  for (auto const& blob : manifest.blobs) hash = kernels::mix(hash ^ blob.file.xxh3);
  return fmt::format("the checkpoint {} with checksum {:016x}", manifest.folder, hash);
}

}  // namespace

void wait_save(Engine& engine, fs::path const& folder, std::span<Blob const> blobs, Clock clock, std::uint64_t seed) {
  bool const first = engine.rank() == Rank{0};
  Manifest manifest{.clock = clock,
                    .seed = seed,
                    .folder = {},
                    .tables = describe_all(engine),
                    .rows = {},
                    .residuals = {},
                    .placement = {},
                    .blobs = {}};
  manifest.folder = wait_collective_call(engine, Timeout::kNone, [&] {
    if (!first) return std::string();
    check_blobs(blobs);
    return make_step_folder(folder, clock);
  })[0];
  // The name comes from rank 0 and becomes a path here, so it must be a name that make_step_folder() can return.
  if (!is_step_folder(manifest.folder) || manifest.folder.find('/') != std::string::npos) {
    throw_invalid_result(0, fmt::format("the folder '{}'", comm::peer_text(manifest.folder)));
  }
  auto const files = folder / manifest.folder;
  bool placed = false;  // the manifest lists the new files
  try {
    auto const checksums = wait_collective_call(engine, Timeout::kNone, [&] {
      RankChecksums mine;
      engine.wait_invoke([&](Stream& stream) {
        auto const name = rows_name(number(engine.rank()), engine.ranks());
        mine.rows = write_rows(stream, engine.tables(), files / name);
        auto const residuals = engine.executor().wait_save_residuals();
        if (!residuals.chunks.empty() || !residuals.mirrors.empty() || residuals.resends_all_values) {
          mine.residuals = write_residuals(residuals, files / residuals_name(number(engine.rank()), engine.ranks()));
        }
        auto const away = wait_rows_away(stream, engine.placement(), engine.complete());
        if (!away.empty()) {
          mine.placement = write_placement(away, files / placement_name(number(engine.rank()), engine.ranks()));
        }
      });
      for (std::size_t b = 0; first && b < blobs.size(); ++b) {
        FileWriter writer(files / fmt::format("blob-{}.bin", b));
        writer.write(blobs[b].bytes.data(), blobs[b].bytes.size());
        manifest.blobs.push_back({blobs[b].name, writer.finish()});
      }
      sync_folder(files);
      comm::Writer writer;
      encode(writer, mine.rows);
      encode(writer, mine.residuals);
      encode(writer, mine.placement);
      return writer.take();
    });
    for (std::size_t rank = 0; rank < checksums.size(); ++rank) {
      auto const [rows, residuals, placement] = parse_result(rank, [&] { return decode_checksums(checksums[rank]); });
      auto const require_name = [&](FileChecksum const& file, std::string const& name) {
        if (file.name != name) throw_invalid_result(rank, fmt::format("the file '{}'", comm::peer_text(file.name)));
      };
      require_name(rows, rows_name(rank, engine.ranks()));
      manifest.rows.push_back(rows);
      if (!residuals.name.empty()) {
        require_name(residuals, residuals_name(rank, engine.ranks()));
        manifest.residuals.push_back(residuals);
      }
      if (placement.name.empty()) continue;
      require_name(placement, placement_name(rank, engine.ranks()));
      manifest.placement.push_back(placement);
    }
    wait_collective_call(engine, Timeout::kNone, [&] {
      if (!first) return std::string();
      sync_folder(folder);  // before the manifest, which refers to it
      write_manifest(folder, manifest);
      placed = true;
      return std::string();
    });
  } catch (...) {
    std::error_code error;
    if (first && !placed) fs::remove_all(files, error);
    if (first && !error && !has_parts(folder)) remove_unfinished_mark(folder);
    throw;
  }
  if (first) remove_other_steps(folder, manifest.folder);
}

std::vector<Blob> wait_restore(Engine& engine, fs::path const& folder, std::uint64_t seed) {
  auto const ranks = static_cast<std::size_t>(engine.ranks());
  Manifest manifest;
  std::vector<Blob> blobs;
  auto const read = wait_collective_call(engine, Timeout::kNone, [&] {
    manifest = read_manifest(folder);
    require_same(manifest, seed, describe_all(engine));
    for (std::size_t f = number(engine.rank()); f < manifest.rows.size(); f += ranks) {
      verify(folder / manifest.folder, manifest.rows[f]);
    }
    for (std::size_t f = number(engine.rank()); f < manifest.residuals.size(); f += ranks) {
      verify(folder / manifest.folder, manifest.residuals[f]);
    }
    for (std::size_t f = number(engine.rank()); f < manifest.placement.size(); f += ranks) {
      verify(folder / manifest.folder, manifest.placement[f]);
    }
    blobs = read_blobs_of(folder, manifest);
    return identity_of(manifest);
  });
  for (std::size_t rank = 1; rank < read.size(); ++rank) {
    GPUPS_REQUIRE(read[rank] == read[0],
                  "restore() reads {} on rank 0, but {} on rank {} (the rows of two checkpoints would be mixed): give "
                  "the same checkpoint on all ranks",
                  comm::peer_text(read[0]), comm::peer_text(read[rank]), rank);
  }
  wait_collective_call(engine, Timeout::kNone, [&] {
    engine.wait_invoke([&](Stream& stream) {
      RestoredPlacement restored(engine);
      auto const owns = [&](TableId table, Key key) { return restored.contains(table, key); };
      for (auto const& file : manifest.placement) {
        restored.wait_place(stream, read_placement(folder / manifest.folder / file.name, engine.tables().size()));
      }
      for (auto const& file : manifest.rows) {
        read_rows(stream, engine.tables(), folder / manifest.folder / file.name, owns);
      }
      std::vector<std::size_t> dims;
      for (auto const& table : engine.tables()) dims.push_back(table->dim());
      for (auto const& file : manifest.residuals) {
        engine.executor().wait_load_residuals(read_residuals(folder / manifest.folder / file.name, dims));
      }
      engine.executor().announce_first();
    });
    return std::string();
  });
  return blobs;
}

}  // namespace gpups::cache
