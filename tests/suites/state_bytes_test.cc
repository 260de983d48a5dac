// The bytes of a stream's states are those of the formulas in docs/states.md.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/api/oxbow.hpp"
#include "tests/support/golden.h"

namespace oxbow::testing {
namespace {

using nlohmann::json;

size_t up(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Floats of each state tensor, and the number of rings.
struct States {
  std::vector<size_t> tensors;
  size_t rings = 0;

  void add(std::initializer_list<size_t> floats, size_t more_rings = 0) {
    tensors.insert(tensors.end(), floats);
    rings += more_rings;
  }
  size_t bytes() const {
    size_t sum = up(8 + 8 * rings);
    for (const size_t floats : tensors) sum += up(4 * floats);
    return sum;
  }
};

States retnet(const json& c) {
  const size_t heads = c["decoder_retention_heads"];
  States s;
  for (size_t i = 0; i < c["decoder_layers"]; ++i) {
    s.add({size_t{c["decoder_embed_dim"]} * (size_t{c["decoder_value_embed_dim"]} / heads), heads});
  }
  return s;
}

States rwkv(const json& c) {
  const size_t d = c["hidden_size"], attention = c["attention_hidden_size"];
  States s;
  for (size_t i = 0; i < c["num_hidden_layers"]; ++i) {
    s.add({d, d, attention, attention, attention}, 2);
  }
  return s;
}

States rwkv7(const json& c) {
  const size_t d = c["n_embd"];
  States s;
  for (size_t i = 0; i < c["n_layer"]; ++i) s.add({d, d, d * size_t{c["head_size"]}}, 2);
  return s;
}

States mamba(const json& c) {
  const size_t inner = size_t{c["expand"]} * size_t{c["hidden_size"]};
  States s;
  for (size_t i = 0; i < c["num_hidden_layers"]; ++i) {
    s.add({(size_t{c["conv_kernel"]} - 1) * inner, size_t{c["state_size"]} * inner}, 1);
  }
  return s;
}

States mamba2(const json& c) {
  const size_t heads = c["num_heads"], width = c["head_dim"], n = c["state_size"];
  const size_t channels = heads * width + 2 * size_t{c["n_groups"]} * n;
  States s;
  for (size_t i = 0; i < c["num_hidden_layers"]; ++i) {
    s.add({(size_t{c["conv_kernel"]} - 1) * channels, heads * n * width}, 1);
  }
  return s;
}

States qwen(const json& c) {
  const size_t hk = c["linear_num_key_heads"], hv = c["linear_num_value_heads"],
               dk = c["linear_key_head_dim"], dv = c["linear_value_head_dim"];
  const size_t cache = size_t{c["max_position_embeddings"]} * size_t{c["num_key_value_heads"]} *
                       size_t{c["head_dim"]};
  States s;
  for (const std::string kind : c["layer_types"]) {
    if (kind == "full_attention") {
      s.add({cache, cache}, 1);
    } else {
      s.add({(size_t{c["linear_conv_kernel_dim"]} - 1) * (2 * hk * dk + hv * dv), hv * dk * dv}, 1);
    }
  }
  return s;
}

States recurrent_gemma(const json& c) {
  const size_t width = c["lru_width"];
  const size_t cache = (size_t{c["attention_window_size"]} - 1) * size_t{c["num_key_value_heads"]} *
                       size_t{c["head_dim"]};
  States s;
  for (size_t i = 0; i < c["num_hidden_layers"]; ++i) {
    if (c["block_types"][i % c["block_types"].size()] == "attention") {
      s.add({cache, cache}, 1);
    } else {
      s.add({(size_t{c["conv1d_width"]} - 1) * width, width}, 1);
    }
  }
  return s;
}

States lfm2(const json& c) {
  const size_t d = c["hidden_size"], head = d / size_t{c["num_attention_heads"]};
  const size_t cache =
      size_t{c["max_position_embeddings"]} * size_t{c["num_key_value_heads"]} * head;
  States s;
  for (const std::string kind : c["layer_types"]) {
    if (kind == "full_attention") {
      s.add({cache, cache}, 1);
    } else {
      s.add({(size_t{c["conv_L_cache"]} - 1) * d}, 1);
    }
  }
  return s;
}

States xlstm(const json& c) {
  const auto wide = [&](const char* factor) {
    return static_cast<size_t>(std::ceil(double{c["hidden_size"]} * double{c[factor]} / 64) * 64);
  };
  const size_t heads = c["num_heads"], keys = wide("qk_dim_factor");
  States s;
  for (size_t i = 0; i < c["num_hidden_layers"]; ++i) {
    s.add({keys * (wide("v_dim_factor") / heads), keys, heads});
  }
  return s;
}

States yoco(const json& c) {
  const size_t d = c["dim"];
  const size_t cache =
      size_t{c["max_seq_len"]} * size_t{c["n_attn_kv_heads"]} * (d / size_t{c["n_attn_heads"]});
  States s;
  for (size_t i = 0; i < size_t{c["n_layers"]} / 2; ++i) {
    s.add({d * (d / size_t{c["n_self_heads"]})});
  }
  s.add({cache, cache}, 1);
  return s;
}

States fast_weights(const json& c) {
  const size_t d = c["d_model"];
  States s;
  for (size_t i = 0; i < c["n_layers"]; ++i) {
    s.add({2 * size_t{c["nu"]} * d * (d / size_t{c["heads"]})});
  }
  return s;
}

States infini(const json& c) {
  const size_t heads = c["heads"], width = c["dim_head"], keys = heads * width;
  // The longest segment of the pack is shorter than the usual one.
  const size_t segment = 64;
  States s;
  for (size_t i = 0; i < c["depth"]; ++i) {
    s.add({keys * width, keys * width, keys, keys, segment * keys, segment * keys}, 1);
  }
  s.add({1});
  return s;
}

States gtrxl(const json& c) {
  const size_t rows = c["memory_len"], d = c["embedding_dim"];
  const size_t keys = rows * size_t{c["head_num"]} * size_t{c["head_dim"]};
  States s;
  for (size_t i = 0; i < c["layer_num"]; ++i) s.add({rows * d, keys, keys}, 1);
  s.add({rows * d}, 1);
  return s;
}

States feedback(const json& c) {
  const size_t rows = size_t{c["P"]} * size_t{c["d_model"]};
  States s;
  s.add({rows, rows}, 1);
  return s;
}

States aft(const json& c) {
  const size_t d = c["d_model"], past = (size_t{c["local_window_size"]} - 1) * d;
  States s;
  for (size_t i = 0; i < c["n_layers"]; ++i) s.add({past, past, d, d, d}, 1);
  return s;
}

States xlnet(const json& c) {
  const size_t rows = size_t{c["mem_len"]} * size_t{c["d_model"]};
  States s;
  for (size_t i = 0; i < c["n_layer"]; ++i) s.add({rows, rows, rows}, 1);
  return s;
}

States compressive(const json& c) {
  const size_t d = c["d_model"], keys = size_t{c["n_head"]} * size_t{c["d_head"]};
  const size_t rows = c["mem_len"], compressed = c["c_mem_len"], rate = c["compression_rate"];
  States s;
  for (size_t i = 0; i < c["n_layer"]; ++i) {
    s.add({rows * d, rows * keys, rows * keys}, 1);
    s.add({compressed * d, compressed * keys, compressed * keys}, 1);
    if (c["compression"] == "dilated_conv") {
      const size_t span =
          (size_t{c["compression_kernel"]} - 1) * size_t{c["compression_dilation"]} + 1;
      s.add({(span - rate + rate - 1) / rate * rate * d}, 1);
    }
    if (c["compression"] == "most_used") s.add({rows}, 0);
  }
  return s;
}

States adaptive_span(const json& c) {
  const size_t rows = size_t{c["attn_span"]} * size_t{c["hidden_size"]};
  States s;
  for (size_t i = 0; i < c["nb_layers"]; ++i) s.add({rows, rows, rows}, 1);
  return s;
}

States transformer_xl(const json& c) {
  const size_t rows = size_t{c["mem_len"]} * size_t{c["n_head"]} * size_t{c["d_head"]};
  const size_t hidden = size_t{c["mem_len"]} * size_t{c["d_model"]};
  States s;
  for (size_t i = 0; i < c["n_layer"]; ++i) s.add({hidden, rows, rows}, 1);
  // What the last layer gave is a memory too, though nobody reads it.
  s.add({hidden}, 1);
  return s;
}

TEST(StateBytes, AreThoseOfTheFormulas) {
  for (const auto& [pack, formula] : std::vector<std::pair<std::string, States (*)(const json&)>>{
           {"retnet/rn1", retnet},
           {"rwkv/rw2_rescale", rwkv},
           {"rwkv7/r7a", rwkv7},
           {"mamba/mb1", mamba},
           {"mamba2/m2b_limit_bias", mamba2},
           {"qwen3_5_text/qn2_tied", qwen},
           {"recurrent_gemma/rg1", recurrent_gemma},
           {"lfm2/lf2_bias", lfm2},
           {"xlstm/xl2_bias", xlstm},
           {"yoco/yo1_gret", yoco},
           {"labml_fast_weights/fw1", fast_weights},
           {"infini/if2_delta", infini},
           {"gtrxl/gt1", gtrxl},
           {"labml_feedback/fb1_kv", feedback},
           {"labml_aft/af1", aft},
           {"adaptive_span/as1", adaptive_span},
           {"transformer_xl_original/xo1", transformer_xl},
           {"xlnet/xn3_query", xlnet},
           {"compressive_transformer/ct1_conv", compressive},
           {"compressive_transformer/ct2_dilated", compressive},
           {"compressive_transformer/ct5_most_used", compressive}}) {
    SCOPED_TRACE(pack);
    const json config = json::parse(std::ifstream(golden() / pack / "config.json"));
    const std::string path = golden_model(pack, {"--weights", "f32", "--activations", "f32"});
    const auto model = oxb::Model::open(path.c_str());
    ASSERT_TRUE(model) << model.status().text();
    const auto plan = model->plan();
    ASSERT_TRUE(plan) << plan.status().text();
    EXPECT_EQ(plan->state_bytes, formula(config).bytes());
  }
}

}  // namespace
}  // namespace oxbow::testing
