#pragma once

// The ways of oxbow eval.

#include <string>

#include "tools/common.h"

namespace oxbow::tools {

/// --classify FILE: prints the class of each line's text, and the accuracy where classes are given.
int eval_classify(const Args& args, const oxb::Model& model, const std::string& path,
                  const CommonOptions& common);

}  // namespace oxbow::tools
