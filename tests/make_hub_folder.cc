// Makes one of the folders of tests/support/hub_folder.h, to try the programs by hand.

#include <cstdio>
#include <exception>
#include <string>

#include "tests/support/hub_folder.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::string names;
    for (const std::string& name : oxbow::testing::hub_folder_names()) names += " " + name;
    std::fprintf(stderr, "usage: oxbow_make_hub_folder NAME DIR\n  NAME is one of:%s\n",
                 names.c_str());
    return 2;
  }
  try {
    oxbow::testing::make_hub_folder(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "oxbow_make_hub_folder: %s\n", error.what());
    return 3;
  }
}
