#include "converter/formats/gguf_names.h"

namespace oxbow::convert {
namespace {

using Layout = GgufLayout;
constexpr bool kOptional = false;

constexpr GgufName kGpt2Outer[] = {
    {kGgufWords, "transformer.wte.weight"},
    {"position_embd.weight", "transformer.wpe.weight"},
    {"output_norm.weight", "transformer.ln_f.weight"},
    {"output_norm.bias", "transformer.ln_f.bias"},
    {kGgufHead, "lm_head.weight", Layout::kSame, kOptional},
};
constexpr GgufName kGpt2Inner[] = {
    {"attn_norm.weight", "ln_1.weight"},
    {"attn_norm.bias", "ln_1.bias"},
    {"attn_qkv.weight", "attn.c_attn.weight", Layout::kTransposed},
    {"attn_qkv.bias", "attn.c_attn.bias"},
    {"attn_output.weight", "attn.c_proj.weight", Layout::kTransposed},
    {"attn_output.bias", "attn.c_proj.bias"},
    {"ffn_norm.weight", "ln_2.weight"},
    {"ffn_norm.bias", "ln_2.bias"},
    {"ffn_up.weight", "mlp.c_fc.weight", Layout::kTransposed},
    {"ffn_up.bias", "mlp.c_fc.bias"},
    {"ffn_down.weight", "mlp.c_proj.weight", Layout::kTransposed},
    {"ffn_down.bias", "mlp.c_proj.bias"},
};

constexpr GgufName kLlamaOuter[] = {
    {kGgufWords, "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {kGgufHead, "lm_head.weight", Layout::kSame, kOptional},
};
constexpr GgufName kLlamaInner[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight", Layout::kQueryPairs},
    {"attn_q.bias", "self_attn.q_proj.bias", Layout::kQueryPairs, kOptional},
    {"attn_k.weight", "self_attn.k_proj.weight", Layout::kKeyPairs},
    {"attn_k.bias", "self_attn.k_proj.bias", Layout::kKeyPairs, kOptional},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_v.bias", "self_attn.v_proj.bias", Layout::kSame, kOptional},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"attn_output.bias", "self_attn.o_proj.bias", Layout::kSame, kOptional},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_gate.bias", "mlp.gate_proj.bias", Layout::kSame, kOptional},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_up.bias", "mlp.up_proj.bias", Layout::kSame, kOptional},
    {"ffn_down.weight", "mlp.down_proj.weight"},
    {"ffn_down.bias", "mlp.down_proj.bias", Layout::kSame, kOptional},
};

constexpr GgufName kQwen2Inner[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_q.bias", "self_attn.q_proj.bias"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_k.bias", "self_attn.k_proj.bias"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
};
constexpr GgufName kQwen3Inner[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_q.bias", "self_attn.q_proj.bias", Layout::kSame, kOptional},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_k.bias", "self_attn.k_proj.bias", Layout::kSame, kOptional},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_v.bias", "self_attn.v_proj.bias", Layout::kSame, kOptional},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"attn_output.bias", "self_attn.o_proj.bias", Layout::kSame, kOptional},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
};
constexpr GgufName kPhi3Inner[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_qkv.weight", "self_attn.qkv_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_up.weight", "mlp.gate_up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
};

constexpr GgufName kGemma3Outer[] = {
    {kGgufWords, "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight", Layout::kPlusOne},
    {kGgufHead, "lm_head.weight", Layout::kSame, kOptional},
};
constexpr GgufName kGemma3Inner[] = {
    {"attn_norm.weight", "input_layernorm.weight", Layout::kPlusOne},
    {"post_attention_norm.weight", "post_attention_layernorm.weight", Layout::kPlusOne},
    {"ffn_norm.weight", "pre_feedforward_layernorm.weight", Layout::kPlusOne},
    {"post_ffw_norm.weight", "post_feedforward_layernorm.weight", Layout::kPlusOne},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight", Layout::kPlusOne},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight", Layout::kPlusOne},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
};

constexpr GgufName kPhi2Outer[] = {
    {kGgufWords, "model.embed_tokens.weight"},
    {"output_norm.weight", "model.final_layernorm.weight"},
    {"output_norm.bias", "model.final_layernorm.bias"},
    {kGgufHead, "lm_head.weight"},
    {"output.bias", "lm_head.bias"},
};
constexpr GgufName kPhi2Inner[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_norm.bias", "input_layernorm.bias"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_q.bias", "self_attn.q_proj.bias"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_k.bias", "self_attn.k_proj.bias"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
    {"attn_output.weight", "self_attn.dense.weight"},
    {"attn_output.bias", "self_attn.dense.bias"},
    {"ffn_up.weight", "mlp.fc1.weight"},
    {"ffn_up.bias", "mlp.fc1.bias"},
    {"ffn_down.weight", "mlp.fc2.weight"},
    {"ffn_down.bias", "mlp.fc2.bias"},
};

constexpr GgufName kGptNeoxOuter[] = {
    {kGgufWords, "gpt_neox.embed_in.weight"},
    {"output_norm.weight", "gpt_neox.final_layer_norm.weight"},
    {"output_norm.bias", "gpt_neox.final_layer_norm.bias"},
    {kGgufHead, "embed_out.weight", Layout::kSame, kOptional},
};
constexpr GgufName kGptNeoxInner[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_norm.bias", "input_layernorm.bias"},
    {"attn_qkv.weight", "attention.query_key_value.weight", Layout::kPackedTogether},
    {"attn_qkv.bias", "attention.query_key_value.bias", Layout::kPackedTogether},
    {"attn_output.weight", "attention.dense.weight"},
    {"attn_output.bias", "attention.dense.bias"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_norm.bias", "post_attention_layernorm.bias"},
    {"ffn_up.weight", "mlp.dense_h_to_4h.weight"},
    {"ffn_up.bias", "mlp.dense_h_to_4h.bias"},
    {"ffn_down.weight", "mlp.dense_4h_to_h.weight"},
    {"ffn_down.bias", "mlp.dense_4h_to_h.bias"},
};

constexpr GgufName kBloomOuter[] = {
    {kGgufWords, "transformer.word_embeddings.weight"},
    {"token_embd_norm.weight", "transformer.word_embeddings_layernorm.weight"},
    {"token_embd_norm.bias", "transformer.word_embeddings_layernorm.bias"},
    {"output_norm.weight", "transformer.ln_f.weight"},
    {"output_norm.bias", "transformer.ln_f.bias"},
    {kGgufHead, "lm_head.weight", Layout::kSame, kOptional},
};
constexpr GgufName kBloomInner[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_norm.bias", "input_layernorm.bias"},
    {"attn_qkv.weight", "self_attention.query_key_value.weight", Layout::kPackedTogether},
    {"attn_qkv.bias", "self_attention.query_key_value.bias", Layout::kPackedTogether},
    {"attn_output.weight", "self_attention.dense.weight"},
    {"attn_output.bias", "self_attention.dense.bias"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_norm.bias", "post_attention_layernorm.bias"},
    {"ffn_up.weight", "mlp.dense_h_to_4h.weight"},
    {"ffn_up.bias", "mlp.dense_h_to_4h.bias"},
    {"ffn_down.weight", "mlp.dense_4h_to_h.weight"},
    {"ffn_down.bias", "mlp.dense_4h_to_h.bias"},
};

constexpr GgufName kMptOuter[] = {
    {kGgufWords, "transformer.wte.weight"},
    {"output_norm.weight", "transformer.norm_f.weight"},
    {kGgufHead, "lm_head.weight", Layout::kSame, kOptional},
};
constexpr GgufName kMptInner[] = {
    {"attn_norm.weight", "norm_1.weight"},          {"attn_qkv.weight", "attn.Wqkv.weight"},
    {"attn_output.weight", "attn.out_proj.weight"}, {"ffn_norm.weight", "norm_2.weight"},
    {"ffn_up.weight", "ffn.up_proj.weight"},        {"ffn_down.weight", "ffn.down_proj.weight"},
};

constexpr GgufName kMambaOuter[] = {
    {kGgufWords, "backbone.embeddings.weight"},
    {"output_norm.weight", "backbone.norm_f.weight"},
    {kGgufHead, "lm_head.weight", Layout::kSame, kOptional},
};
constexpr GgufName kMambaInner[] = {
    {"attn_norm.weight", "norm.weight"},
    {"ssm_in.weight", "mixer.in_proj.weight"},
    {"ssm_in.bias", "mixer.in_proj.bias", Layout::kSame, kOptional},
    {"ssm_conv1d.weight", "mixer.conv1d.weight", Layout::kTaps},
    {"ssm_conv1d.bias", "mixer.conv1d.bias", Layout::kSame, kOptional},
    {"ssm_x.weight", "mixer.x_proj.weight"},
    {"ssm_dt.weight", "mixer.dt_proj.weight"},
    {"ssm_dt.bias", "mixer.dt_proj.bias"},
    {"ssm_a", "mixer.A_log", Layout::kMinusExp},
    {"ssm_d", "mixer.D"},
    {"ssm_out.weight", "mixer.out_proj.weight"},
    {"ssm_out.bias", "mixer.out_proj.bias", Layout::kSame, kOptional},
};
constexpr GgufName kMamba2Inner[] = {
    {"attn_norm.weight", "norm.weight"},
    {"ssm_in.weight", "mixer.in_proj.weight"},
    {"ssm_in.bias", "mixer.in_proj.bias", Layout::kSame, kOptional},
    {"ssm_conv1d.weight", "mixer.conv1d.weight", Layout::kTaps},
    {"ssm_conv1d.bias", "mixer.conv1d.bias", Layout::kSame, kOptional},
    {"ssm_dt.bias", "mixer.dt_bias"},
    // [heads, 1] in the file, [heads] to begin with.
    {"ssm_a", "mixer.A_log", Layout::kMinusExpFlat},
    {"ssm_d", "mixer.D", Layout::kFlat},
    {"ssm_norm.weight", "mixer.norm.weight", Layout::kFlat},
    {"ssm_out.weight", "mixer.out_proj.weight"},
    {"ssm_out.bias", "mixer.out_proj.bias", Layout::kSame, kOptional},
};

constexpr GgufName kLfm2Outer[] = {
    {kGgufWords, "model.embed_tokens.weight"},
    // Of the last norm, which the original calls that of the embeddings.
    {"token_embd_norm.weight", "model.embedding_norm.weight"},
    {kGgufHead, "lm_head.weight", Layout::kSame, kOptional},
};
constexpr GgufName kLfm2Inner[] = {
    {"attn_norm.weight", "operator_norm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight", Layout::kSame, kOptional},
    {"attn_q_norm.weight", "self_attn.q_layernorm.weight", Layout::kSame, kOptional},
    {"attn_k.weight", "self_attn.k_proj.weight", Layout::kSame, kOptional},
    {"attn_k_norm.weight", "self_attn.k_layernorm.weight", Layout::kSame, kOptional},
    {"attn_v.weight", "self_attn.v_proj.weight", Layout::kSame, kOptional},
    {"attn_output.weight", "self_attn.out_proj.weight", Layout::kSame, kOptional},
    {"shortconv.in_proj.weight", "conv.in_proj.weight", Layout::kSame, kOptional},
    {"shortconv.conv.weight", "conv.conv.weight", Layout::kTaps, kOptional},
    {"shortconv.out_proj.weight", "conv.out_proj.weight", Layout::kSame, kOptional},
    {"ffn_norm.weight", "ffn_norm.weight"},
    {"ffn_gate.weight", "feed_forward.w1.weight"},
    {"ffn_up.weight", "feed_forward.w3.weight"},
    {"ffn_down.weight", "feed_forward.w2.weight"},
};

constexpr GgufName kRwkv7Outer[] = {
    {kGgufWords, "emb.weight"},
    {"token_embd_norm.weight", "blocks.0.ln0.weight"},
    {"token_embd_norm.bias", "blocks.0.ln0.bias"},
    {"output_norm.weight", "ln_out.weight"},
    {"output_norm.bias", "ln_out.bias"},
    {kGgufHead, "head.weight"},
};
constexpr GgufName kRwkv7Inner[] = {
    {"attn_norm.weight", "ln1.weight"},
    {"attn_norm.bias", "ln1.bias"},
    {"attn_norm_2.weight", "ln2.weight"},
    {"attn_norm_2.bias", "ln2.bias"},
    {"time_mix_lerp_fused.weight", "att.x_", Layout::kSixVectors},
    {"time_mix_w0.weight", "att.w0"},
    {"time_mix_w1.weight", "att.w1", Layout::kTransposed},
    {"time_mix_w2.weight", "att.w2", Layout::kTransposed},
    {"time_mix_a0.weight", "att.a0"},
    {"time_mix_a1.weight", "att.a1", Layout::kTransposed},
    {"time_mix_a2.weight", "att.a2", Layout::kTransposed},
    // Of the first layer without meaning.
    {"time_mix_v0.weight", "att.v0", Layout::kSame, kOptional},
    {"time_mix_v1.weight", "att.v1", Layout::kTransposed, kOptional},
    {"time_mix_v2.weight", "att.v2", Layout::kTransposed, kOptional},
    {"time_mix_g1.weight", "att.g1", Layout::kTransposed},
    {"time_mix_g2.weight", "att.g2", Layout::kTransposed},
    {"time_mix_k_k.weight", "att.k_k"},
    {"time_mix_k_a.weight", "att.k_a"},
    {"time_mix_r_k.weight", "att.r_k", Layout::kHeads},
    {"time_mix_key.weight", "att.key.weight"},
    {"time_mix_value.weight", "att.value.weight"},
    {"time_mix_receptance.weight", "att.receptance.weight"},
    {"time_mix_ln.weight", "att.ln_x.weight"},
    {"time_mix_ln.bias", "att.ln_x.bias"},
    {"time_mix_output.weight", "att.output.weight"},
    {"channel_mix_lerp_k.weight", "ffn.x_k", Layout::kFlat},
    {"channel_mix_key.weight", "ffn.key.weight"},
    {"channel_mix_value.weight", "ffn.value.weight"},
};

constexpr GgufName kBertOuter[] = {
    {kGgufWords, "embeddings.word_embeddings.weight"},
    {"position_embd.weight", "embeddings.position_embeddings.weight"},
    {"token_types.weight", "embeddings.token_type_embeddings.weight"},
    {"token_embd_norm.weight", "embeddings.LayerNorm.weight"},
    {"token_embd_norm.bias", "embeddings.LayerNorm.bias"},
    {"cls.weight", "classifier.dense.weight", Layout::kSame, kOptional},
    {"cls.bias", "classifier.dense.bias", Layout::kSame, kOptional},
    {"cls.output.weight", "classifier.out_proj.weight", Layout::kSame, kOptional},
    {"cls.output.bias", "classifier.out_proj.bias", Layout::kSame, kOptional},
};
constexpr GgufName kBertInner[] = {
    {"attn_q.weight", "attention.self.query.weight"},
    {"attn_q.bias", "attention.self.query.bias"},
    {"attn_k.weight", "attention.self.key.weight"},
    {"attn_k.bias", "attention.self.key.bias"},
    {"attn_v.weight", "attention.self.value.weight"},
    {"attn_v.bias", "attention.self.value.bias"},
    {"attn_output.weight", "attention.output.dense.weight"},
    {"attn_output.bias", "attention.output.dense.bias"},
    {"attn_output_norm.weight", "attention.output.LayerNorm.weight"},
    {"attn_output_norm.bias", "attention.output.LayerNorm.bias"},
    {"ffn_up.weight", "intermediate.dense.weight"},
    {"ffn_up.bias", "intermediate.dense.bias"},
    {"ffn_down.weight", "output.dense.weight"},
    {"ffn_down.bias", "output.dense.bias"},
    {"layer_output_norm.weight", "output.LayerNorm.weight"},
    {"layer_output_norm.bias", "output.LayerNorm.bias"},
};
constexpr GgufName kDistilBertOuter[] = {
    {kGgufWords, "embeddings.word_embeddings.weight"},
    {"position_embd.weight", "embeddings.position_embeddings.weight"},
    {"token_embd_norm.weight", "embeddings.LayerNorm.weight"},
    {"token_embd_norm.bias", "embeddings.LayerNorm.bias"},
    {"cls.weight", "pre_classifier.weight", Layout::kSame, kOptional},
    {"cls.bias", "pre_classifier.bias", Layout::kSame, kOptional},
    {"cls.output.weight", "classifier.weight", Layout::kSame, kOptional},
    {"cls.output.bias", "classifier.bias", Layout::kSame, kOptional},
};
constexpr GgufName kDistilBertInner[] = {
    {"attn_q.weight", "attention.q_lin.weight"},
    {"attn_q.bias", "attention.q_lin.bias"},
    {"attn_k.weight", "attention.k_lin.weight"},
    {"attn_k.bias", "attention.k_lin.bias"},
    {"attn_v.weight", "attention.v_lin.weight"},
    {"attn_v.bias", "attention.v_lin.bias"},
    {"attn_output.weight", "attention.out_lin.weight"},
    {"attn_output.bias", "attention.out_lin.bias"},
    {"attn_output_norm.weight", "sa_layer_norm.weight"},
    {"attn_output_norm.bias", "sa_layer_norm.bias"},
    {"ffn_up.weight", "ffn.lin1.weight"},
    {"ffn_up.bias", "ffn.lin1.bias"},
    {"ffn_down.weight", "ffn.lin2.weight"},
    {"ffn_down.bias", "ffn.lin2.bias"},
    {"layer_output_norm.weight", "output_layer_norm.weight"},
    {"layer_output_norm.bias", "output_layer_norm.bias"},
};

}  // namespace

const GgufNames kBertNames = {kBertOuter, "encoder.layer.", kBertInner};
const GgufNames kBloomNames = {kBloomOuter, "transformer.h.", kBloomInner};
const GgufNames kDistilBertNames = {kDistilBertOuter, "transformer.layer.", kDistilBertInner};
const GgufNames kGemma3Names = {kGemma3Outer, "model.layers.", kGemma3Inner};
const GgufNames kGpt2Names = {kGpt2Outer, "transformer.h.", kGpt2Inner};
const GgufNames kGptNeoxNames = {kGptNeoxOuter, "gpt_neox.layers.", kGptNeoxInner};
const GgufNames kLfm2Names = {kLfm2Outer, "model.layers.", kLfm2Inner};
const GgufNames kLlamaNames = {kLlamaOuter, "model.layers.", kLlamaInner};
const GgufNames kMambaNames = {kMambaOuter, "backbone.layers.", kMambaInner};
const GgufNames kMamba2Names = {kMambaOuter, "backbone.layers.", kMamba2Inner};
const GgufNames kMptNames = {kMptOuter, "transformer.blocks.", kMptInner};
const GgufNames kPhi2Names = {kPhi2Outer, "model.layers.", kPhi2Inner};
const GgufNames kPhi3Names = {kLlamaOuter, "model.layers.", kPhi3Inner};
const GgufNames kQwen2Names = {kLlamaOuter, "model.layers.", kQwen2Inner};
const GgufNames kQwen3Names = {kLlamaOuter, "model.layers.", kQwen3Inner};
const GgufNames kRwkv7Names = {kRwkv7Outer, "blocks.", kRwkv7Inner};

}  // namespace oxbow::convert
