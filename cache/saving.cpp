// SPDX-License-Identifier: Apache-2.0
#include "cache/saving.hpp"

#include <algorithm>

#include "cache/checkpoint.hpp"
#include "comm/peer_text.hpp"
#include "comm/wire.hpp"
#include "kernels/check.hpp"

namespace gpups::cache {
namespace {

namespace fs = std::filesystem;

// What a rank says after its share: a result, or an error.
struct Said {
  std::string error;
  std::string result;
};

std::string encode(Said const& said) {
  comm::Writer writer;
  writer.put_text(said.error);
  writer.put_text(said.result);
  return writer.take();
}

Said decode_said(std::string const& bytes) {
  comm::Reader reader(bytes);
  Said said;
  said.error = reader.get_text();
  said.result = reader.get_text();
  reader.end();
  return said;
}

[[noreturn]] void refuse(std::size_t rank, std::string const& what) {
  throw PeerError(Rank{static_cast<std::uint32_t>(rank)},
                  fmt::format("rank {} sent what cannot be part of a checkpoint: {} (files would be lost or mixed): "
                              "check that all ranks run the same program",
                              rank, what));
}

// What `read` makes of a piece of a rank; PeerError where it cannot.
template <class Read>
auto read_piece(std::size_t rank, Read const& read) {
  try {
    return read();
  } catch (comm::WireError const& error) {
    refuse(rank, error.what());
  }
}

// Does `share` on every rank and gathers the results; throws the first error of any rank on all of them.
std::vector<std::string> wait_agree(Engine& engine, std::function<std::string()> const& share) {
  Said mine;
  try {
    mine.result = share();
  } catch (std::exception const& error) {
    mine.error = error.what();
  }
  std::vector<std::string> results;
  std::string first_error;
  auto const pieces = engine.wait_gather_patiently(encode(mine));
  for (std::size_t rank = 0; rank < pieces.size(); ++rank) {
    Said const said = read_piece(rank, [&] { return decode_said(pieces[rank]); });
    if (first_error.empty()) first_error = comm::peer_text(said.error);
    results.push_back(said.result);
  }
  if (!first_error.empty()) throw Error(first_error);
  return results;
}

std::string encode(FileSeal const& seal) {
  comm::Writer writer;
  writer.put_text(seal.name);
  writer.put<std::uint64_t>(seal.bytes);
  writer.put<std::uint64_t>(seal.xxh3);
  return writer.take();
}

FileSeal decode_seal(std::string const& bytes) {
  comm::Reader reader(bytes);
  FileSeal seal;
  seal.name = reader.get_text();
  seal.bytes = reader.get<std::uint64_t>();
  seal.xxh3 = reader.get<std::uint64_t>();
  reader.end();
  return seal;
}

bool is_step_folder(fs::path const& path) { return path.filename().string().starts_with("step-"); }

// The file of a rank's rows.
std::string rows_name(std::size_t rank, int ranks) { return fmt::format("rows-{}-of-{}.bin", rank, ranks); }

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

}  // namespace

void wait_save(Engine& engine, fs::path const& folder, std::span<Blob const> blobs, Clock clock, std::uint64_t seed) {
  bool const first = engine.rank() == Rank{0};
  Manifest manifest{
      .clock = clock, .seed = seed, .folder = {}, .tables = describe_all(engine), .rows = {}, .blobs = {}};
  manifest.folder = wait_agree(engine, [&] { return first ? make_step_folder(folder, clock) : std::string(); })[0];
  // What others say becomes paths here: it may be a name of ours and nothing else.
  if (!is_step_folder(manifest.folder) || manifest.folder.find('/') != std::string::npos) {
    refuse(0, fmt::format("the folder '{}'", comm::peer_text(manifest.folder)));
  }
  auto const files = folder / manifest.folder;
  bool placed = false;  // the manifest names the new files
  try {
    auto const seals = wait_agree(engine, [&] {
      FileSeal seal;
      engine.wait_run([&](Stream& stream) {
        auto const name = rows_name(number(engine.rank()), engine.ranks());
        seal = write_rows(stream, engine.tables(), files / name);
      });
      for (std::size_t b = 0; first && b < blobs.size(); ++b) {
        FileWriter writer(files / fmt::format("blob-{}.bin", b));
        writer.write(blobs[b].bytes.data(), blobs[b].bytes.size());
        manifest.blobs.push_back({blobs[b].name, writer.finish()});
      }
      sync_folder(files);
      return encode(seal);
    });
    for (std::size_t rank = 0; rank < seals.size(); ++rank) {
      auto const seal = read_piece(rank, [&] { return decode_seal(seals[rank]); });
      if (seal.name != rows_name(rank, engine.ranks())) {
        refuse(rank, fmt::format("the file '{}'", comm::peer_text(seal.name)));
      }
      manifest.rows.push_back(seal);
    }
    wait_agree(engine, [&] {
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
  wait_agree(engine, [&] {
    manifest = read_manifest(folder);
    require_same(manifest, seed, describe_all(engine));
    for (std::size_t f = number(engine.rank()); f < manifest.rows.size(); f += ranks) {
      verify(folder / manifest.folder, manifest.rows[f]);
    }
    blobs = read_blobs_of(folder, manifest);
    return std::string();
  });
  wait_agree(engine, [&] {
    engine.wait_run([&](Stream& stream) {
      for (auto const& file : manifest.rows) {
        read_rows(stream, engine.tables(), folder / manifest.folder / file.name, engine.rank(), engine.ranks());
      }
    });
    return std::string();
  });
  return blobs;
}

}  // namespace gpups::cache
