// The embedded models, sorted by name: a row each.
#pragma once

#include "export/onnx_builder.h"

namespace fusewise::zoo {

OnnxBuilder bert(bool tiny);
OnnxBuilder efficientnet_b0(bool tiny);
OnnxBuilder gpt2_decode(bool tiny);
OnnxBuilder gpt2_prefill(bool tiny);
OnnxBuilder mobilenet_v2(bool tiny);
OnnxBuilder mobilenet_v3_large(bool tiny);
OnnxBuilder resnet50(bool tiny);
OnnxBuilder unet(bool tiny);

struct Row {
  const char* name;
  OnnxBuilder (*build)(bool tiny);
  bool tiny;
  const char* description;
};

inline constexpr Row rows[] = {
    {"bert_base", bert, false, "text encoder, 12 layers of 768, batch and sequence symbolic"},
    {"bert_base_tiny", bert, true, "the same with 2 layers of 32"},
    {"efficientnet_b0", efficientnet_b0, false,
     "image classifier with squeeze-and-excitation and SiLU, 224 x 224"},
    {"efficientnet_b0_tiny", efficientnet_b0, true, "the same with few channels, 32 x 32"},
    {"gpt2_decode", gpt2_decode, false,
     "one step of a text decoder, 12 layers of 768, past symbolic, caches in and out"},
    {"gpt2_decode_tiny", gpt2_decode, true, "the same with 2 layers of 32"},
    {"gpt2_prefill", gpt2_prefill, false,
     "a text decoder over a whole prompt, 12 layers of 768, sequence symbolic"},
    {"gpt2_prefill_tiny", gpt2_prefill, true, "the same with 2 layers of 32"},
    {"mobilenet_v2", mobilenet_v2, false, "image classifier of inverted residuals, 224 x 224"},
    {"mobilenet_v2_tiny", mobilenet_v2, true, "the same with few channels, 32 x 32"},
    {"mobilenet_v3_large", mobilenet_v3_large, false,
     "image classifier with HardSwish and HardSigmoid, 224 x 224"},
    {"mobilenet_v3_large_tiny", mobilenet_v3_large, true, "the same with few channels, 32 x 32"},
    {"resnet50", resnet50, false, "image classifier with batch normalisation, 224 x 224"},
    {"resnet50_tiny", resnet50, true, "the same with few channels and 4 blocks, 32 x 32"},
    {"unet", unet, false, "image segmentation, transposed convolutions, 128 x 128"},
    {"unet_tiny", unet, true, "the same with few channels, 16 x 16"},
};

}  // namespace fusewise::zoo
