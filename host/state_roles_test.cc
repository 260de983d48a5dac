#include "host/state_roles.h"

#include <gtest/gtest.h>

#include <memory>

namespace oxbow {
namespace {

void add_state(schema::ModelT& model, const std::string& name, uint32_t rows, uint64_t bytes) {
  auto tensor = std::make_unique<schema::TensorT>();
  tensor->name = name;
  tensor->kind = schema::TensorKind::State;
  tensor->rows = rows;
  tensor->bytes = bytes;
  model.tensors.push_back(std::move(tensor));
}

TEST(StateRoles, KeysAndValuesAreKnownByEitherNaming) {
  EXPECT_EQ(state_role("mem.layer0.k"), StateRole::kKeys);
  EXPECT_EQ(state_role("key.layer11"), StateRole::kKeys);
  EXPECT_EQ(state_role("c_mem.layer0.v"), StateRole::kValues);
  EXPECT_EQ(state_role("value.layer0"), StateRole::kValues);
  EXPECT_EQ(state_role("mem.layer0"), StateRole::kRows);
}

TEST(StateRoles, ACacheHasOneRowOfEveryLayerForAToken) {
  schema::ModelT model;
  EXPECT_EQ(cache_bytes_per_token(model), 0u);
  for (const char* layer : {"layer0", "layer1"}) {
    const std::string name = layer;
    add_state(model, "mem." + name, 32, 32 * 164);
    // Two memories of a layer hold other tokens each: a cache would hold all of them once.
    for (const char* end : {".k", ".v"}) {
      add_state(model, "mem." + name + end, 32, 32 * 176);
      add_state(model, "c_mem." + name + end, 96, 96 * 176);
    }
  }
  EXPECT_EQ(cache_bytes_per_token(model), 2u * 2 * 176);
  add_state(model, "key.layer2", 64, 64 * 100);
  add_state(model, "value.layer2", 64, 64 * 50);
  EXPECT_EQ(cache_bytes_per_token(model), 2u * 2 * 176 + 150);
}

}  // namespace
}  // namespace oxbow
