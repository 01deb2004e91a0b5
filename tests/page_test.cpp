// Report pages: whole, harmless, small, and one file.
#include "cli_fixture.hpp"
#include "report/answer_forms.hpp"

#include <nlohmann/json.hpp>

namespace moehub::page_test {
namespace {

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
}

/// What a script element of that id holds.
std::string script(const std::string& html, const std::string& id) {
    const std::size_t tag = html.find("id=\"" + id + "\">");
    const std::size_t begin = html.find('>', tag) + 1;
    return html.substr(begin, html.find("</script>", begin) - begin);
}

const std::string kNasty = "</script><img src=x onerror=alert(1)>\"'&\x1b\xff";

/// An answer with a bit of everything, all of it named by `name`.
Answer answer_of(const std::string& name) {
    Answer answer{.question = "run", .title = name, .lead = {name}};
    answer.facts["name"] = "</script>" + name.substr(0, 9);
    answer.sections.push_back(
        {name,
         {name},
         {Table{"rows", name, {{name, "a"}, {"n", "n", kWhole}}, {{name, 1}}},
          BarChart{name, name, {name, "b"}, {{name, {1.5, std::nullopt}}}},
          LineChart{name, {name}, {name}, {{name, {{1, 2, name}}}}},
          HeatChart{name, name, name, name, {name}, {name}, {{name, {3}}}},
          TimelineChart{name,
                        {{name, 9, {{name, {{name, {0, 1}}}, {{name, 1, {2, 3}}}, {}, {}}}, {}}}},
          Lines{name}},
         {name}});
    answer.configuration = {{name, name}};
    return answer;
}

std::string page_of(const std::string& name) {
    return page_html(answer_of(name), name);
}

TEST(Page, a_foreign_name_is_harmless) {
    const std::string html = page_of(kNasty);
    EXPECT_FALSE(has(html, "<img"));
    EXPECT_FALSE(has(html, "\x1b"));
    EXPECT_FALSE(has(html, "\xff"));
    EXPECT_EQ(count(html, "<script"), count(html, "</script>"));
    EXPECT_EQ(count(html, "<script"), 4u);
    EXPECT_TRUE(has(html, "&lt;/script&gt;"));
    const auto charts = nlohmann::json::parse(script(html, "charts"));
    EXPECT_TRUE(has(charts[0]["title"].get<std::string>(), "</script><img"));
    EXPECT_EQ(nlohmann::json::parse(script(html, "document"))["name"], "</script></script>");
}

TEST(Page, charts_are_whole_and_named) {
    const std::string html = page_of("plain");
    const auto charts = nlohmann::json::parse(script(html, "charts"));
    ASSERT_EQ(charts.size(), 4u);
    EXPECT_EQ(charts[0]["kind"], "bars");
    EXPECT_EQ(charts[0]["series"][0]["values"][0], 1.5);
    EXPECT_TRUE(charts[0]["series"][0]["values"][1].is_null());
    EXPECT_EQ(charts[1]["series"][0]["points"][0][1], 2);
    EXPECT_EQ(charts[2]["layers"][0]["values"][0], 3);
    EXPECT_EQ(charts[3]["systems"][0]["gpus"][0]["sms"][0]["values"][1], 3);
    EXPECT_EQ(count(html, "role=\"img\" aria-label=\"plain. "), 4u);
    EXPECT_EQ(count(html, "<caption><span>plain</span></caption>"), 1u);
    EXPECT_EQ(count(html, "scope=\"col\""), 2u);
}

TEST(Page, loads_nothing) {
    const std::string html = page_of("plain");
    const std::string own = html.substr(0, html.find("<script type=\"application/gzip\""));
    for (const auto* part : {" src=", "href=", "@import", "url("}) EXPECT_FALSE(has(own, part));
    EXPECT_TRUE(has(html, "Licensed to the Apache Software Foundation"));
    Answer plain = answer_of("plain");
    plain.sections.front().blocks.erase(plain.sections.front().blocks.begin() + 1,
                                        plain.sections.front().blocks.end());
    EXPECT_LT(page_html(plain, "plain").size(), 60'000u) << "no charts, no library";
}

class PageCli : public cli_test::Cli {};

TEST_F(PageCli, the_document_is_that_of_json_and_the_command_is_there) {
    const std::string html = file("it's.html");
    const std::string asked = "run --gpus 4 --tokens 256 --set 'link.latency=300 ns'";
    const auto ran = moehub(asked + " --html \"" + html + "\"");
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.err, "moehub: wrote " + html + "\n");
    EXPECT_EQ(ran.out, moehub(asked).out);
    const std::string page = cli_test::text_of(html);
    EXPECT_EQ(nlohmann::json::parse(script(page, "document")),
              nlohmann::json::parse(moehub(asked + " --json").out));
    EXPECT_TRUE(has(page, escaped("moehub run --gpus 4 --tokens 256 --set 'link.latency=300 ns' "
                                  "--html '")))
        << page.substr(page.find("id=\"command\""), 300);
    EXPECT_TRUE(has(page, escaped("it'\\''s.html'")));
}

TEST_F(PageCli, a_path_that_cannot_be_written_is_refused_first) {
    for (const std::string command :
         {"compare", "run", "run --layer-type tp", "model", "model --model llama-7b", "plan",
          "reproduce moe-hub --quick", "plan --explain tp=2"})
        expect_refused(command + " --html /none/x.html",
                       "/none/x.html: cannot be written: No such file or directory");
    expect_refused("run --html ''", "--html: found \"\", allowed: a file");
    expect_refused("run --html " + file("x") + " -o " + file("./x"),
                   "--html: found the file of another output, allowed: its own");
}

TEST_F(PageCli, a_page_of_72_gpus_is_small) {
    constexpr std::uintmax_t kMost = 5'000'000;
    const std::string html = file("a.html");
    const auto ran = moehub(
        "compare --machine gb200-nvl72 --model deepseek-v3 --gpus 72 "
        "--tokens 4608 --systems megatron-te,deepep,moe-hub --html " +
        html);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_LT(std::filesystem::file_size(html), kMost);
}

TEST_F(PageCli, a_recording_of_deepseek_v3_is_small) {
    constexpr int kTokens = 400, kLayers = 58, kTop = 8, kExperts = 256;
    std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (400, 58, 8), }";
    header += std::string(117 - header.size(), ' ') + "\n";
    std::string bytes = std::string("\x93NUMPY\1\0", 8) + '\x76' + '\0' + header;
    for (int i = 0; i < kTokens * kLayers; ++i)
        for (int k = 0; k < kTop; ++k)
            bytes += static_cast<char>((i * i % 97 + i / 7 + k * 31) % kExperts);
    const std::string html = file("a.html");
    const auto ran =
        moehub("profile " + saved("v3.npy", bytes) + " --model deepseek-v3 --html " + html);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_LT(std::filesystem::file_size(html), 2'000'000u);
}

}  // namespace
}  // namespace moehub::page_test
