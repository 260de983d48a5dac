#pragma once

// Table-driven tests of what bind must refuse. A Fixture is a struct whose constructor makes a
// valid step in its member `op`; each line of the table changes one thing.

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "ops/testing/op_runner.h"

namespace oxbow::testing {

template <typename Fixture>
struct Refusal {
  const char* name;
  void (*change)(Fixture& fixture);
  /// Must be part of the message.
  const char* words;
};

template <typename Fixture>
void expect_refusals(std::initializer_list<Refusal<Fixture>> refusals) {
  {
    Fixture valid;
    ASSERT_EQ(valid.op.bind(), Status::kOk) << "the unchanged step: " << valid.op.message();
  }
  for (const Refusal<Fixture>& refusal : refusals) {
    SCOPED_TRACE(refusal.name);
    Fixture fixture;
    refusal.change(fixture);
    EXPECT_EQ(fixture.op.bind(), Status::kFileCorrupt);
    EXPECT_NE(std::string(fixture.op.message()).find(refusal.words), std::string::npos)
        << "message: " << fixture.op.message() << "\nexpected words: " << refusal.words;
  }
}

}  // namespace oxbow::testing
