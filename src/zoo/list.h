// The embedded models, sorted by name: a row each.
#pragma once

#include "export/onnx_builder.h"

namespace fusewise::zoo {

OnnxBuilder bert(bool tiny);
OnnxBuilder convnext_t(bool tiny);
OnnxBuilder diffusion_block(bool tiny);
OnnxBuilder dlrm(bool tiny);
OnnxBuilder efficientnet_b0(bool tiny);
OnnxBuilder gpt2_decode(bool tiny);
OnnxBuilder gpt2_prefill(bool tiny);
OnnxBuilder llama_decode(bool tiny);
OnnxBuilder llama_prefill(bool tiny);
OnnxBuilder lstm_tagger(bool tiny);
OnnxBuilder mobilenet_v2(bool tiny);
OnnxBuilder mobilenet_v3_large(bool tiny);
OnnxBuilder resnet50(bool tiny);
OnnxBuilder swin_t(bool tiny);
OnnxBuilder unet(bool tiny);
OnnxBuilder vit_b16(bool tiny);
OnnxBuilder whisper_encoder(bool tiny);

struct Row {
  const char* name;
  OnnxBuilder (*build)(bool tiny);
  bool tiny;
  const char* description;
};

inline constexpr Row rows[] = {
    {"bert_base", bert, false, "text encoder, 12 layers of 768, batch and sequence symbolic"},
    {"bert_base_tiny", bert, true, "the same with 2 layers of 32"},
    {"convnext_t", convnext_t, false,
     "image classifier of depthwise convolutions and channel MLPs, 224 x 224, batch symbolic"},
    {"convnext_t_tiny", convnext_t, true, "the same with 2 stages of few channels, 32 x 32"},
    {"diffusion_block", diffusion_block, false,
     "a block of a diffusion U-Net: time, self and cross attention, upsampling; image and text symbolic"},
    {"diffusion_block_tiny", diffusion_block, true, "the same with 16 channels"},
    {"dlrm", dlrm, false,
     "recommendation: 26 embedding bags, two MLPs, pairwise products; batch and bag symbolic"},
    {"dlrm_tiny", dlrm, true, "the same with 3 small tables"},
    {"efficientnet_b0", efficientnet_b0, false,
     "image classifier with squeeze-and-excitation and SiLU, 224 x 224"},
    {"efficientnet_b0_tiny", efficientnet_b0, true, "the same with few channels, 32 x 32"},
    {"gpt2_decode", gpt2_decode, false,
     "one step of a text decoder, 12 layers of 768, past symbolic, caches in and out"},
    {"gpt2_decode_tiny", gpt2_decode, true, "the same with 2 layers of 32"},
    {"gpt2_prefill", gpt2_prefill, false,
     "a text decoder over a whole prompt, 12 layers of 768, sequence symbolic"},
    {"gpt2_prefill_tiny", gpt2_prefill, true, "the same with 2 layers of 32"},
    {"llama_decode", llama_decode, false,
     "one step of a LLaMA-style decoder, the layers of SmolLM-135M, past symbolic, caches in and out"},
    {"llama_decode_tiny", llama_decode, true, "the same with 2 layers of 32"},
    {"llama_prefill", llama_prefill, false,
     "a LLaMA-style decoder over a whole prompt, the layers of SmolLM-135M, sequence symbolic"},
    {"llama_prefill_tiny", llama_prefill, true, "the same with 2 layers of 32"},
    {"lstm_tagger", lstm_tagger, false, "tags 50 words by a bidirectional LSTM of 200, batch symbolic"},
    {"lstm_tagger_tiny", lstm_tagger, true, "the same with 5 words and a state of 8"},
    {"mobilenet_v2", mobilenet_v2, false, "image classifier of inverted residuals, 224 x 224"},
    {"mobilenet_v2_tiny", mobilenet_v2, true, "the same with few channels, 32 x 32"},
    {"mobilenet_v3_large", mobilenet_v3_large, false,
     "image classifier with HardSwish and HardSigmoid, 224 x 224"},
    {"mobilenet_v3_large_tiny", mobilenet_v3_large, true, "the same with few channels, 32 x 32"},
    {"resnet50", resnet50, false, "image classifier with batch normalisation, 224 x 224"},
    {"resnet50_tiny", resnet50, true, "the same with few channels and 4 blocks, 32 x 32"},
    {"swin_t", swin_t, false, "image classifier of attention in shifted windows, 224 x 224, batch symbolic"},
    {"swin_t_tiny", swin_t, true, "the same with 2 stages of few channels, 32 x 32"},
    {"unet", unet, false, "image segmentation, transposed convolutions, 128 x 128"},
    {"unet_tiny", unet, true, "the same with few channels, 16 x 16"},
    {"vit_b16", vit_b16, false,
     "image classifier, a transformer over patches, as older exporters write it; 224 x 224, batch symbolic"},
    {"vit_b16_tiny", vit_b16, true, "the same with 2 layers of 32, 16 x 16"},
    {"whisper_encoder", whisper_encoder, false,
     "speech encoder, 6 layers of 512 over 30 seconds, batch symbolic"},
    {"whisper_encoder_tiny", whisper_encoder, true, "the same with 2 layers of 32, 22 frames"},
};

}  // namespace fusewise::zoo
