// SPDX-License-Identifier: Apache-2.0
// Look-ups for serving: how likely is it that a visitor clicks on each of these items?
//
// The same call serves from a checkpoint, and from tables in training: there from the training thread, which asks at
// the beginning of a step and has the rows at its end.
#pragma once

#include <string>
#include <vector>

#include "clicks.hpp"
#include "gpups/gpups.hpp"
#include "model.hpp"

struct Request {
  Visit visit;
  std::vector<std::uint64_t> items;
};

// A request synthetic from the stream.
Request make_request(std::int64_t step, std::size_t number);

// A request on its way.
class Scoring {
 public:
  // Asks for the rows, wherever they are, and returns.
  Scoring(gpups::Store& store, gpups::Stream& stream, Request const& request);
  // The probability of each item; waits for the rows. REQUIRES: before the next Store::advance_clock.
  std::vector<float> wait(gpups::Store& store, gpups::Stream& stream, Model const& model);

 private:
  std::vector<float> weights_;  // (history)
  std::size_t items_;
  gpups::Matrix<float> rows_[kTables];  // of the user, the items, the history and the context
  gpups::LookupRequest lookups_[kTables];
};

// A request as a line of text: USER CONTEXT ITEM:WEIGHT,ITEM:WEIGHT,.. ITEM ITEM ..
std::string to_text(Request const& request);
// Throws gpups::Error for text that is none.
Request parse_request(std::string const& line);

// The answer as a line of text: the user, then ITEM=PROBABILITY for each item.
std::string wait_answer(gpups::Store& store, gpups::Stream& stream, Model const& model, Request const& request);
