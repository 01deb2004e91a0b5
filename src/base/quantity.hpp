/// Numbers with units, read and printed without loss: parse(print(x)) == x for every x.
/// Every parse function throws InputError with one line that says what was expected and found;
/// the caller adds which file and key.
#pragma once
#include <moehub/units.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace moehub {

Ps parse_time(std::string_view text);           ///< "250 ns"
Bytes parse_bytes(std::string_view text);       ///< "128 B", "64 KB" (1000), "60 MiB" (1024)
double parse_rate(std::string_view text);       ///< bytes/s: "450 GB/s", "400 Gb/s" (bits)
double parse_flops(std::string_view text);      ///< FLOP/s: "989 TFLOP/s"
double parse_frequency(std::string_view text);  ///< Hz: "1980 MHz"
std::int64_t parse_count(std::string_view text);
double parse_number(std::string_view text);

std::string print_time(Ps value);
std::string print_bytes(Bytes value);
std::string print_rate(double value);
std::string print_flops(double value);
std::string print_frequency(double value);
std::string print_number(double value);

/// Text of unknown origin made fit for one line of an error message: in quotes, control characters
/// and broken UTF-8 escaped, long text cut.
std::string quoted(std::string_view text);

}  // namespace moehub
