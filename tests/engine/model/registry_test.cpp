// Which mixer and FFN a layer gets, and the sizes that follow.
#include <gtest/gtest.h>

#include "engine/model/counts.h"
#include "engine/model/stack.h"
#include "engine/model/sublayer.h"

namespace stacklab {
namespace {

TEST(Registry, NamesWhatItCannotMakeAndWhatItCan) {
  ModelConfig c;
  EXPECT_TRUE(check_layers(c));
  c.mixer = "mla";
  const Status mixer = check_layers(c);
  ASSERT_FALSE(mixer);
  EXPECT_NE(mixer.error().message().find("model.mixer: mla is not in this build"), std::string::npos);
  EXPECT_NE(mixer.error().message().find("gqa"), std::string::npos);
  c.mixer = "gqa", c.ffn = "moe";
  const Status ffn = check_layers(c);
  ASSERT_FALSE(ffn);
  EXPECT_NE(ffn.error().message().find("model.ffn: moe is not in this build"), std::string::npos);
}

TEST(Registry, AHybridOfAttentionAndAttentionIsAttention) {
  ModelConfig plain, hybrid;
  hybrid.attn_every = 4;
  EXPECT_TRUE(check_layers(hybrid));
  EXPECT_EQ(count_parameters(hybrid).total, count_parameters(plain).total);
  EXPECT_EQ(kv_bytes_per_token(hybrid), kv_bytes_per_token(plain));
}

// What the sizes say is what the trunk declares, for every pair that can be made.
TEST(Registry, SizesAreThoseOfTheDeclaredParameters) {
  for (const SublayerKind* mixer : mixers())
    for (const SublayerKind* ffn : ffns())
      for (const bool tied : {true, false})
        for (const bool qk_norm : {true, false})
          for (const DType storage : {DType::f32, DType::f64, DType::bf16}) {
            ModelConfig c;
            c.vocab_size = 50, c.d_model = 24, c.n_layers = 3, c.n_heads = 4, c.n_kv_heads = 2, c.head_dim = 6;
            c.intermediate = 40, c.mixer = mixer->name, c.ffn = ffn->name, c.tie_embeddings = tied, c.qk_norm = qk_norm;
            ProgramSet set;
            const StackModel model(c, storage, 32, set);
            const ModelCounts counts = count_parameters(c);
            std::int64_t matrices = 0, listed = 0;
            for (const Parameter& p : model.parameters().parameters) {
              listed += p.view.size();
              if (p.kind == ParameterKind::matrix) matrices += p.view.size();
            }
            EXPECT_EQ(model.parameters().count(), counts.total);
            EXPECT_EQ(listed, counts.total);
            EXPECT_EQ(matrices, counts.hidden_matrices);
          }
}

// Mixed precision: f32 masters of everything that products read, and of nothing else a copy.
TEST(Registry, OnlyOperandsOfProductsHaveCopies) {
  for (const bool tied : {true, false}) {
    ModelConfig c;
    c.vocab_size = 50, c.d_model = 24, c.n_layers = 2, c.n_heads = 4, c.n_kv_heads = 2, c.head_dim = 6;
    c.intermediate = 40, c.tie_embeddings = tied;
    ProgramSet set;
    const StackModel model(c, DType::bf16, 32, set);
    for (const ParameterBuffer& b : model.parameters().buffers) {
      EXPECT_EQ(b.master.dtype, DType::f32);
      const std::string name = set.buffers()[static_cast<std::size_t>(b.value.place.buffer)].name;
      const bool looked_up_only = name == "tok_emb.weight" && !tied;
      EXPECT_EQ(b.is_copy(), b.kind != ParameterKind::gain && !looked_up_only) << name;
      EXPECT_EQ(b.value.dtype, b.is_copy() ? DType::bf16 : DType::f32) << name;
    }
  }
}

}  // namespace
}  // namespace stacklab
