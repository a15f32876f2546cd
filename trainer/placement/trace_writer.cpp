// SPDX-License-Identifier: Apache-2.0
#include "trainer/placement/trace_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "kernels/base/check.hpp"
#include "kernels/base/checksum.hpp"

namespace gpups::trainer {

TraceDescription describe_trace(Store const& store, std::size_t tables, Config const& config) {
  Config moving = config;
  if (!rows_move(config)) moving.placement.policy = name_of(PlacementPolicy::kAdaptive);
  auto const lookahead = lookahead_steps(moving, store.ranks());
  TraceDescription description{.ranks = store.ranks(),
                               .first_step = number(store.clock()),
                               .lookahead = lookahead,
                               .window = placement_window(lookahead),
                               .bytes_min = store.options().placement_bytes_min,
                               .ranks_of_host = std::ranges::max(store.ranks_per_host()),
                               .staleness = store.options().staleness,
                               .batch_size = config.train.batch_size};
  for (std::uint32_t t = 0; t < tables; ++t) description.tables.push_back(store.table(TableId{t}));
  return description;
}

TraceWriter::TraceWriter(std::filesystem::path const& folder, Rank rank, TraceDescription const& description,
                         std::int64_t steps)
    : path_(trace_file(folder, static_cast<int>(number(rank)))),
      first_step_(description.first_step),
      next_(Clock{description.first_step}),
      end_(next_ + steps) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  GPUPS_REQUIRE(!error, "{} cannot be created ({}): choose another run.folder, or set placement.trace_steps = 0",
                folder.string(), error.message());
  // Files of an earlier run with more ranks do not belong to this trace.
  for (int other = description.ranks; number(rank) == 0 && std::filesystem::exists(trace_file(folder, other));
       ++other) {
    std::filesystem::remove(trace_file(folder, other), error);
  }
  file_.open(path_, std::ios::binary);
  std::string const text = description.to_json();
  TraceFileHeader header{.version = kTraceVersion,
                         .description_bytes = static_cast<std::uint32_t>(text.size()),
                         .rank = number(rank),
                         .xxh3 = kernels::checksum(text.data(), text.size())};
  std::copy_n(kTraceMagic, sizeof kTraceMagic, header.magic);
  file_.write(reinterpret_cast<char const*>(&header), sizeof header);
  file_ << text << std::flush;
  require_written();
}

void TraceWriter::require_written() const {
  GPUPS_REQUIRE(file_.good(),
                "{} cannot be written ({}): free some disk space, choose another run.folder, or set "
                "placement.trace_steps = 0",
                path_.string(), std::strerror(errno));
}

void TraceWriter::wait_add(Stream& stream, Clock step, PreparedBatch const& batch) {
  if (step >= end_) return;
  GPUPS_ASSERT(step == next_);
  next_ = next_ + 1;
  bytes_.clear();
  std::size_t const parts = batch.impl() == nullptr ? 0 : batch.parts();
  for (std::size_t p = 0; p < parts; ++p) {
    TracedPart part{number(batch.table(p)), to_host(stream, batch.keys(p))};
    std::sort(part.keys.begin(), part.keys.end());
    encode_traced_part(part, bytes_);
  }
  add_record(
      {.step = number(step), .bytes = bytes_.size(), .parts_xxh3 = kernels::checksum(bytes_.data(), bytes_.size())});
  file_ << bytes_ << std::flush;
  require_written();
  if (next_ == end_) finish();
}

void TraceWriter::finish() {
  if (finished_) return;
  finished_ = true;
  add_record({.step = kTraceEnd, .bytes = static_cast<std::uint64_t>(number(next_) - first_step_)});
  file_ << std::flush;
  require_written();
}

void TraceWriter::add_record(TraceRecord record) {
  record.xxh3 = kernels::checksum(&record, offsetof(TraceRecord, xxh3));
  file_.write(reinterpret_cast<char const*>(&record), sizeof record);
}

}  // namespace gpups::trainer
