// SPDX-License-Identifier: Apache-2.0
// A kernel needs a stream.
#include "kernels/rows/copy_rows.hpp"

void call(gpups::Stream& stream, gpups::kernels::Gather const& arguments) {
#ifdef WRONG
  (void)stream;
  gpups::kernels::gather(arguments);
#else
  gpups::kernels::gather(stream, arguments);
#endif
}
