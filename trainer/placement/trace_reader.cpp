// SPDX-License-Identifier: Apache-2.0
#include "trainer/placement/trace_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/base/checksum.hpp"
#include "trainer/base/progress_reporter.hpp"

namespace gpups::trainer {
namespace {

namespace fs = std::filesystem;

// The bytes of a file that are not read yet.
class TraceBytes {
 public:
  explicit TraceBytes(fs::path const& path) {
    std::error_code none;
    std::ifstream file;
    if (fs::is_regular_file(path, none)) file.open(path, std::ios::binary);  // opening a FIFO would wait
    GPUPS_REQUIRE(file.is_open(),
                  "it cannot be read (a trace has a regular file for each rank): give the folder of a run with "
                  "placement.trace_steps");
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
  }
  // Returns the next bytes, or nothing if the file has fewer.
  std::optional<std::string> take(std::uint64_t bytes) {
    if (bytes > bytes_.size() - position_) return std::nullopt;
    return bytes_.substr(std::exchange(position_, position_ + bytes), bytes);
  }
  template <class T>
  std::optional<T> take() {
    auto const bytes = take(sizeof(T));
    if (!bytes) return std::nullopt;
    T value;
    std::memcpy(&value, bytes->data(), sizeof value);
    return value;
  }

 private:
  std::string bytes_;
  std::size_t position_ = 0;
};

// The contents of a file.
struct RankTrace {
  std::string description;
  std::vector<std::vector<TracedPart>> steps;
};

std::string description_of(TraceBytes& file, int rank) {
  auto const header = file.take<TraceFileHeader>();
  GPUPS_REQUIRE(header && std::memcmp(header->magic, kTraceMagic, sizeof kTraceMagic) == 0,
                "it is not a trace (its first bytes are others): give the folder of a run with placement.trace_steps");
  GPUPS_REQUIRE(header->version == kTraceVersion,
                "it has format version {}, not {} (another version of gpups wrote it): record the trace again",
                header->version, kTraceVersion);
  GPUPS_REQUIRE(header->rank == static_cast<std::uint64_t>(rank),
                "it has the keys of rank {} (the file was copied, renamed or damaged): record the trace again",
                header->rank);
  auto text = file.take(header->description_bytes);
  GPUPS_REQUIRE(text && kernels::checksum(text->data(), text->size()) == header->xxh3,
                "its description has a wrong checksum (it was cut or changed): record the trace again");
  return *std::move(text);
}

[[noreturn]] void throw_cut(std::size_t steps) {
  throw Error(
      fmt::format("it ends after {} without the mark of its end (the run was killed or still writes, or the file was "
                  "cut, so a replay would be of fewer steps): record the trace again",
                  with_count(steps, "whole step")));
}

RankTrace read_rank(fs::path const& path, int of_rank) {
  TraceBytes file(path);
  RankTrace rank{.description = description_of(file, of_rank), .steps = {}};
  auto const description = TraceDescription::from_json(rank.description);
  while (true) {
    auto const count = rank.steps.size();
    auto const step = description.first_step + static_cast<std::int64_t>(count);
    auto const record = file.take<TraceRecord>();
    if (!record) throw_cut(count);
    bool const ends = record->step == kTraceEnd && record->bytes == count;
    GPUPS_REQUIRE(
        record->xxh3 == kernels::checksum(&*record, offsetof(TraceRecord, xxh3)) && (ends || record->step == step),
        "the record of step {} is damaged (the file was changed): record the trace again", step);
    if (ends) break;
    auto const bytes = file.take(record->bytes);
    if (!bytes) throw_cut(count);
    GPUPS_REQUIRE(kernels::checksum(bytes->data(), bytes->size()) == record->parts_xxh3,
                  "the keys of step {} have a wrong checksum (the file was changed): record the trace again", step);
    rank.steps.push_back(decode_traced_parts(*bytes, description.tables.size()));
  }
  return rank;
}

RankTrace read_named(fs::path const& path, int rank) {
  try {
    return read_rank(path, rank);
  } catch (Error const& error) {
    throw Error(fmt::format("{}: {}", path.string(), error.what()));
  }
}

}  // namespace

PlacementTrace read_placement_trace(fs::path const& folder) {
  GPUPS_REQUIRE(fs::is_directory(folder),
                "there is no folder {} (a trace has a file for each rank in the folder of its run): give the folder of "
                "a run with placement.trace_steps",
                folder.string());
  auto const here = fs::exists(folder / "placement_trace") ? folder / "placement_trace" : folder;
  std::vector<RankTrace> ranks{read_named(trace_file(here, 0), 0)};
  PlacementTrace trace{.description = TraceDescription::from_json(ranks[0].description), .steps = {}};
  for (int rank = 1; rank < trace.description.ranks; ++rank) {
    auto const path = trace_file(here, rank);
    auto const& other = ranks.emplace_back(read_named(path, rank));
    GPUPS_REQUIRE(other.description == ranks[0].description,
                  "{} and {} are of different runs (their steps do not belong together): record the trace again",
                  trace_file(here, 0).string(), path.string());
  }
  // A rank of a run that a signal stopped may have prepared more steps than others.
  auto const fewer = [](RankTrace const& a, RankTrace const& b) { return a.steps.size() < b.steps.size(); };
  std::size_t const steps = std::min_element(ranks.begin(), ranks.end(), fewer)->steps.size();
  GPUPS_REQUIRE(steps > 0, "{} has no step (the run was stopped before): record the trace again", here.string());
  trace.steps.resize(steps);
  for (auto& rank : ranks) {
    for (std::size_t s = 0; s < steps; ++s) trace.steps[s].push_back(std::move(rank.steps[s]));
  }
  return trace;
}

}  // namespace gpups::trainer
