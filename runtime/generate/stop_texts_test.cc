#include "runtime/generate/stop_texts.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace oxbow {
namespace {

struct Fixture {
  Fixture() { stop.place(std::string_view("END\n\n"), lengths, room); }
  std::string add(std::string_view piece) {
    const size_t shown = stop.add(piece);
    std::string text(stop.text(), shown);
    stop.drop(shown);
    return text;
  }

  uint32_t lengths[2] = {3, 2};
  char room[16];
  StopTexts stop;
};

TEST(StopTexts, HoldsBackWhatMayBecomeOne) {
  Fixture f;
  EXPECT_EQ(f.add("aE"), "a");
  EXPECT_EQ(f.add("N"), "");
  EXPECT_EQ(f.add("d\n"), "ENd");
  EXPECT_EQ(f.stop.finish(), 1u);
  EXPECT_FALSE(f.stop.reached());
  EXPECT_EQ(f.add("b"), "\nb");
}

TEST(StopTexts, EndsBeforeTheFirstHoweverItIsCut) {
  Fixture f;
  EXPECT_EQ(f.add("x\nE"), "x\n");
  EXPECT_EQ(f.add("NDy\n\n"), "");
  EXPECT_TRUE(f.stop.reached());
  EXPECT_EQ(f.stop.finish(), 0u);
  EXPECT_EQ(f.add("z"), "");
}

}  // namespace
}  // namespace oxbow
