// SPDX-License-Identifier: Apache-2.0
// One collective in flight on this rank: its coroutine, and the communicator that the coroutine uses. Messages of other
// ranks may arrive before this rank has started the collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/bulk/bulk_transport.hpp"
#include "comm/collectives/co_task.hpp"
#include "comm/collectives/collective_header.hpp"
#include "comm/collectives/communicator.hpp"
#include "gpups/array.hpp"

namespace gpups::comm {

// The transport of the collectives of a rank: headers, bulk data, and the sums of a device fabric. Only the thread that
// makes progress calls it.
class CollectiveTransport {
 public:
  virtual ~CollectiveTransport() = default;

  // Identifies a bulk message: the collective, and the number of the message among those from one rank to another in
  // it.
  struct MessageId {
    std::uint64_t sequence, index;
  };

  // Sends a header, with which the other rank calls Collectives::on_header(). inline_bytes: the bytes of the header
  // that are data of a message, for statistics.
  virtual void send_header(Rank to, std::uint64_t sequence, std::string header, std::size_t inline_bytes) = 0;
  // Sends bulk data. `keep` stays alive, and the data must not change, until `then` is called; at once if there is no
  // data.
  virtual void send(Stream& stream, Rank to, MessageId id, View<std::uint8_t const> data,
                    std::shared_ptr<void const> keep, std::function<void()> then) = 0;
  // Receives bulk data. `allocate` returns the memory for it and is called when the sender has offered exactly `bytes`.
  // `then` is called when the data is there; at once if `bytes` is 0.
  virtual void receive_bulk(Stream& stream, Rank from, MessageId id, std::size_t bytes,
                            BulkTransport::Allocate allocate, std::function<void()> then) = 0;
  // Returns whether sum() may be called for memory of the device; equal on all ranks.
  virtual bool can_allreduce(Device device) const = 0;
  // Sums arrays of all ranks, with equal bits on all ranks; at most once in a collective. `keep` owns them and stays
  // alive until `then` is called, when the sums are there; at once if they are empty.
  virtual void sum(Stream& stream, std::uint64_t sequence, FabricSum const& arrays, std::shared_ptr<void const> keep,
                   std::function<void()> then) = 0;
  // For statistics: `sent` bytes were sent, which are `uncompressed_bytes` without compression.
  virtual void count_compression(std::uint64_t uncompressed_bytes, std::uint64_t sent) = 0;
};

// The most unexpected messages of one rank in one collective.
inline constexpr std::size_t kUnexpectedMax = 1024;

class CollectiveOp final : public Communicator, public std::enable_shared_from_this<CollectiveOp> {
 public:
  // `on_progress` is called whenever the coroutine may have ended.
  CollectiveOp(Rank me, int ranks, Stream const& stream, CollectiveTransport& transport, std::uint64_t number,
               std::function<void(CollectiveOp&)> on_progress);

  ~CollectiveOp() override;  // waits for the stream if the coroutine has not ended, because its memory may be in use

  // Replaces the stream. REQUIRES: !started().
  void use(Stream const& stream);
  // Starts the coroutine body(*this). `body` is kept until the op ends.
  void begin(Signature const& signature, std::function<CoTask<>(Communicator&)> body);
  // Handles a header of another rank. Throws PeerError if the signatures differ or a message is out of order.
  void on_header(Rank from, CollectiveHeader header);

  std::uint64_t sequence_number() const override { return number_; }
  bool started() const { return signature_.has_value(); }
  // Returns whether the other rank is known to have started the collective.
  bool has_signature_of(Rank rank) const { return rank == me() || peers_[number(rank)].signature.has_value(); }
  // REQUIRES: has_signature_of(rank), and it is another rank.
  Signature const& signature_of(Rank rank) const { return *peers_[number(rank)].signature; }
  CollectiveKind operation() const { return signature_->operation; }
  // Returns whether the coroutine has returned and the signatures of all ranks have arrived. Throws the exception of
  // the coroutine, and PeerError if a rank has sent more messages than this rank receives.
  bool finished();
  // Returns the ranks that the op waits for. REQUIRES: started().
  std::vector<Rank> pending_peers() const;

  // Resumes the coroutine if the stream work that it waits for is done. Returns whether it was waiting for any; call
  // progress() again then, because the end of work on a GPU wakes no thread.
  bool progress();

  bool can_allreduce() const override { return transport_.can_allreduce(work_stream_.device()); }
  void count_compression(std::uint64_t uncompressed_bytes, std::uint64_t sent) override;
  void set_uncompressed_bytes(std::uint64_t uncompressed_bytes) override { uncompressed_bytes_ = uncompressed_bytes; }
  [[noreturn]] void throw_peer_error(Rank peer, std::string const& what) const override;

 protected:
  SendRequest post_send(Rank to, View<std::uint8_t const> bytes, std::shared_ptr<void const> keep,
                        SizeMode size) override;
  std::shared_ptr<Completion> post_receive(Rank from, std::size_t bytes_max, Device device) override;
  std::shared_ptr<Completion> post_receive_fixed(Rank from, View<std::uint8_t> to,
                                                 std::shared_ptr<void const> keep) override;
  std::shared_ptr<Completion> post_allreduce(FabricSum const& arrays, std::shared_ptr<void const> keep) override;
  std::shared_ptr<Completion> stream_completion() override;

 private:
  struct PendingReceive {
    std::uint64_t index = 0;
    std::shared_ptr<Completion> completion{};
    std::size_t bytes_max = 0;
    Device device{};
    std::optional<View<std::uint8_t>> to{};  // set if the size is known
    std::shared_ptr<void const> keep{};
  };
  // Lists, because most are empty and an empty deque uses memory.
  struct PeerQueues {
    bool header_sent = false;                             // the peer was sent this rank's signature
    std::optional<Signature> signature;                   // of the peer
    std::uint64_t sent = 0, posted_count = 0;             // messages and receives so far
    std::list<CollectiveHeader::MessagePart> unexpected;  // messages without a receive
    std::uint64_t next = 0;                               // smallest index that its next message may have
    std::list<PendingReceive> posted;  // receives without a message, or before the signatures are compared
    std::size_t arriving = 0;          // bulk transfers in flight
  };

  PeerQueues& peer(Rank rank);
  template <class F>
  void each_other(F f) const;
  void check_signature(Rank rank);
  void start_allreduce_if_matching();
  void send_header(Rank to, std::optional<CollectiveHeader::MessagePart> message);
  void match(Rank from);
  // Resumes the coroutine after an operation. The caller owns this object.
  void complete(Completion& completion);
  bool match_next(Rank from, PeerQueues& of);
  void receive_bulk(Rank from, PendingReceive posted, std::size_t bytes);
  void deliver_inline(PendingReceive const& posted, std::string const& bytes);
  Stream& stream_for(Device device) { return device.is_host() ? host_stream_ : stream(); }

  Stream work_stream_;  // the stream of the communicator
  CollectiveTransport& transport_;
  std::uint64_t const number_;
  std::function<void(CollectiveOp&)> const on_progress_;
  Stream host_stream_;
  std::vector<PeerQueues> peers_;   // by rank
  std::size_t missing_signatures_;  // ranks whose signature has not arrived
  std::size_t matching_ranks_ = 0;  // ranks whose signature equals this rank's
  std::function<void()> add_up_;    // starts the fabric allreduce once all signatures match
  std::vector<std::pair<Event, std::shared_ptr<Completion>>> stream_completions_;
  std::optional<std::uint64_t> uncompressed_bytes_{};  // the argument of set_uncompressed_bytes()
  std::uint64_t sent_bytes_ = 0;                       // bytes so far that are compared with it at the end
  std::optional<Signature> signature_;
  std::function<CoTask<>(Communicator&)> body_;
  CoTask<> task_;
  bool result_taken_ = false;  // the exception of the task, if any, has been rethrown
};

}  // namespace gpups::comm
