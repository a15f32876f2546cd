// SPDX-License-Identifier: Apache-2.0
// The format of a placement trace: the distinct keys of the batches of a rank. A rank writes one file,
// placement_trace/rank-R.trace in the folder of the run:
//
//   TraceFileHeader | description, as JSON | TraceRecord | parts of a step | ... | TraceRecord of the end
//
// The record of the end says how many steps there are. It is missing if the run was killed or the file was cut.
// A part is the number of its table, the number of its keys and its keys in ascending order, as differences to the key
// before. All of these numbers are varints: 7 bits per byte, lowest bits first; the last byte is below 128.
#pragma once

#include <bit>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "gpups/table.hpp"
#include "gpups/types.hpp"

namespace gpups::trainer {

static_assert(std::endian::native == std::endian::little, "numbers in the file are little-endian");

constexpr char kTraceMagic[8] = {'g', 'p', 'u', 't', 'r', 'a', 'c', 'e'};
constexpr std::uint32_t kTraceVersion = 3;

// The first bytes of a file.
struct TraceFileHeader {
  char magic[8] = {};
  std::uint32_t version = 0;
  std::uint32_t description_bytes = 0;
  std::uint64_t rank = 0;
  std::uint64_t xxh3 = 0;  // of the description
};
static_assert(sizeof(TraceFileHeader) == 32);

constexpr std::int64_t kTraceEnd = -1;

// What precedes the parts of a step, or ends the file.
struct TraceRecord {
  std::int64_t step = 0;    // kTraceEnd: the end
  std::uint64_t bytes = 0;  // of the parts; of the end: the number of steps
  std::uint64_t parts_xxh3 = 0;
  std::uint64_t xxh3 = 0;  // of the fields above
};
static_assert(sizeof(TraceRecord) == 32);

// What a trace describes beside keys; equal in the files of all ranks.
struct TraceDescription {
  int ranks = 0;
  std::int64_t first_step = 0;
  std::int64_t lookahead = 0;   // of the run, if its rows could move
  std::int64_t window = 16;     // StoreOptions::placement_window, likewise
  std::int64_t bytes_min = -1;  // StoreOptions::placement_bytes_min
  int ranks_of_host = 0;        // the largest number of ranks on a host; 0: unknown
  std::int64_t staleness = 0;
  std::int64_t batch_size = 0;         // samples of all ranks in a step
  std::vector<TableOptions> tables{};  // name, dim, value_type, optimizer.kind and compression

  std::string to_json() const;
  // Throws Error if the text is not a description, or if homes were computed with another hash.
  static TraceDescription from_json(std::string const& text);
};

// The keys of a batch that use one table.
struct TracedPart {
  std::uint32_t table = 0;
  std::vector<Key> keys;  // distinct, ascending
};

// Returns the file of a rank. folder: of the trace.
std::filesystem::path trace_file(std::filesystem::path const& folder, int rank);

// Appends a part to `bytes`.
void encode_traced_part(TracedPart const& part, std::string& bytes);
// Decodes the parts of a step. Throws Error if they are not valid. tables: number of tables.
std::vector<TracedPart> decode_traced_parts(std::string const& bytes, std::size_t tables);

}  // namespace gpups::trainer
