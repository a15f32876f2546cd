// SPDX-License-Identifier: Apache-2.0
// Checks of store and table options, so that invalid options throw an Error before anything is created.
#pragma once

#include "gpups/store.hpp"

namespace gpups::cache {

// Throw Error with the option, its value and the valid values. ranks: number of ranks of the store.
void check_store(StoreOptions const& options);
void check_table(TableOptions const& options, int ranks);

}  // namespace gpups::cache
