// SPDX-License-Identifier: Apache-2.0
// The kind of task for the words of a text.
#pragma once

#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {

TaskKind const& word_kind();

}  // namespace gpups::trainer
