#pragma once

// A call of the C++ interface that must fail, with its code and part of its text.

#include <gtest/gtest.h>

#include <string>

#include "runtime/api/oxbow.hpp"

namespace oxbow::testing {

inline void expect_refused(const oxb::Status& status, oxb_status code, const std::string& part) {
  EXPECT_EQ(status.code(), code) << status.text();
  EXPECT_NE(std::string(status.text()).find(part), std::string::npos)
      << status.text() << "\nexpected: " << part;
}

}  // namespace oxbow::testing
