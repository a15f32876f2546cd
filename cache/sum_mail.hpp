// SPDX-License-Identifier: Apache-2.0
// Carries the sums of a group's arrays by the mail of its store.
#pragma once

#include "cache/mail.hpp"
#include "comm/allreduce.hpp"

namespace gpups::cache {

class SumMail final : public comm::SumCarrier {
 public:
  SumMail(Stream& stream, Mail& mail) : stream_(stream), mail_(mail) {}

  void announce(Rank to, std::uint64_t number, std::uint64_t elements) override {
    mail_.send(to, {.kind = MessageKind::kAllreduce, .id = number, .elements = elements});
  }
  void send(Rank to, std::uint64_t number, Slice kind, View<std::int64_t const> data, std::shared_ptr<void const> keep,
            std::function<void()> then) override {
    mail_.send_data(stream_, to, tag_of(number, kind), data.data(), data.bytes(), &Traffic::reductions, std::move(keep),
                    std::move(then));
  }
  void take(Rank from, std::uint64_t number, Slice kind, std::size_t elements, std::function<std::int64_t*()> where,
            std::function<void()> then) override {
    mail_.take_data(stream_, from, tag_of(number, kind), elements * sizeof(std::int64_t), std::move(where),
                    std::move(then));
  }

 private:
  static std::uint64_t tag_of(std::uint64_t number, Slice kind) {
    return tag(kind == Slice::kTerms ? Section::kTerms : Section::kSums, number, 0);
  }

  Stream& stream_;
  Mail& mail_;
};

}  // namespace gpups::cache
