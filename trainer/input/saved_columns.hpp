// SPDX-License-Identifier: Apache-2.0
// The columns of the training files in a checkpoint, with which files to predict are compared.
#pragma once

#include <span>

#include "gpups/files.hpp"
#include "trainer/input/table_layout.hpp"

namespace gpups::trainer {

// REQUIRES: a file was checked.
Blob to_blob(SameColumns const& columns);

// Returns the columns of a checkpoint's blobs, or no file if they have none. Throws Error if they are damaged.
SameColumns saved_columns(std::span<Blob const> blobs);

}  // namespace gpups::trainer
