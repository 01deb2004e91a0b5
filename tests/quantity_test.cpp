// Are numbers with units read and printed without loss, and is everything else refused clearly?
#include "base/quantity.hpp"

#include "base/nearest.hpp"
#include "error_of.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace moehub::quantity_test {
namespace {

template <class Parse>
std::string error_of(Parse parse, std::string_view text) {
    return moehub::error_of([&] { parse(text); });
}

TEST(Quantity, reads_every_unit_of_time) {
    EXPECT_EQ(parse_time("7 ps"), 7);
    EXPECT_EQ(parse_time("250 ns"), 250 * kNs);
    EXPECT_EQ(parse_time("8.4 us"), 8'400'000);
    EXPECT_EQ(parse_time("8.4 µs"), 8'400'000);
    EXPECT_EQ(parse_time("8.4μs"), 8'400'000);
    EXPECT_EQ(parse_time("0.001 ms"), kUs);
    EXPECT_EQ(parse_time("1e-3 s"), kMs);
    EXPECT_EQ(parse_time("  0 ns "), 0);
}

TEST(Quantity, reads_decimal_and_binary_bytes) {
    EXPECT_EQ(parse_bytes("128 B"), 128);
    EXPECT_EQ(parse_bytes("64 KB"), 64'000);
    EXPECT_EQ(parse_bytes("60 MiB"), 60LL << 20);
    EXPECT_EQ(parse_bytes("0.5 KiB"), 512);
    EXPECT_EQ(parse_bytes("80 GB"), 80'000'000'000);
}

TEST(Quantity, reads_rates_in_bytes_and_bits) {
    EXPECT_EQ(parse_rate("450 GB/s"), 450e9);
    EXPECT_EQ(parse_rate("400 Gb/s"), 50e9);
    EXPECT_EQ(parse_rate("4.8 TB/s"), 4.8e12);
    EXPECT_EQ(parse_flops("989.4 TFLOP/s"), 989.4e12);
    EXPECT_EQ(parse_frequency("1980 MHz"), 1980e6);
    EXPECT_EQ(parse_count("4096"), 4096);
    EXPECT_EQ(parse_number("-0.125"), -0.125);
}

TEST(Quantity, prints_the_unit_a_person_would_choose) {
    EXPECT_EQ(print_time(250 * kNs), "250 ns");
    EXPECT_EQ(print_time(8'400'000), "8.4 us");
    EXPECT_EQ(print_time(936'250), "936.25 ns");
    EXPECT_EQ(print_time(0), "0 ps");
    EXPECT_EQ(print_bytes(128), "128 B");
    EXPECT_EQ(print_bytes(4096), "4 KiB");
    EXPECT_EQ(print_bytes(80'000'000'000), "80 GB");
    EXPECT_EQ(print_bytes(4LL << 20), "4 MiB");
    EXPECT_EQ(print_rate(450e9), "450 GB/s");
    EXPECT_EQ(print_rate(4.8e12), "4.8 TB/s");
    EXPECT_EQ(print_rate(0), "0 B/s");
    EXPECT_EQ(print_flops(989.4e12), "989.4 TFLOP/s");
    EXPECT_EQ(print_frequency(1.98e9), "1.98 GHz");
    EXPECT_EQ(print_number(0.032), "0.032");
}

TEST(Quantity, refuses_a_wrong_unit_in_one_line) {
    EXPECT_EQ(error_of(parse_time, "250 GB"),
              "expected a time such as \"250 ns\" (ps, ns, us, ms, s), found \"250 GB\"");
    EXPECT_EQ(error_of(parse_bytes, "5 ns"),
              "expected a size such as \"128 B\" (B, KB, MB, GB, TB, KiB, MiB, GiB, TiB), "
              "found \"5 ns\"");
    EXPECT_EQ(error_of(parse_rate, "450 GB"),
              "expected a rate such as \"450 GB/s\" or \"400 Gb/s\" (B/s or b/s; K, M, G, T), "
              "found \"450 GB\"");
    EXPECT_EQ(error_of(parse_flops, "989 T"),
              "expected a compute rate such as \"989 TFLOP/s\" (FLOP/s; K, M, G, T, P), "
              "found \"989 T\"");
    EXPECT_EQ(error_of(parse_frequency, "fast"),
              "expected a frequency such as \"1980 MHz\" (Hz, kHz, MHz, GHz), found \"fast\"");
    EXPECT_EQ(error_of(parse_count, "2.5"), "expected a whole number, found \"2.5\"");
    EXPECT_EQ(error_of(parse_number, "a\nb"), "expected a number, found \"a\\nb\"");
}

TEST(Quantity, refuses_what_no_int64_or_double_holds) {
    EXPECT_EQ(error_of(parse_time, "0.5 ps"),
              "expected a whole number of picoseconds below 9.2e18, found \"0.5 ps\"");
    EXPECT_EQ(error_of(parse_bytes, "9e18 KB"),
              "expected a whole number of bytes below 9.2e18, found \"9e18 KB\"");
    for (const char* text : {"nan", "inf", "-inf", "1e999", "1e99999999999", "0x10", "", " ", ".",
                             "e5", "99999999999999999999", "1e-2147483648", "--1", "1e"})
        EXPECT_NE(error_of(parse_number, text), "accepted") << text;
}

RC_GTEST_PROP(Quantity, integers_survive_a_round_trip, (std::int64_t value)) {
    RC_PRE(value > std::numeric_limits<std::int64_t>::min());
    RC_ASSERT(parse_time(print_time(value)) == value);
    RC_ASSERT(parse_bytes(print_bytes(value)) == value);
}

RC_GTEST_PROP(Quantity, doubles_survive_a_round_trip, (std::int64_t mantissa)) {
    const int exponent = *rc::gen::inRange(-300, 300);
    const double value = std::ldexp(static_cast<double>(mantissa), exponent);
    RC_ASSERT(parse_number(print_number(value)) == value);
    RC_ASSERT(parse_rate(print_rate(value)) == value);
    RC_ASSERT(parse_flops(print_flops(value)) == value);
}

RC_GTEST_PROP(Quantity, any_text_is_read_or_refused, (const std::string& text)) {
    error_of(parse_time, text);
    error_of(parse_bytes, text);
    error_of(parse_rate, text);
    error_of(parse_number, text);
}

TEST(Nearest, finds_the_misspelt_name) {
    const std::vector<std::string> known{"link.bandwidth", "link.latency", "nodes"};
    EXPECT_EQ(nearest("link.bandwith", known), "link.bandwidth");
    EXPECT_EQ(nearest("node", known), "nodes");
    EXPECT_EQ(nearest("h200", std::vector<std::string>{"b200", "h200-sxm"}), "h200-sxm");
    EXPECT_EQ(nearest("something else", known), "");
    EXPECT_EQ(did_you_mean("link.latncy", known), "; did you mean \"link.latency\"?");
    EXPECT_EQ(did_you_mean(std::string(100000, 'x'), known), "");
}

}  // namespace
}  // namespace moehub::quantity_test
