// SPDX-License-Identifier: Apache-2.0
// Store: collectives, scans, hashes, checkpoints and exports.
#include <algorithm>

#include "cache/checkpoint/collective_checkpoint.hpp"
#include "cache/files/export_file.hpp"
#include "cache/files/manifest.hpp"
#include "cache/protocol/requests/collective_call.hpp"
#include "cache/store/store_impl.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/runtime/require_memory.hpp"

namespace gpups {
namespace {

using CollectiveCall = cache::Engine::CollectiveCall;

constexpr std::uint32_t kScanRows = 16384;  // rows in one call of scan()'s visitor

}  // namespace

std::string Store::Impl::call_on(TableId table, char const* function, std::string const& arguments) {
  auto const& tables = engine().tables();
  std::string const name = number(table) < tables.size()
                               ? fmt::format("table '{}'", tables[number(table)]->options().name)
                               : fmt::format("table number {}", number(table));
  return fmt::format("{}({}{}{})", function, name, arguments.empty() ? "" : ", ", arguments);
}

std::vector<std::string> Store::wait_allgather(std::string const& mine) {
  auto& engine = impl_->engine();
  CollectiveCall const call(engine, "wait_allgather()");
  return engine.wait_allgather(mine);
}

void Store::wait_barrier() {
  auto& engine = impl_->engine();
  CollectiveCall const call(engine, "wait_barrier()");
  engine.wait_allgather({});
}

std::vector<std::string> Store::wait_gather_to(Rank root, std::string const& mine) {
  GPUPS_REQUIRE(
      number(root) < static_cast<std::uint32_t>(ranks()),
      "wait_gather_to() was called with rank {} of {} ranks (no rank would get the bytes): give a rank of the group",
      number(root), ranks());
  auto& engine = impl_->engine();
  CollectiveCall const call(engine, fmt::format("wait_gather_to(rank {})", number(root)));
  return engine.wait_gather_to(root, mine);
}

void Store::wait_allreduce(std::span<std::int64_t> values) {
  kernels::require_memory(View<std::int64_t const>(values.data(), values.size()), "wait_allreduce", "integers");
  auto& engine = impl_->engine();
  CollectiveCall const call(engine, fmt::format("wait_allreduce({} values)", values.size()));
  constexpr std::size_t kFewBytes = 4096;  // up to this size, over all ranks, every rank gathers and adds all values
  std::string const mine(reinterpret_cast<char const*>(values.data()), values.size_bytes());
  bool const few = values.size_bytes() * static_cast<std::size_t>(ranks()) <= kFewBytes;
  bool const adds = few || rank() == Rank{0};
  auto const pieces = few ? engine.wait_allgather(mine) : engine.wait_gather_to(Rank{0}, mine);
  std::vector<std::uint64_t> sums(values.size(), 0);
  for (std::size_t rank = 0; adds && rank < pieces.size(); ++rank) {
    auto const& chunk = pieces[rank];
    if (chunk.size() != mine.size()) cache::throw_invalid_result(rank, "another number of values");
    for (std::size_t i = 0; i < sums.size(); ++i) {
      std::uint64_t value = 0;
      std::copy_n(chunk.data() + i * sizeof value, sizeof value, reinterpret_cast<char*>(&value));
      sums[i] += value;  // unsigned, because it may overflow
    }
  }
  if (!few) {
    std::string const from_here = adds ? std::string(reinterpret_cast<char const*>(sums.data()), mine.size()) : "";
    auto const of_all = engine.wait_allgather(from_here);
    if (of_all[0].size() != mine.size()) cache::throw_invalid_result(0, "another number of values");
    std::copy_n(of_all[0].data(), mine.size(), reinterpret_cast<char*>(sums.data()));
  }
  for (std::size_t i = 0; i < sums.size(); ++i) values[i] = static_cast<std::int64_t>(sums[i]);
}

void Store::scan(Stream& stream, TableId table,
                 std::function<void(View<Key const>, MatrixView<float const>)> const& visit) {
  impl_->require_between_steps("scan");
  impl_->require_stream(stream, "scan");
  GPUPS_REQUIRE(visit != nullptr, "scan() was called with an empty function (the rows would be lost): give a function");
  auto& engine = impl_->engine();
  wait_applied();
  auto& shard = impl_->shard(table);
  std::size_t rows = 0;
  engine.wait_invoke([&](Stream&) { rows = shard.rows_reserved(); });
  for (std::size_t first = 0; first < rows; first += kScanRows) {
    cache::TableShard::RowChunk chunk;
    engine.wait_invoke([&](Stream& own) {
      auto const last = std::min<std::size_t>(first + kScanRows, rows);
      auto const ids = shard.wait_select(own, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last),
                                         kernels::RowStatus::kExist);
      chunk = shard.wait_read(own, ids, cache::TableShard::Columns::kKeysAndValues);
    });
    if (chunk.rows() > 0) visit(chunk.keys, chunk.values);
    stream.wait();
  }
}

std::size_t Store::size(TableId table) {
  impl_->require_between_steps("size");
  auto& engine = impl_->engine();
  CollectiveCall const call(engine, impl_->call_on(table, "size"));
  wait_applied();
  auto const& shard = impl_->shard(table);
  std::int64_t rows = 0;
  engine.wait_invoke([&](Stream& own) { rows = static_cast<std::int64_t>(shard.wait_digest(own).rows); });
  wait_allreduce({&rows, 1});
  return static_cast<std::size_t>(rows);
}

std::uint64_t Store::table_hash() {
  impl_->require_between_steps("table_hash");
  auto& engine = impl_->engine();
  CollectiveCall const call(engine, "table_hash()");
  wait_applied();
  std::int64_t sums[2] = {0, 0};
  engine.wait_invoke([&](Stream& own) {
    for (auto const& table : engine.tables()) {
      auto const digest = table->wait_digest(own);
      sums[0] = static_cast<std::int64_t>(static_cast<std::uint64_t>(sums[0]) + digest.hash);
      sums[1] += static_cast<std::int64_t>(digest.rows);
    }
  });
  wait_allreduce(sums);
  return kernels::mix(static_cast<std::uint64_t>(sums[0]) ^ kernels::mix(static_cast<std::uint64_t>(sums[1])));
}

void Store::save(std::filesystem::path const& folder, std::span<Blob const> blobs) {
  impl_->require_between_steps("save");
  auto& engine = impl_->engine();
  CollectiveCall const call(engine, "save()");
  wait_applied();
  cache::wait_save(engine, folder, blobs, clock(), impl_->options_.seed);
}

void Store::export_rows(std::filesystem::path const& folder, ExportFormat format) {
  impl_->require_between_steps("export_rows");
  cache::require_format(format);
  auto& engine = impl_->engine();
  CollectiveCall const call(engine, format == ExportFormat::kNpy ? "export_rows(npy)" : "export_rows(flat)");
  wait_applied();
  cache::wait_export(engine, folder, format);
}

std::vector<Blob> Store::restore(std::filesystem::path const& folder) {
  {
    std::lock_guard lock(impl_->mutex_);
    GPUPS_REQUIRE(!impl_->engine_.started(),
                  "restore() was called on a store in use (its rows and those of the checkpoint would be mixed): call "
                  "it before anything is prepared");
    // The protocol must start at the clock of the checkpoint. Errors are ignored here; wait_restore() throws them on
    // all ranks.
    std::error_code error;
    if (std::filesystem::is_regular_file(folder / "manifest.json", error)) {
      try {
        impl_->clock_ = cache::read_manifest(folder).clock;
      } catch (Error const&) {
      }
    }
  }
  auto& engine = impl_->engine();
  CollectiveCall const call(engine, "restore()");
  return cache::wait_restore(engine, folder, impl_->options_.seed);
}

}  // namespace gpups
