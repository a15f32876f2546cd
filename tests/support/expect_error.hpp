// SPDX-License-Identifier: Apache-2.0
// Expects that a call throws gpups::Error whose message contains all words.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "gpups/error.hpp"

namespace gpups::test {

template <class Call>
void expect_error(Call call, std::initializer_list<char const*> words) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown; expected an Error with \"" << *words.begin() << "\"";
  } catch (Error const& error) {
    std::string const message = error.what();
    for (char const* word : words) {
      EXPECT_NE(message.find(word), std::string::npos) << "'" << word << "' is not in: " << message;
    }
  }
}

}  // namespace gpups::test
