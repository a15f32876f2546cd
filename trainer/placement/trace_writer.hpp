// SPDX-License-Identifier: Apache-2.0
// Records the distinct keys of a rank's batches while training, for the program replay.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "gpups/gpups.hpp"
#include "trainer/config/config.hpp"
#include "trainer/placement/trace_format.hpp"

namespace gpups::trainer {

// Describes a trace that begins with the store's next step. tables: number of tables.
TraceDescription describe_trace(Store const& store, std::size_t tables, Config const& config);

// Writes the trace of one rank. One thread at a time.
class TraceWriter {
 public:
  // Creates the folder if it does not exist, and replaces the file of the rank. steps: number of steps to record.
  // Throws Error if that fails.
  TraceWriter(std::filesystem::path const& folder, Rank rank, TraceDescription const& description, std::int64_t steps);

  // Appends a step, unless it is after the last one to record, and the end after the last one. batch: of this step;
  // empty if this rank has no samples. Waits for `stream`. Throws Error if the file cannot be written.
  void wait_add(Stream& stream, Clock step, PreparedBatch const& batch);

  // Appends the end, if the run ends before the last step to record. Throws Error as wait_add().
  void finish();

 private:
  void add_record(TraceRecord record);
  void require_written() const;

  std::filesystem::path path_;
  std::ofstream file_;
  std::int64_t first_step_;
  Clock next_, end_;
  bool finished_ = false;
  std::string bytes_;  // of a step
};

}  // namespace gpups::trainer
