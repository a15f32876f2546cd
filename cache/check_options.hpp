// SPDX-License-Identifier: Apache-2.0
// Whether options make sense: what would be an endless wait, a crash or a table that never learns is rejected before
// anything is made of it.
#pragma once

#include "gpups/store.hpp"

namespace gpups::cache {

// Throw Error, which names the option, its value and what it can be.
void check_store(StoreOptions const& options);
void check_table(TableOptions const& options, int ranks);

}  // namespace gpups::cache
