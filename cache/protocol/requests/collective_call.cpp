// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/requests/collective_call.hpp"

#include <utility>

#include "comm/base/peer_error.hpp"
#include "kernels/base/check.hpp"

namespace gpups::cache {
namespace {

// What each rank sends after its local work: an error, or a result if the error is empty.
struct RankResult {
  std::string error;
  std::string result;
};

std::string encode(RankResult const& result) {
  comm::Writer writer;
  writer.put_text(result.error);
  writer.put_text(result.result);
  return writer.take();
}

RankResult decode_rank_result(std::string const& bytes) {
  comm::Reader reader(bytes);
  RankResult result;
  result.error = reader.get_text();
  result.result = reader.get_text();
  reader.end();
  return result;
}

// Returns the results of all ranks. Throws Error with the error of the lowest rank that has one.
std::vector<std::string> results_of(std::vector<std::string> const& pieces) {
  std::vector<std::string> results;
  std::string first_error;
  for (std::size_t rank = 0; rank < pieces.size(); ++rank) {
    RankResult result = parse_result(rank, [&] { return decode_rank_result(pieces[rank]); });
    if (first_error.empty()) first_error = comm::peer_text(result.error);
    results.push_back(std::move(result.result));
  }
  if (!first_error.empty()) throw Error(first_error);
  return results;
}

}  // namespace

void throw_invalid_result(std::size_t rank, std::string const& what) {
  throw PeerError(
      Rank{static_cast<std::uint32_t>(rank)},
      fmt::format("rank {} sent an invalid result for a collective call: {} (the call cannot continue): check "
                  "that all ranks run the same program",
                  rank, what));
}

std::vector<std::string> wait_collective_call(Engine& engine, Timeout timeout,
                                              std::function<std::string()> const& local_work) {
  RankResult mine;
  try {
    mine.result = local_work();
  } catch (std::exception const& error) {
    mine.error = error.what();
  }
  return results_of(timeout == Timeout::kDefault ? engine.wait_allgather(encode(mine))
                                                 : engine.wait_allgather_forever(encode(mine)));
}

std::vector<std::string> wait_collective_exchange(Engine& engine,
                                                  std::function<std::vector<std::string>()> const& local_work) {
  std::vector<std::string> mine;
  std::string own_error;
  try {
    mine = local_work();
    GPUPS_ASSERT(mine.size() == static_cast<std::size_t>(engine.ranks()));
  } catch (std::exception const& error) {
    mine.assign(static_cast<std::size_t>(engine.ranks()), {});
    own_error = error.what();
  }
  for (auto& bytes : mine) bytes = encode({own_error, std::move(bytes)});
  return results_of(engine.wait_exchange(std::move(mine)));
}

}  // namespace gpups::cache
