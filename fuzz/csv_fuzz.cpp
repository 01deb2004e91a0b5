// Any bytes given to the CSV reader, and its rows to the parsers of measurement files, end in a
// table or in an InputError of one line.
#include "base/csv.hpp"
#include "study/validate_kinds.hpp"

#include <moehub/error.hpp>

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        const auto table = moehub::CsvTable::parse(text, "fuzz.csv");
        for (const auto& one : moehub::parse_cases(table, moehub::file_kind_of(table)))
            if (!(one.measurement.value > 0)) std::abort();
    } catch (const moehub::InputError& error) {
        const std::string_view what = error.what();
        if (!what.starts_with("fuzz.csv:") || what.find('\n') != what.npos) std::abort();
    }
    return 0;
}
