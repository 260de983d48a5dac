#pragma once

// What decoders of microsoft/torchscale have in common.

#include "converter/formats/checkpoint.h"

namespace oxbow::convert {

/// Refuses what changes results and no importer does; passes over what changes none.
void read_torchscale_keys(const Checkpoint& checkpoint);

}  // namespace oxbow::convert
