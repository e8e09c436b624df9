#include "engine/config/fields.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "engine/config/config_io.h"
#include "engine/config/values.h"

namespace stacklab {
namespace {

TEST(Fields, EveryFieldIsDescribedOnce) {
  RunConfig config;
  std::set<std::string> keys;
  for (const Field& field : fields_of(config)) {
    EXPECT_TRUE(keys.insert(field.key).second) << field.key;
    EXPECT_FALSE(field.help.empty()) << field.key;
    EXPECT_LT(field.rules.min, field.rules.max) << field.key;
    EXPECT_TRUE(check_value(field)) << field.key << ": the default must keep the rules";
  }
  EXPECT_EQ(keys.size(), field_infos().size());
}

// A struct's bytes all belong to some field: a member without a line in the list would be found here.
TEST(Fields, NoMemberIsForgotten) {
  RunConfig config;
  std::size_t bytes = 0;
  for (const Field& field : fields_of(config))
    bytes += std::visit([](const auto* value) { return sizeof *value; }, field.value);
  EXPECT_LE(bytes, sizeof config);
  EXPECT_LT(sizeof config - bytes, 8u * 6) << "padding after the booleans, and nothing else";
}

TEST(Fields, IdentityAndOperational) {
  for (const FieldInfo& info : field_infos()) {
    const bool operational = info.key == "name" || info.key.starts_with("run.");
    EXPECT_EQ(info.identity, !operational) << info.key;
  }
}

TEST(Fields, InfosCarryDefaults) {
  for (const FieldInfo& info : field_infos()) {
    if (info.key == "model.d_model") {
      EXPECT_EQ(info.type, "integer");
      EXPECT_EQ(std::get<std::int64_t>(info.default_value), 512);
    }
    if (info.key == "optim.schedule.shape") {
      EXPECT_EQ(info.type, "text");
      EXPECT_EQ(info.rules.choices.size(), 3u);
    }
  }
}

// The largest sizes that the list allows keep the engine's products inside 63 bits.
TEST(Fields, LargestModelDoesNotOverflow) {
  std::map<std::string, double> most;
  for (const FieldInfo& info : field_infos()) most[info.key] = info.rules.max;
  const double heads = most["model.n_heads"] * most["model.head_dim"];
  const double layer = most["model.d_model"] * 4 * heads + 3 * most["model.d_model"] * most["model.intermediate"];
  EXPECT_LT(6 * most["model.n_layers"] * layer, std::exp2(62.0));
  EXPECT_LT(6 * most["model.n_layers"] * most["model.max_seq_len"] * heads, std::exp2(62.0));
  EXPECT_LT(6 * most["model.vocab_size"] * most["model.d_model"], std::exp2(62.0));
  EXPECT_LT(2 * most["model.n_layers"] * heads * 8 * most["model.max_seq_len"], std::exp2(64.0));
}

}  // namespace
}  // namespace stacklab
