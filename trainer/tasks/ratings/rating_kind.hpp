// SPDX-License-Identifier: Apache-2.0
// The kind of task for ratings, which are factorized.
#pragma once

#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {

TaskKind const& rating_kind();

}  // namespace gpups::trainer
