// Do the readers of zip archives and pickles take what torch.save writes, never do what a pickle
// asks for, and refuse everything else in one line?
#include "base/torch_file.hpp"
#include "error_of.hpp"
#include "torch_writer.hpp"

namespace moehub::profile_torch_test {
namespace {

std::string zip_error(const std::string& bytes) {
    return error_of([&] {
        const auto archive = ZipArchive::parse(bytes, "a.zip");
        for (const auto& entry : archive.entries()) archive.contents(entry);
    });
}

std::string pickle_error(const std::string& pickle) {
    return error_of([&] { TorchFile::parse(stored_zip({{"a/data.pkl", pickle}}), "a.pt"); });
}

TEST(Crc32, is_the_checksum_of_zip_files) {
    EXPECT_EQ(crc32(""), 0u);
    EXPECT_EQ(crc32("123456789"), 0xCBF43926u);
    EXPECT_EQ(crc32("The quick brown fox jumps over the lazy dog"), 0x414FA339u);
}

TEST(Zip, finds_stored_entries) {
    for (const bool zip64 : {false, true}) {
        const auto bytes = stored_zip({{"b", "second"}, {"a", "first"}, {"empty", ""}}, zip64);
        const auto archive = ZipArchive::parse(bytes, "a.zip");
        ASSERT_EQ(archive.entries().size(), 3u);
        EXPECT_EQ(archive.contents(*archive.find("a")), "first");
        EXPECT_EQ(archive.contents(*archive.find("b")), "second");
        EXPECT_EQ(archive.contents(*archive.find("empty")), "");
        EXPECT_EQ(archive.find("c"), nullptr);
    }
    EXPECT_TRUE(ZipArchive::parse("PK\5\6" + std::string(18, '\0'), "a.zip").entries().empty());
}

TEST(Zip, refuses_damage) {
    const auto good = stored_zip({{"a", "some text"}, {"b", "more"}});
    ASSERT_EQ(zip_error(good), "accepted");
    EXPECT_EQ(zip_error(""), "a.zip: found another kind of file, allowed: a zip archive");
    EXPECT_EQ(zip_error(good.substr(0, good.size() - 3)),
              "a.zip: cut short: has no zip directory at its end");
    for (std::size_t cut = 0; cut < good.size(); ++cut)
        EXPECT_NE(zip_error(good.substr(0, cut)), "accepted") << cut;
    auto changed = good;
    changed[good.find("some")] = 'S';
    EXPECT_EQ(zip_error(changed), "a.zip: entry \"a\": damaged: its checksum does not match");
    const std::size_t entry = good.find("PK\1\2");
    const auto with = [&](std::size_t at, char value) {
        auto bytes = good;
        bytes[entry + at] = value;
        return zip_error(bytes);
    };
    EXPECT_EQ(with(8, '\1'), "a.zip: entry \"a\": encrypted, allowed: plain");
    EXPECT_EQ(with(10, '\10'),
              "a.zip: entry \"a\": compressed, allowed: stored (as torch.save does)");
    EXPECT_EQ(with(24, '\0'), "a.zip: entry \"a\": found two sizes, allowed: one, stored");
    EXPECT_EQ(with(43, '\7'), "a.zip: entry \"a\": is not where the zip directory says");
    EXPECT_EQ(zip_error(stored_zip({{"a", "1"}, {"a", "2"}})), "a.zip: entry \"a\": stands twice");
}

TEST(Zip, refuses_entries_that_share_their_bytes) {
    // Many entries over the same long one: reading all would take the square of the file.
    auto bytes = stored_zip({{"a", std::string(1000, 'x')}, {"b", ""}});
    const std::size_t a = bytes.find("PK\1\2"), b = bytes.find("PK\1\2", a + 1);
    bytes.replace(b + 16, 12, bytes.substr(a + 16, 12));
    bytes.replace(b + 42, 4, bytes.substr(a + 42, 4));
    EXPECT_EQ(zip_error(bytes), "a.zip: entry \"b\": cut short, or longer than the file");
}

TEST(Pickle, reads_values) {
    using Kind = Pickle::Kind;
    const auto root = [](const std::string& bytes) {
        const auto pickle = Pickle::parse(bytes, {}, "a");
        return std::pair(pickle.kind(pickle.root()), pickle.integer(pickle.root()));
    };
    const auto integer = [](std::int64_t value) { return std::pair(Kind::integer, value); };
    EXPECT_EQ(root("K\7."), integer(7));
    EXPECT_EQ(root("M\1\2."), integer(513));
    EXPECT_EQ(root("J\xff\xff\xff\xff."), integer(-1));
    EXPECT_EQ(root("\x80\5\x95" + std::string(8, '\0') + "K\7."), integer(7));
    EXPECT_EQ(root(std::string("\x8a\0.", 3)), integer(0));
    EXPECT_EQ(root(std::string("\x8a\2\0\x80.", 5)), integer(-32768));
    EXPECT_EQ(root("N.").first, Kind::none);
    EXPECT_EQ(root("\x88."), std::pair(Kind::boolean, std::int64_t{1}));
    EXPECT_EQ(root(std::string("G") + std::string(8, '\0') + ".").first, Kind::real);
}

TEST(Pickle, reads_containers_shared_ones_too) {
    // {"a": [1], "b": (1, 2), "a": 3}: the last "a" counts.
    const std::string bytes = pickled_dict({{"a", pickled_list({pickled(std::int64_t{1})})},
                                            {"b", pickled_tuple({1, 2})},
                                            {"a", pickled(std::int64_t{3})}}) +
                              ".";
    const auto pickle = Pickle::parse(bytes, {}, "a");
    const auto b = pickle.find(pickle.root(), "b");
    ASSERT_TRUE(b.has_value());
    EXPECT_EQ(pickle.kind(*b), Pickle::Kind::tuple);
    EXPECT_EQ(pickle.items(*b).size(), 2u);
    EXPECT_EQ(pickle.integer(*pickle.find(pickle.root(), "a")), 3);
    EXPECT_EQ(pickle.find(pickle.root(), "c"), std::nullopt);
    const auto itself = Pickle::parse(std::string("]q\0h\0a.", 7), {}, "a");
    EXPECT_EQ(itself.items(itself.root())[0], itself.root());
}

TEST(Pickle, never_does_what_is_asked_for) {
    EXPECT_EQ(pickle_error(std::string("cos\nsystem\nX\4\0\0\0true\x85R.", 23)),
              "a.pt: asks for os.system, allowed: tensors and containers");
    EXPECT_EQ(pickle_error("c__builtin__\neval\n."),
              "a.pt: asks for __builtin__.eval, allowed: tensors and containers");
    EXPECT_EQ(pickle_error("\x80\4\x8c\5posix\x8c\6system\x93."),
              "a.pt: asks for posix.system, allowed: tensors and containers");
    EXPECT_EQ(pickle_error("ctorch\nload\n."),
              "a.pt: asks for torch.load, allowed: tensors and containers");
    EXPECT_EQ(pickle_error("ctorch._utils\n\x1b[31m_rebuild_tensor_v2\n."),
              "a.pt: asks for torch._utils.\\x1b[31m_rebuild_tensor_v2, allowed: tensors and "
              "containers");
    // Building, new objects, instances, extension codes, text persistent ids.
    for (const char* code : {"b", "\x81", "\x92", "i", "o", "\x82", "P", "B", "\x8f"})
        EXPECT_NE(pickle_error(std::string("N") + code + "."), "accepted") << code;
    EXPECT_EQ(pickle_error("Nb."),
              "a.pt: found the pickle opcode 0x62, allowed: tensors and containers (byte 2 of its "
              "pickle)");
}

TEST(Pickle, refuses_programs_that_cannot_run) {
    for (const std::string& bad : {std::string(""),
                                   std::string("."),
                                   std::string("N"),
                                   std::string("t."),
                                   std::string("a."),
                                   std::string("(a."),
                                   std::string("Na."),
                                   std::string("NNa."),
                                   std::string("NNNs."),
                                   std::string("}(Nu."),
                                   std::string("](N(e."),
                                   std::string("h\7."),
                                   std::string("j\xff\xff\xff\xff."),
                                   std::string("Nr\xff\xff\xff\xff."),
                                   std::string("q\1."),
                                   std::string("0."),
                                   std::string("R."),
                                   std::string("NNR."),
                                   std::string("N)R."),
                                   std::string("\x93."),
                                   std::string("NN\x93."),
                                   std::string("X\xff\xff\xff\xff"
                                               "a."),
                                   std::string("\x8d\xff\xff\xff\xff\xff\xff\xff\xff."),
                                   std::string("\x8b\xff\xff\xff\xff."),
                                   std::string("\x8a\x09"
                                               "123456789."),
                                   std::string("\x80\x09N."),
                                   std::string("cos\nsystem"),
                                   std::string("(.")})
        EXPECT_NE(pickle_error(bad), "accepted") << bad;
    EXPECT_EQ(pickle_error("h\7."), "a.pt: found a memo out of range (byte 2 of its pickle)");
}

TEST(Pickle, takes_deep_nesting_without_recursion) {
    EXPECT_EQ(pickle_error(std::string("N") + std::string(200000, '\x85') + "."), "accepted");
    EXPECT_EQ(pickle_error(std::string(200000, ']') + std::string(199999, 'a') + "."), "accepted");
}

TEST(TorchFile, wants_a_pickle_and_little_endian_storages) {
    const auto error = [](const std::vector<std::pair<std::string, std::string>>& entries) {
        return error_of([&] { TorchFile::parse(stored_zip(entries), "a.pt"); });
    };
    EXPECT_EQ(error({{"a/data.pkl", "}."}, {"a/byteorder", "little"}}), "accepted");
    EXPECT_EQ(error({{"a/data.pkl", "}."}, {"a/byteorder", "big"}}),
              "a.pt: byteorder: found \"big\", allowed: \"little\"");
    EXPECT_EQ(error({{"a/version", "3"}}),
              "a.pt: found a zip archive without data.pkl, allowed: torch.save's");
    EXPECT_EQ(error({{"a/data.pkl", "}."}, {"b/data.pkl", "}."}}),
              "a.pt: found two data.pkl, allowed: one, as torch.save writes");
}

TEST(TorchFile, a_small_file_cannot_ask_for_much_memory) {
    // One storage, named by a thousand tensors.
    TorchWriter writer;
    const std::string tensor = writer.tensor(std::vector<std::int32_t>(5000, 1), {5000});
    const std::string bytes = writer.file(std::string("]") + tensor + "a");
    auto torch = TorchFile::parse(bytes, "a.pt");
    const auto item = torch.contents().items(torch.contents().root())[0];
    const auto read_often = [&] {
        for (int i = 0; i < 1000; ++i) torch.tensor(item, "numbers");
    };
    EXPECT_EQ(error_of(read_often), "a.pt: numbers: found more values than the file has bytes");
}

}  // namespace
}  // namespace moehub::profile_torch_test
