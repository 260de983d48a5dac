#pragma once

#include <string>

namespace oxbow::convert {

/// A little of several languages, of talk, of numbers and of code: what int8 is fitted to and measured on when the user
/// gives nothing better.
std::string sample_text();

}  // namespace oxbow::convert
