// Does the .npy reader take what NumPy writes, and refuse everything else in one line?
#include "base/npy.hpp"

#include <moehub/error.hpp>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace moehub::npy_test {
namespace {

std::string with_header(const std::string& header, const std::string& values, int version = 1) {
    std::string bytes = "\x93NUMPY";
    bytes += static_cast<char>(version);
    bytes += '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
        bytes += static_cast<char>((header.size() >> (8 * i)) & 0xff);
    return bytes + header + values;
}

std::string npy(const std::string& dtype, const std::string& shape, const std::string& values) {
    return with_header(
        "{'descr': '" + dtype + "', 'fortran_order': False, 'shape': " + shape + ", }   \n",
        values);
}

std::vector<long long> values_of(const NpyArray& array) {
    return array.visit([](const auto& values) {
        std::vector<long long> all;
        for (std::size_t i = 0; i < values.size(); ++i)
            all.push_back(static_cast<long long>(values[i]));
        return all;
    });
}

std::string error_of(const std::string& bytes) {
    try {
        NpyArray::parse(bytes, "a.npy");
    } catch (const InputError& error) {
        return error.what();
    }
    return "";
}

using Values = std::vector<long long>;
using Shape = std::vector<std::int64_t>;

TEST(Npy, reads_all_integer_types) {
    const std::string ones(8, '\xff');
    const auto one = [&](const std::string& dtype, std::size_t width) {
        return values_of(NpyArray::parse(npy(dtype, "(1,)", ones.substr(0, width)), "a")).at(0);
    };
    EXPECT_EQ(one("|u1", 1), 255);
    EXPECT_EQ(one("<u2", 2), 65535);
    EXPECT_EQ(one("<u4", 4), 4294967295);
    EXPECT_EQ(one("<u8", 8), -1);  // 2^64 - 1 in the test's signed number
    EXPECT_EQ(one("|i1", 1), -1);
    EXPECT_EQ(one("<i2", 2), -1);
    EXPECT_EQ(one("<i4", 4), -1);
    EXPECT_EQ(one("<i8", 8), -1);
}

TEST(Npy, reads_values_in_c_order_with_their_shape) {
    const auto array = NpyArray::parse(npy("<u2", "(2, 3)", {"\1\0\2\0\3\0\4\0\5\0\0\1", 12}), "a");
    EXPECT_EQ(array.shape(), (Shape{2, 3}));
    EXPECT_EQ(array.dtype(), "<u2");
    EXPECT_EQ(values_of(array), (Values{1, 2, 3, 4, 5, 256}));
}

TEST(Npy, reads_format_versions_1_to_3) {
    const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }\n";
    for (const int version : {1, 2, 3})
        EXPECT_EQ(values_of(NpyArray::parse(with_header(header, "\5\6", version), "a")),
                  (Values{5, 6}));
    EXPECT_EQ(error_of(with_header(header, "\5\6", 4)),
              "a.npy: found .npy format version 4.0, allowed: 1.0, 2.0 and 3.0");
}

TEST(Npy, takes_keys_in_any_order_scalars_and_empty_arrays) {
    const auto scalar = NpyArray::parse(
        with_header(R"({"shape":(),"fortran_order":False,"descr":"|i1"})", "\7"), "a");
    EXPECT_EQ(scalar.shape(), Shape{});
    EXPECT_EQ(values_of(scalar), Values{7});
    EXPECT_EQ(NpyArray::parse(npy("<i8", "(0, 9000000000000000000)", ""), "a").size(), 0u);
    EXPECT_EQ(NpyArray::parse(npy("|u1", "(2L,)", "ab"), "a").size(), 2u);
}

TEST(Npy, refuses_other_types_and_orders) {
    const std::string allowed =
        ", allowed: |u1, <u2, <u4, <u8, |i1, <i2, <i4, <i8 (integers, little endian)";
    for (const std::string dtype : {">i4", "<f4", "|b1", "i4", "", "|u2", "<U3", "|O"})
        EXPECT_EQ(error_of(npy(dtype, "(1,)", "abcd")),
                  "a.npy: found values of type \"" + dtype + "\"" + allowed);
    EXPECT_EQ(
        error_of(with_header("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2)}", "abcd")),
        "a.npy: found an array in Fortran order, allowed: C order "
        "(numpy.ascontiguousarray)");
    EXPECT_EQ(error_of(with_header(
                  "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}", "abcd")),
              "a.npy: header: found \"[('a', '<i4')], 'fortran\", allowed: the name of one type, "
              "no structure");
}

TEST(Npy, refuses_values_that_are_not_as_many_as_the_shape_says) {
    EXPECT_EQ(error_of(npy("<i4", "(2, 2)", "0123456789abcde")),
              "a.npy: found 15 bytes of values, its shape (2, 2) of <i4 needs 16");
    EXPECT_EQ(error_of(npy("|u1", "(2,)", "abc")),
              "a.npy: found 3 bytes of values, its shape (2) of |u1 needs 2");
    EXPECT_EQ(error_of(npy("<i8", "(4000000000, 4000000000)", "")),
              "a.npy: found 0 bytes of values, its shape (4000000000, 4000000000) of <i8 needs "
              "more than 2^64");
}

TEST(Npy, refuses_broken_headers) {
    const auto refused = [](const std::string& header) {
        return error_of(with_header(header, ""));
    };
    EXPECT_EQ(error_of(""), "a.npy: found another kind of file, allowed: NumPy's .npy");
    EXPECT_EQ(error_of("PK\3\4 a zipped .npz"),
              "a.npy: found another kind of file, allowed: NumPy's .npy");
    EXPECT_EQ(error_of(npy("|u1", "(1,)", "a").substr(0, 9)), "a.npy: ends within its header");
    EXPECT_EQ(error_of(npy("|u1", "(1,)", "a").substr(0, 40)), "a.npy: ends within its header");
    EXPECT_EQ(refused(""), "a.npy: header: found its end, allowed: \"{\"");
    EXPECT_EQ(refused("{'descr': '|u1'}"), "a.npy: header: no \"fortran_order\"");
    EXPECT_EQ(refused("{'shape': (-1,)}"),
              "a.npy: header: found \"-1,)}\", allowed: a size, 0 to 2^63 - 1");
    EXPECT_EQ(refused("{'shape': (99999999999999999999,)}"),
              "a.npy: header: found \"99999999999999999999,)}\", allowed: a size, 0 to 2^63 - 1");
    EXPECT_EQ(refused("{'shape': (1,), 'shape': (2,)}"),
              "a.npy: header: found key \"shape\", allowed: \"descr\", \"fortran_order\" and "
              "\"shape\", each once");
    EXPECT_EQ(refused("{'descr': '|u1"),
              "a.npy: header: found \"'|u1\", allowed: a text that ends");
}

TEST(Npy, reads_files_and_names_them_in_errors) {
    const auto path = std::filesystem::path(::testing::TempDir()) / "moehub_npy_test.npy";
    std::ofstream(path, std::ios::binary) << npy("|u1", "(3,)", "\1\2\3");
    EXPECT_EQ(values_of(NpyArray::read(path)), (Values{1, 2, 3}));
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
    EXPECT_THROW(NpyArray::read(path), InputError);
    std::filesystem::remove(path);
    try {
        NpyArray::read(path);
        FAIL();
    } catch (const InputError& error) {
        EXPECT_EQ(error.what(), path.string() + ": no such file");
    }
    EXPECT_THROW(NpyArray::read(::testing::TempDir()), InputError);
}

RC_GTEST_PROP(Npy, ends_in_an_array_or_in_one_line_when_bytes_are_changed, ()) {
    std::string bytes = npy("<i2", "(2, 3)", "abcdefghijkl");
    for (int i = *rc::gen::inRange(1, 5); i > 0; --i)
        bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<char>();
    bytes.resize(*rc::gen::inRange<std::size_t>(0, bytes.size() + 1));
    const std::string error = error_of(bytes);
    RC_ASSERT(error.empty() || error.starts_with("a.npy: "));
    RC_ASSERT(error.find('\n') == std::string::npos);
}

}  // namespace
}  // namespace moehub::npy_test
