// SPDX-License-Identifier: Apache-2.0
#include "cache/agree.hpp"

#include "comm/peer_text.hpp"
#include "kernels/check.hpp"

namespace gpups::cache {
namespace {

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

}  // namespace

void refuse_share(std::size_t rank, std::string const& what) {
  throw PeerError(Rank{static_cast<std::uint32_t>(rank)},
                  fmt::format("rank {} said of its share of a common work what cannot be: {} (nothing can be built on "
                              "it): check that all ranks run the same program",
                              rank, what));
}

std::vector<std::string> wait_agree(Engine& engine, Patience patience, std::function<std::string()> const& share) {
  Said mine;
  try {
    mine.result = share();
  } catch (std::exception const& error) {
    mine.error = error.what();
  }
  std::vector<std::string> results;
  std::string first_error;
  auto const pieces =
      patience == Patience::kUsual ? engine.wait_gather(encode(mine)) : engine.wait_gather_patiently(encode(mine));
  for (std::size_t rank = 0; rank < pieces.size(); ++rank) {
    Said const said = read_share(rank, [&] { return decode_said(pieces[rank]); });
    if (first_error.empty()) first_error = comm::peer_text(said.error);
    results.push_back(said.result);
  }
  if (!first_error.empty()) throw Error(first_error);
  return results;
}

}  // namespace gpups::cache
