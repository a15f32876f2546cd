// SPDX-License-Identifier: Apache-2.0
#include "cache/saving.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "cache/agree.hpp"
#include "cache/checkpoint.hpp"
#include "cache/held_file.hpp"
#include "comm/peer_text.hpp"
#include "kernels/check.hpp"

namespace gpups::cache {
namespace {

namespace fs = std::filesystem;

void encode(comm::Writer& writer, FileSeal const& seal) {
  writer.put_text(seal.name);
  writer.put<std::uint64_t>(seal.bytes);
  writer.put<std::uint64_t>(seal.xxh3);
}

FileSeal decode_seal(comm::Reader& reader) {
  FileSeal seal;
  seal.name = reader.get_text();
  seal.bytes = reader.get<std::uint64_t>();
  seal.xxh3 = reader.get<std::uint64_t>();
  return seal;
}

bool is_step_folder(fs::path const& path) { return path.filename().string().starts_with("step-"); }

// The file of a rank's rows.
std::string rows_name(std::size_t rank, int ranks) { return fmt::format("rows-{}-of-{}.bin", rank, ranks); }

// Likewise, of the gradients that it holds back, and of copies of its rows.
std::string held_name(std::size_t rank, int ranks) { return fmt::format("held-{}-of-{}.bin", rank, ranks); }

// The files that a rank has written: the second only if it has something for it; else its name is empty.
struct Seals {
  FileSeal rows, held;
};
Seals decode_seals(std::string const& bytes) {
  comm::Reader reader(bytes);
  auto const rows = decode_seal(reader);
  Seals const seals{rows, decode_seal(reader)};
  reader.end();
  return seals;
}

// A new folder for the files of a checkpoint; its name.
std::string make_step_folder(fs::path const& folder, Clock clock) {
  std::error_code error;
  fs::create_directories(folder, error);
  for (int attempt = 0; !error; ++attempt) {
    auto const name = fmt::format("step-{}{}", number(clock), attempt == 0 ? "" : fmt::format("-{}", attempt));
    if (fs::create_directory(folder / name, error)) return name;
  }
  throw Error(fmt::format("'{}' cannot be written: {} (a checkpoint goes there): check the path and its permissions",
                          folder.string(), error.message()));
}

void remove_other_steps(fs::path const& folder, std::string const& keep) {
  std::error_code ignored;  // what cannot be removed costs space only
  for (auto const& entry : fs::directory_iterator(folder, ignored)) {
    if (is_step_folder(entry.path()) && entry.path().filename() != keep) fs::remove_all(entry.path(), ignored);
  }
}

std::vector<Manifest::Table> describe_all(Engine& engine) {
  std::vector<Manifest::Table> tables;
  for (auto const& table : engine.tables()) tables.push_back(describe(table->options()));
  return tables;
}

// Throws Error where blobs could not be told apart.
void check_blobs(std::span<Blob const> blobs) {
  std::set<std::string_view> names;
  for (Blob const& blob : blobs) {
    GPUPS_REQUIRE(!blob.name.empty() && is_utf8(blob.name),
                  "save was given a blob with {} (who restores it finds it by its name): give it one",
                  blob.name.empty() ? "no name" : "a name that is no UTF-8");
    GPUPS_REQUIRE(names.insert(blob.name).second,
                  "save was given two blobs named '{}' (who restores them finds them by their names): rename one",
                  blob.name);
  }
}

}  // namespace

void wait_save(Engine& engine, fs::path const& folder, std::span<Blob const> blobs, Clock clock, std::uint64_t seed) {
  bool const first = engine.rank() == Rank{0};
  Manifest manifest{
      .clock = clock, .seed = seed, .folder = {}, .tables = describe_all(engine), .rows = {}, .held = {}, .blobs = {}};
  manifest.folder = wait_agree(engine, Patience::kEndless, [&] {
    if (!first) return std::string();
    check_blobs(blobs);
    return make_step_folder(folder, clock);
  })[0];
  // What others say becomes paths here: it may be a name of ours and nothing else.
  if (!is_step_folder(manifest.folder) || manifest.folder.find('/') != std::string::npos) {
    refuse_share(0, fmt::format("the folder '{}'", comm::peer_text(manifest.folder)));
  }
  auto const files = folder / manifest.folder;
  bool placed = false;  // the manifest names the new files
  try {
    auto const seals = wait_agree(engine, Patience::kEndless, [&] {
      Seals mine;
      engine.wait_run([&](Stream& stream) {
        auto const name = rows_name(number(engine.rank()), engine.ranks());
        mine.rows = write_rows(stream, engine.tables(), files / name);
        auto const held = engine.exchange().wait_save_held();
        if (!held.pieces.empty() || !held.copies.empty() || held.sends_all_changes) {
          mine.held = write_held(held, files / held_name(number(engine.rank()), engine.ranks()));
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
      encode(writer, mine.held);
      return writer.take();
    });
    for (std::size_t rank = 0; rank < seals.size(); ++rank) {
      auto const [rows, held] = read_share(rank, [&] { return decode_seals(seals[rank]); });
      if (rows.name != rows_name(rank, engine.ranks())) {
        refuse_share(rank, fmt::format("the file '{}'", comm::peer_text(rows.name)));
      }
      manifest.rows.push_back(rows);
      if (held.name.empty()) continue;
      if (held.name != held_name(rank, engine.ranks())) {
        refuse_share(rank, fmt::format("the file '{}'", comm::peer_text(held.name)));
      }
      manifest.held.push_back(held);
    }
    wait_agree(engine, Patience::kEndless, [&] {
      if (!first) return std::string();
      sync_folder(folder);  // the files' folder is there before what names it
      write_manifest(folder, manifest);
      placed = true;
      return std::string();
    });
  } catch (...) {
    std::error_code ignored;
    if (first && !placed) fs::remove_all(files, ignored);
    throw;
  }
  if (first) remove_other_steps(folder, manifest.folder);
}

std::vector<Blob> wait_restore(Engine& engine, fs::path const& folder, std::uint64_t seed) {
  auto const ranks = static_cast<std::size_t>(engine.ranks());
  Manifest manifest;
  std::vector<Blob> blobs;
  wait_agree(engine, Patience::kEndless, [&] {
    manifest = read_manifest(folder);
    require_same(manifest, seed, describe_all(engine));
    for (std::size_t f = number(engine.rank()); f < manifest.rows.size(); f += ranks) {
      verify(folder / manifest.folder, manifest.rows[f]);
    }
    for (std::size_t f = number(engine.rank()); f < manifest.held.size(); f += ranks) {
      verify(folder / manifest.folder, manifest.held[f]);
    }
    blobs = read_blobs_of(folder, manifest);
    return std::string();
  });
  wait_agree(engine, Patience::kEndless, [&] {
    engine.wait_run([&](Stream& stream) {
      for (auto const& file : manifest.rows) {
        read_rows(stream, engine.tables(), folder / manifest.folder / file.name, engine.rank(), engine.ranks());
      }
      std::vector<std::size_t> dims;
      for (auto const& table : engine.tables()) dims.push_back(table->dim());
      for (auto const& file : manifest.held) {
        engine.exchange().wait_load_held(read_held(folder / manifest.folder / file.name, dims));
      }
    });
    return std::string();
  });
  return blobs;
}

}  // namespace gpups::cache
