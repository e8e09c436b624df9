#include "engine/base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace stacklab {
namespace {

TEST(Text, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("tarin", "train"), 1);  // a swap of neighbours
  EXPECT_EQ(edit_distance("Train", "train"), 0);
}

TEST(Text, NearestName) {
  const std::vector<std::string> names = {"train", "params", "doctor", "runs", "corpus", "corpora_long_name"};
  EXPECT_EQ(nearest_name("trian", names), "train");
  EXPECT_EQ(nearest_name("param", names), "params");
  EXPECT_EQ(nearest_name("docto", names), "doctor");
  EXPECT_EQ(nearest_name("corpora", names), "corpora_long_name");  // a unique completion
  EXPECT_EQ(nearest_name("xyzzy", names), std::nullopt);
  EXPECT_EQ(nearest_name("", names), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(100'000, 'a'), names), std::nullopt);
  EXPECT_EQ(did_you_mean("trian", names), "did you mean \"train\"?");
  EXPECT_EQ(did_you_mean("xyzzy", names), "");
}

TEST(Text, ShortestNumbersReadBack) {
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(10000.0), "10000");
  EXPECT_EQ(shortest(3e-3), "0.003");
  EXPECT_EQ(shortest(-0.0), "-0");
  EXPECT_EQ(shortest(std::nan("")), "nan");
  EXPECT_EQ(shortest(-std::numeric_limits<double>::infinity()), "-inf");
  for (const double x : {1.0 / 3, 5e-324, 1.7976931348623157e308, 2.8499999999999996, 1e22, 123456789.0})
    EXPECT_EQ(parse_double(shortest(x)), x);
}

TEST(Text, ParsesWholeNumbersOnly) {
  EXPECT_EQ(parse_int("42"), 42);
  EXPECT_EQ(parse_int("-7"), -7);
  for (const char* bad : {"", " 1", "1 ", "1.0", "0x1", "+1", "9223372036854775808", "1e3", "one"})
    EXPECT_EQ(parse_int(bad), std::nullopt) << bad;
  EXPECT_EQ(parse_double("1e-3"), 1e-3);
  for (const char* bad : {"", "1,5", "1.5x", "--1", "1e400"}) EXPECT_EQ(parse_double(bad), std::nullopt) << bad;
}

TEST(Text, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.0 kB");
  EXPECT_EQ(format_bytes(999'949), "999.9 kB");
  EXPECT_EQ(format_bytes(999'999), "1.0 MB");
  EXPECT_EQ(format_bytes(31'457'280), "31.5 MB");
  EXPECT_EQ(format_bytes(24.5e9), "24.5 GB");
}

TEST(Text, Counts) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(950), "950");
  EXPECT_EQ(format_count(999.7), "1.0k");
  EXPECT_EQ(format_count(231'500), "231.5k");
  EXPECT_EQ(format_count(999'999), "1.00 M");
  EXPECT_EQ(format_count(101'353'728), "101.4 M");
  EXPECT_EQ(format_count(6.54e9), "6.54 B");
}

TEST(Text, BytesAreRead) {
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("4294967296"), 4294967296);
  EXPECT_EQ(parse_bytes("4GiB"), std::int64_t{4} << 30);
  EXPECT_EQ(parse_bytes(" 1.5 kB "), 1500);
  EXPECT_EQ(parse_bytes("7 B"), 7);
  EXPECT_EQ(parse_bytes("2MB"), 2'000'000);
  for (const char* wrong : {"", "B", "-1", "nan", "inf", "GiB", "4 GiBs", "1e30", "12x"})
    EXPECT_EQ(parse_bytes(wrong), std::nullopt) << wrong;
}

TEST(Text, Durations) {
  EXPECT_EQ(format_duration(0.4), "0.4 s");
  EXPECT_EQ(format_duration(42.4), "42 s");
  EXPECT_EQ(format_duration(59.6), "1 min 0 s");
  EXPECT_EQ(format_duration(250), "4 min 10 s");
  EXPECT_EQ(format_duration(13 * 3600 + 45 * 60), "13 h 45 min");
  EXPECT_EQ(format_duration(2 * 86400 + 4 * 3600 + 59), "2 d 4 h");
  EXPECT_EQ(format_duration(std::nan("")), "–");
  EXPECT_EQ(format_duration(-1), "–");
}

TEST(Text, Integers) {
  EXPECT_EQ(format_integer(0), "0");
  EXPECT_EQ(format_integer(-999), "-999");
  EXPECT_EQ(format_integer(-1000), "-1,000");
  EXPECT_EQ(format_integer(101'353'728), "101,353,728");
  EXPECT_EQ(format_integer(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(Text, TrimAndSplit) {
  EXPECT_EQ(trim(" \ta b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(split("a..b", '.'), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", '.'), (std::vector<std::string>{""}));
}

}  // namespace
}  // namespace stacklab
