// SPDX-License-Identifier: Apache-2.0
#include "comm/cluster/ledger.hpp"

#include "comm/wire.hpp"
#include "kernels/assert.hpp"

namespace gpups::comm {

std::string encode(Notice const& notice) {
  Writer writer;
  writer.put<Rank>(notice.by);
  writer.put<Rank>(notice.rank);
  writer.put_text(notice.why);
  return writer.take();
}

Notice decode_notice(std::string_view body) {
  Reader reader(body);
  Notice notice;
  notice.by = reader.get<Rank>();
  notice.rank = reader.get<Rank>();
  notice.why = reader.get_text();
  reader.end();
  return notice;
}

bool Ledger::can_be(Notice const& notice) const {
  return number(notice.by) < fates_.size() && number(notice.rank) < fates_.size() && notice.by != mine_ &&
         (!notice.why.empty() || notice.by == notice.rank);
}

void Ledger::apply(Notice const& notice) {
  GPUPS_ASSERT(can_be(notice));
  Fate& fate = fates_[number(notice.by)];
  if (notice.why.empty()) {
    if (fate != Fate::kThere) return;
    fate = Fate::kLeft;
    events_.push_back({.rank = notice.by});
  } else if (notice.rank == mine_) {
    // Whether this rank or its link was at fault cannot be known here; that nothing goes on with `by` is certain.
    lose(notice.by, "it has given this rank up: " + notice.why);
  } else if (notice.rank == notice.by || fates_[number(notice.rank)] == Fate::kLeft) {
    lose(notice.by, notice.why);  // that a rank which had left is not there any more is the mistake of `by`
  } else {
    lose(notice.rank, notice.why);
    if (fate == Fate::kThere) fate = Fate::kFollowed;
  }
}

void Ledger::lose(Rank rank, std::string const& why) {
  Fate& fate = fates_[number(rank)];
  if (fate == Fate::kLost || fate == Fate::kFollowed) return;
  fate = Fate::kLost;
  events_.push_back({.rank = rank, .why = why});
}

bool Ledger::is_alone() const {
  for (std::uint32_t rank = 0; rank < fates_.size(); ++rank) {
    if (Rank{rank} != mine_ && fates_[rank] == Fate::kThere) return false;
  }
  return true;
}

}  // namespace gpups::comm
