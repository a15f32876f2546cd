// SPDX-License-Identifier: Apache-2.0
// The action of SIGHUP that the program's parent set: nohup, for instance, ignores it.
#pragma once

namespace gpups::tools {

// Gives SIGHUP the action that it had when the program was started: ignored, or the default. UCX's library installs a
// handler when it is loaded, before main(), which would otherwise catch the signal. Call this first in main().
void restore_hangup();

}  // namespace gpups::tools
