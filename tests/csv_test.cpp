#include "base/csv.hpp"

#include "error_of.hpp"

#include <moehub/error.hpp>

#include <filesystem>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace moehub::csv_test {
namespace {

CsvTable table_of(std::string_view text) {
    return CsvTable::parse(text, "t.csv");
}

std::string parse_error(std::string_view text) {
    return error_of([&] { table_of(text); });
}

TEST(Csv, reads_fields_by_column_name) {
    const auto table = table_of("op,us\ngemm,1.5\nargsort,2\n");
    ASSERT_EQ(table.size(), 2u);
    EXPECT_EQ(table[0].text("op"), "gemm");
    EXPECT_EQ(table[0].positive("us"), 1.5);
    EXPECT_EQ(table[1].integer("us", 0), 2);
    EXPECT_EQ(table[1].line(), 3);
}

TEST(Csv, reads_quotes_and_lines_inside_them) {
    const auto table = table_of("a,b\n\"1,\"\"x\"\"\n2\" , \"\"\n3,4\n");
    EXPECT_EQ(table[0].text("a"), "1,\"x\"\n2");
    EXPECT_FALSE(table[0].has("b"));
    EXPECT_EQ(table[1].line(), 4);
}

TEST(Csv, tolerates_bom_crlf_blanks_and_blank_lines) {
    const auto table = table_of("\xEF\xBB\xBF\r\na , b\r\n\r\n 1 ,\"2\"\r\n \r\n3,4");
    EXPECT_EQ(table.columns(), (std::vector<std::string>{"a", "b"}));
    ASSERT_EQ(table.size(), 2u);
    EXPECT_EQ(table[0].text("a"), "1");
    EXPECT_EQ(table[0].text("b"), "2");
    EXPECT_EQ(table[1].text("b"), "4");
    EXPECT_EQ(table[1].line(), 6);
}

TEST(Csv, a_header_alone_is_a_table_without_rows) {
    EXPECT_EQ(table_of("a,b").size(), 0u);
}

TEST(Csv, bad_structure_names_the_line) {
    EXPECT_EQ(parse_error(""),
              "t.csv:1: the file is empty, allowed: a header row and rows of data");
    EXPECT_EQ(parse_error("\xEF\xBB\xBF\n \n"), parse_error(""));
    EXPECT_EQ(parse_error("a,b\n1,2\n3\n"), "t.csv:3: found 1 fields, the header has 2");
    EXPECT_EQ(parse_error("a,b\n1,2,\n"), "t.csv:2: found 3 fields, the header has 2");
    EXPECT_EQ(parse_error("a,b,a\n"), "t.csv:1: column \"a\" stands twice");
    EXPECT_EQ(parse_error("a,,b\n"), "t.csv:1: column 2 has no name");
    EXPECT_EQ(parse_error("a\n\"x\n\n"), "t.csv:2: a quoted field that never ends");
    EXPECT_EQ(parse_error("a\n\"x\"y\n"), "t.csv:2: text after a closing quote: \"y\"");
    EXPECT_EQ(parse_error("a\nx\"y\n"), "t.csv:2: quote inside an unquoted field \"x\"y\"");
}

TEST(Csv, binary_input_ends_in_one_line) {
    using namespace std::string_view_literals;
    EXPECT_EQ(parse_error("a\n1\n\0"sv), "t.csv:3: found a NUL byte, allowed: UTF-8 text");
    EXPECT_EQ(parse_error("a\n\xB5s\n"), "t.csv:2: found byte 0xb5, allowed: UTF-8 text");
}

TEST(Csv, absurd_input_ends_in_one_line) {
    EXPECT_EQ(parse_error("a\n" + std::string(70'000, 'x')),
              "t.csv:2: a field of 70000 bytes, allowed: at most 65536");
    EXPECT_EQ(parse_error(std::string(5'000, ',')), "t.csv:1: more than 1024 columns");
    std::string rows = "a\n";
    for (int i = 0; i < 1'000'001; ++i) rows += "1\n";
    EXPECT_EQ(parse_error(rows), "t.csv:1000002: more than 1000000 rows");
}

TEST(Csv, a_wrong_number_says_column_found_and_allowed) {
    const auto integer_error = [](std::string_view field) {
        const auto table = table_of("k\n" + std::string(field) + "\n");
        return error_of([&] { table[0].integer("k", 1, 9); });
    };
    const std::string allowed = ", allowed: a whole number from 1 to 9";
    for (const auto* bad :
         {"0", "-1", "10", "x", "1.5", "1e1", "0x1", "+1", "nan", "1 2", "99999999999999999999"})
        EXPECT_EQ(integer_error(bad), "t.csv:2: k: found \"" + std::string(bad) + "\"" + allowed);
    EXPECT_EQ(integer_error("\"\""), "t.csv:2: k: found nothing" + allowed);
}

TEST(Csv, a_wrong_real_says_column_found_and_allowed) {
    const auto real_error = [](std::string_view field) {
        const auto table = table_of("us\n" + std::string(field) + "\n");
        return error_of([&] { table[0].positive("us"); });
    };
    for (const auto* bad : {"nan", "inf", "-inf", "1e999", "x", "1.5us"})
        EXPECT_EQ(real_error(bad),
                  "t.csv:2: us: found \"" + std::string(bad) + "\", allowed: a finite number");
    EXPECT_EQ(real_error("-2"), "t.csv:2: us: found \"-2\", allowed: a number above 0");
    EXPECT_EQ(real_error("0"), "t.csv:2: us: found \"0\", allowed: a number above 0");
}

TEST(Csv, an_unreadable_file_says_why) {
    EXPECT_EQ(error_of([] { CsvTable::read("/no/such.csv"); }),
              "/no/such.csv: cannot be read: No such file or directory");
    EXPECT_EQ(error_of([] { CsvTable::read("/"); }), "/: cannot be read: Is a directory");
}

TEST(Csv, every_corpus_file_ends_in_a_table_or_one_line) {
    const std::string folder = MOEHUB_SOURCE_DIR "/tests/corpus/csv";
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        const auto message = error_of([&] { CsvTable::read(entry.path()); });
        EXPECT_EQ(message.find('\n'), std::string::npos) << entry.path();
    }
}

TEST(Csv, what_was_written_reads_back) {
    EXPECT_TRUE(rc::check("quoted fields read back", [] {
        const auto field = *rc::gen::container<std::string>(
            rc::gen::element('a', '"', ',', '\n', '\r', ' ', '\t', '7'));
        std::string text = "a,b\n\"";
        for (const char c : field) text += c == '"' ? std::string("\"\"") : std::string(1, c);
        const auto table = table_of(text + "\",end\r\n");
        RC_ASSERT(table.size() == 1u);
        RC_ASSERT(table[0].field("a") == field);
        RC_ASSERT(table[0].text("b") == "end");
    }));
}

}  // namespace
}  // namespace moehub::csv_test
