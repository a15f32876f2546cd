// SPDX-License-Identifier: Apache-2.0
// What a rank's transport and payload send by, and are told by what arrives. Over a network it is a UcxWorker.
//
// A peer may send anything at any time: whoever handles it bounds what it keeps, and believes nothing but who it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "gpups/device.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

enum class AmKind : std::uint32_t {
  kMessage,        // a message of the transport
  kCredit,         // number messages of bytes have been received: there is room again
  kCreditRequest,  // there is no room: say soon what has been received
  kEnd,            // the sender has left, because of rank number, and why
  kData,           // a transfer of the payload, number being its tag; bytes is 1 where it may go at once, else 0
  kBulkRejected,   // the transfer has not the size that the receiver expects
  kBulkWithdrawn,  // a transfer that has not been taken goes with its sender
  kBulkCredit,     // number transfers of bytes that went at once have been taken
  kBulkOffer,      // a transfer with the tag number, of bytes, which may lie in memory of a device
  kFabricOffer,    // the same, and it may go by a fabric
  kBulkRequest,    // an offered transfer with the tag number: send it, in pieces, or where bytes is 1 in one; else 0
  kBulkPiece,      // of the transfer with the tag number, from bytes on
  kFabricReady,    // to rank 0: the transfer with the tag number of the rank bytes may begin
  kFabricAllreduceReady,  // to rank 0: the sum with the tag number, of bytes, may begin
  kFabricBatch,           // rank 0: batch number, and the receiver's parts of it
};
inline constexpr std::size_t kAmKinds = 15;

// Whether what is sent goes at once, or waits with its sender until the receiver fetches it. UCX may let wait what may
// go at once. kDeviceRendezvous: on demand too, and from memory that the host cannot read, so that it gets no checksum.
enum class AmProtocol { kEager, kRendezvous, kDeviceRendezvous };

// What is said of everything that is sent.
struct AmHeader {
  Rank from;
  AmKind kind;
  std::uint64_t number;
  std::uint64_t bytes;
};

// What has arrived. The bytes are here until the handler returns, or still with the sender: then handle says which they
// are, and the receiver has to fetch() or drop() them.
struct AmArrival {
  void* data;
  std::size_t bytes;
  bool remote;
  AmHeader header{};
  std::optional<std::uint64_t> checksum{};  // of the bytes, where they have one
};

class ActiveMessages {
 public:
  virtual ~ActiveMessages() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  // Who takes what arrives. Handlers are called with the lock held and must not call progress(). What they are given
  // has a known kind, is as it was sent, and comes from the rank that it names; what is still remote is looked at when
  // it has been fetched.
  using Handler = std::function<void(AmHeader const& header, AmArrival const& arrival)>;
  virtual void handle(AmKind kind, Handler handler) = 0;

  // Sends; the bytes stay as they are until `sent` has been called, here or by progress(). It is not called where the
  // connection has failed.
  virtual void send(AmProtocol protocol, Rank to, AmKind kind, std::uint64_t number, std::uint64_t count,
                    void const* data, std::size_t bytes, std::function<void()> sent) = 0;
  // The same for bytes that are kept alive here; more than kEagerBytesMax go on demand.
  virtual void send(Rank to, AmKind kind, std::uint64_t number, std::uint64_t count, std::string body) = 0;
  // Whether what is sent, and fetched, may lie in memory of a device other than the host.
  virtual bool reaches(Device device) const = 0;
  // Brings the bytes of a remote arrival. `fetched` is called, here or by progress(), when they are there, and are what
  // was sent.
  virtual void fetch(AmArrival const& arrival, void* to, std::function<void()> fetched) = 0;
  virtual void drop(AmArrival const& arrival) = 0;

  // Called when the connection to a peer, or a transfer over it, has failed, with what the network says of it, perhaps
  // often. A peer of the same machine may be gone without it.
  virtual void on_broken(std::function<void(Rank peer, std::string const& what)> broken) = 0;

  // Each listener is called when something that a peer has sent arrived otherwise than it was sent, or is of another
  // version. What it was is dropped, and what was to be fetched never is. A null function ends it.
  using OnPeerError = std::function<void(Rank peer, std::string const& what)>;
  virtual void on_peer_error(void const* listener, OnPeerError wrong) = 0;

  // Moves what can be moved now; true if anything was.
  virtual bool progress() = 0;
  // There is no point in ending connections in order.
  virtual void abandon() = 0;

  virtual std::recursive_mutex& mutex() = 0;
};

}  // namespace gpups::comm
