// SPDX-License-Identifier: Apache-2.0
// Transfers from memory of a device: their sender only names them, and the receiver, when it has a place for one, says
// how it goes: by a lane, straight from memory to memory where UCX reaches the device, or in pieces through host memory
// of a bounded size. And sums by the lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/payload/convoy.hpp"
#include "comm/payload/lane.hpp"
#include "comm/payload/staging.hpp"
#include "comm/ucx/carrier.hpp"
#include "gpups/array.hpp"
#include "gpups/stream.hpp"

namespace gpups::comm {

// Its calls come with the link's lock held.
class Offered {
 public:
  using Id = std::pair<Rank, std::uint64_t>;  // the other rank, and the tag
  using Then = std::function<void()>;
  // `wrong` where a rank says what cannot be; `wake` when there is something for progress() to do.
  Offered(std::shared_ptr<UcxCarrier> link, std::shared_ptr<Lane> lane, std::function<void(Rank, char const*)> wrong,
          std::function<void()> wake);
  ~Offered();

  // Whether so many bytes on the device are sent in this way.
  bool takes(Device device, std::size_t bytes) const;
  // Names a transfer of data that are there. `gone` is called when they are no longer needed.
  void send(Id const& id, void const* data, std::size_t bytes, Stream const& stream, Then gone);
  // There is a place for what the other rank has named: `data`, on the stream's device. `there` is called when it has
  // come. may_go_by_lane: what the other rank has said.
  void receive(Id const& id, bool may_go_by_lane, void* data, std::size_t bytes, Stream const& stream, Then there);

  // Whether a lane connects the device.
  bool has_lane(Device device) const { return lane_ && lane_->device() == device; }
  // A sum over all ranks by the lane, under a tag that is the same on all of them: of what the work queued on the
  // stream so far has written to `terms`. `there` is called when the sums have come. REQUIRES:
  // has_lane(stream.device()).
  void sum(std::uint64_t tag, View<float const> terms, View<float> sums, Stream& stream, Then there);

  // Does what has become possible. True while something is being copied by a device, which wakes nobody, or was done.
  // Throws Error where a lane has failed, and where there is no memory to stage what is sent.
  bool progress();
  // Somebody may be reading from memory of this rank, or writing to it.
  bool busy() const { return open_ > 0 || !copies_.empty() || !batches_.empty(); }

 private:
  struct Outgoing {
    char const* data;
    std::size_t bytes, next = 0, gone_bytes = 0;  // next: the first byte of which nothing is under way
    Stream stream;
    Then gone;
    bool wanted = false, by_lane = false;
  };
  struct Incoming {
    char* data;
    std::size_t bytes, asked = 0, there_bytes = 0;
    Stream stream;
    Then there;
    bool by_lane = false;
  };
  // Between a piece of host memory and a device.
  struct Copy {
    Event over;
    std::function<void()> then;
  };
  struct MovedBatch {
    Lane::Over over;
    std::vector<Then> then;
  };
  struct Summing {
    View<float const> terms;
    View<float> sums;
    Event written;  // terms
    Then there;
  };
  struct Piece {
    Id id;
    std::size_t offset;
    UcxArrival arrival;
  };

  template <class F>
  Then guarded(F then);
  void wanted(UcxHeader const& header);
  void stage_some();
  void send_piece(UcxWay way, Id const& id, void const* data, std::size_t offset, std::size_t bytes, Then sent);
  void piece_came(UcxHeader const& header, UcxArrival const& arrival);
  void place_some();
  void bring_staged(Piece const& piece, kernels::PinnedPtr buffer);
  bool goes_straight(Incoming const& mine, UcxArrival const& arrival) const;
  void gone(Id const& id, std::size_t bytes);
  void there(Id const& id, std::size_t bytes);
  bool tell_written_sums();
  bool end_batches();
  void go(Convoy::Batch const& batch);
  bool add_part(Convoy::Part const& part, std::vector<Lane::Part>& parts, std::vector<Then>& then);
  bool begin_sum(std::uint64_t tag);

  std::shared_ptr<UcxCarrier> const link_;
  std::shared_ptr<Lane> const lane_;
  std::function<void(Rank, char const*)> const wrong_;
  std::function<void()> const wake_;
  std::shared_ptr<bool> const alive_ = std::make_shared<bool>(true);
  std::map<Id, Outgoing> outgoing_;
  std::map<Id, Incoming> incoming_;
  std::map<std::uint64_t, Summing> summing_;  // by tag: sums that the ranks are not all ready for
  std::vector<std::uint64_t> unwritten_;      // of them, those that this rank is not ready for
  Staging sending_, receiving_;
  std::deque<Id> unstaged_;                 // have pieces to send, when there is memory to stage them
  std::deque<Piece> waiting_;               // have come, the same
  std::vector<std::function<void()>> due_;  // what could fail, and is not for the link's calls
  std::vector<Copy> copies_;
  std::vector<MovedBatch> batches_;
  std::size_t open_ = 0;  // operations of the link
  std::unique_ptr<Convoy> convoy_;
};

}  // namespace gpups::comm
