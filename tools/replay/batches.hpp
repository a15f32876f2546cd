// SPDX-License-Identifier: Apache-2.0
// The batches that are replayed: recorded by a run, or drawn from a Zipf distribution.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "gpups/table.hpp"
#include "tools/replay/options.hpp"
#include "trainer/placement/trace_format.hpp"

namespace gpups::tools {

class ReplayBatches {
 public:
  virtual ~ReplayBatches() = default;

  virtual std::vector<TableOptions> tables() const = 0;
  virtual int default_ranks() const = 0;
  virtual std::int64_t default_lookahead() const = 0;
  // Returns the number of steps whose uses the policy sees.
  virtual std::int64_t window() const = 0;
  virtual std::int64_t default_staleness() const = 0;
  virtual int default_ranks_of_node() const = 0;
  virtual std::int64_t default_bytes_min() const = 0;  // see StoreOptions::placement_bytes_min
  // Returns the number of rows of each table, of which a cache has a fraction.
  virtual std::vector<std::size_t> rows() const = 0;
  // Returns the number of steps that these ranks can be replayed for. Throws Error if there are no batches for them.
  virtual std::int64_t steps(int /*ranks*/) const { return std::numeric_limits<std::int64_t>::max(); }
  // Returns the samples of all ranks in a step.
  virtual double samples(int ranks) const = 0;
  // Returns the distinct keys of a rank's batch. REQUIRES: step < steps(ranks).
  virtual std::vector<trainer::TracedPart> parts(std::uint32_t rank, std::int64_t step, int ranks) const = 0;
};

// Reads the trace, or returns keys with a Zipf distribution. The options must outlive the result.
std::unique_ptr<ReplayBatches const> make_batches(ReplayCommand const& options);

}  // namespace gpups::tools
