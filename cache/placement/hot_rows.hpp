// SPDX-License-Identifier: Apache-2.0
// The rows of a home that ranks use most.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "cache/placement/announced_uses.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// A row, the number of its announced uses, and the ranks that use it.
struct RankedRow {
  TableId table{};
  Key key{};
  std::size_t uses = 0;
  std::vector<kernels::RowUser> users{};
};

// Returns the `most` rows of these with the most uses, those with the most uses first. Among rows with equally many
// uses, those with lower tables and keys come first. Reads all rows.
std::vector<RankedRow> wait_hottest_rows(Stream& stream, UsedRows const& used, std::size_t most);

// The step whose rows a home ranks (the hot step): the last one for which ranks had announced batches of as many later
// steps as for the step before it. At the end of training they announce fewer and fewer, so it is a step near the end.
// Until there is another hot step, this object refers to the keys of its batches, and of those of later steps that have
// begun: at most 16 steps, which had all been announced when it began. So it takes no memory beyond that of the most
// announced batches. For the thread that makes progress.
class HotStep {
 public:
  // Takes the batches of a step that begins or is planned, after all earlier ones. ahead: the number of later steps of
  // the window that have announced batches. Does nothing without batches.
  void begin(Clock step, std::vector<AnnouncedBatch> batches, std::size_t ahead);
  // Ranks the rows of the hot step by their uses in that step and in the later ones of the window. later: has the steps
  // that have not begun. Cost: sorts the keys of all these steps.
  std::vector<RankedRow> wait_hottest_rows(Stream& stream, std::size_t tables, AnnouncedUses const& later,
                                           std::size_t most) const;

 private:
  std::map<Clock, std::vector<AnnouncedBatch>> begun_;  // from the hot step on
  std::size_t ahead_ = 0;                               // of the last step that has begun
};

}  // namespace gpups::cache
