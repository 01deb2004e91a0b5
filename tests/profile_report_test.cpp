// Is a summary of recorded routing told rightly: as text, JSON, page, and by the program?
#include "answers/profile_answer.hpp"
#include "base/utf8.hpp"
#include "cli_fixture.hpp"
#include "place/profile/profile_summary_parts.hpp"
#include "report/answer_forms.hpp"

#include <moehub/routing.hpp>

#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace moehub::profile_report_test {
namespace {

Profile sized(const std::string& name, int experts, int layers, std::int64_t tokens) {
    Profile profile;
    profile.name = name;
    profile.layers = profile.model_layers = layers;
    profile.experts = experts;
    profile.top_k = 2;
    profile.tokens = tokens;
    for (int layer = 0; layer < layers; ++layer) profile.layer_numbers.push_back(layer + 3);
    return profile;
}

Profile drawn(const std::string& name, int experts, int layers, std::int64_t tokens) {
    Model model;
    model.experts = experts;
    model.top_k = 2;
    Profile profile = sized(name, experts, layers, tokens);
    profile.chosen =
        make_routing(parse_routing("zipf:0.8,transition:0.7"), model, tokens, layers).chosen.copy();
    count_choices(profile);
    return profile;
}

/// Nothing is drawn: quick where there are many experts.
Profile spread(const std::string& name, int experts, int layers, std::int64_t tokens) {
    Profile profile = sized(name, experts, layers, tokens);
    for (std::int64_t at = 0; at < layers * tokens; ++at)
        for (const std::int64_t expert : {at * 7 % experts, (at * 7 + 1) % experts})
            profile.chosen.push_back(static_cast<std::uint16_t>(expert));
    count_choices(profile);
    return profile;
}

ProfileReport report_of(const std::vector<Profile>& profiles, std::optional<int> layer = {}) {
    ProfileReport report;
    for (const Profile& profile : profiles)
        report.profiles.push_back(summarize(profile, {.gpus = 4}));
    if (profiles.size() > 1) report.differences = differences(profiles);
    report.layer = layer;
    report.pairs = pair_matrices(profiles.front(), report.detailed_layer());
    return report;
}

std::string text_of(const ProfileReport& report, const TextStyle& style = {}) {
    return moehub::text_of(profile_answer(report), style);
}
std::string page_of(const ProfileReport& report) {
    return page_html(profile_answer(report), "moehub profile");
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// Every tag that opens closes, in order; no bare "&" or "<".
bool well_formed(const std::string& xml) {
    std::vector<std::string> open;
    for (std::size_t at = 0; (at = xml.find_first_of("<&", at)) != std::string::npos;) {
        if (xml[at] == '&') {
            const std::size_t end = xml.find(';', at);
            if (end == std::string::npos || end - at > 6) return false;
            at = end;
            continue;
        }
        const std::size_t end = xml.find('>', at);
        if (end == std::string::npos) return false;
        const std::string tag = xml.substr(at + 1, end - at - 1);
        const std::string name = tag.substr(0, tag.find(' '));
        if (tag.starts_with('/')) {
            if (open.empty() || "/" + open.back() != name) return false;
            open.pop_back();
        } else if (!tag.ends_with('/') && !tag.starts_with('!') && name != "meta") {
            open.push_back(name);
        }
        at = end;
    }
    return open.empty();
}

const std::string kNasty = "<script>&\"'\x1b[31m\n\xff\xEF\xBF\xBF.npy";

TEST(ProfileText, tells_the_layers_and_what_they_mean) {
    const std::string text = text_of(report_of({drawn("a.npy", 16, 4, 500)}));
    EXPECT_TRUE(
        text.starts_with("a.npy: 500 tokens, 4 layers of 16 experts, top-2\n\n- The busiest "))
        << text;
    for (const auto* part : {"layer  busiest", "Load, layers × experts\n3 │", "\n6 │",
                             "times the layer's mean", "without copies"})
        EXPECT_TRUE(has(text, part)) << part << "\n" << text;
    EXPECT_FALSE(has(text, "\x1b"));
    EXPECT_FALSE(has(text, "nan"));
    EXPECT_TRUE(
        has(text_of(report_of({drawn("a.npy", 16, 4, 500)}), {.colour = true}), "\x1b[48;5;"));
}

TEST(ProfileText, is_narrow_whatever_the_size) {
    const std::string text = text_of(report_of({spread("a.npy", 300, 100, 50)}), {.width = 104});
    std::istringstream lines(text);
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count)
        EXPECT_LE(display_width(line), 104u) << line;
    EXPECT_LT(count, 110);
    EXPECT_TRUE(has(text, "too few tokens"));
}

TEST(ProfileText, only_what_is_above_the_bound_can_be_won) {
    const ProfileReport report = report_of({drawn("a.npy", 16, 4, 500)});
    const std::string sentence = profile_sentences(report)[1];
    EXPECT_TRUE(sentence.starts_with("Experts in order give the busiest GPU ")) << sentence;
    EXPECT_TRUE(has(sentence, "at best. Placing by load can win at most what is between."))
        << sentence;
}

TEST(ProfileText, one_layer_is_told_in_detail) {
    const std::string text = text_of(report_of({drawn("a.npy", 16, 4, 500)}, 1));
    EXPECT_TRUE(has(text, "\nLayer 4: 1,000 rows of 500 tokens, 62.5 an expert\n")) << text;
    EXPECT_TRUE(has(text, "█"));
    EXPECT_TRUE(has(text, "over chance"));
    EXPECT_FALSE(has(text, "Load, layers"));
}

TEST(ProfileText, several_are_numbered_and_compared) {
    const Profile a = drawn("a.npy", 16, 4, 500), b = drawn("b.npy", 16, 4, 400);
    const std::string text = text_of(report_of({a, b}));
    for (const auto* part : {"1  a.npy: 500", "2  b.npy: 400", "\n2  b.npy\n", "Load that differs",
                             "- Profile 2: ", "- Profiles 1 and 2 differ in "})
        EXPECT_TRUE(has(text, part)) << part << "\n" << text;
}

TEST(ProfileForms, a_foreign_name_is_harmless) {
    const Profile one = drawn(kNasty, 8, 3, 60);
    const ProfileReport report = report_of({one, one}, 1);
    const std::string text = text_of(report);
    EXPECT_FALSE(has(text, "\x1b"));
    EXPECT_EQ(first_bad_utf8(text), text.size());
    const std::string page = page_of(report);
    EXPECT_FALSE(has(page, "<script>&"));
    EXPECT_FALSE(has(page, "\x1b"));
    EXPECT_FALSE(has(page.substr(0, page.find("<script")), "\xEF\xBF\xBF"));
    EXPECT_EQ(first_bad_utf8(page), page.size());
    EXPECT_TRUE(nlohmann::json::accept(json_text(profile_answer(report))));
}

TEST(ProfileForms, pages_are_whole_of_every_kind) {
    Profile counts;
    counts.name = "counts";
    counts.layers = 2;
    counts.experts = 4;
    counts.counts = {4, 2, 1, 1, 0, 0, 0, 0};
    for (const Profile& profile :
         {drawn("a", 16, 4, 500), drawn("one", 4, 1, 20), spread("wide", 700, 2, 40),
          spread("deep", 4, 300, 20), counts}) {
        const std::string html = page_of(report_of({profile}));
        const std::string body = html.substr(0, html.find("<script"));
        EXPECT_TRUE(well_formed(body.substr(body.find("<body>") + 6))) << profile.name;
        EXPECT_FALSE(has(body, "nan")) << profile.name;
        EXPECT_FALSE(has(body, "href")) << profile.name;
        EXPECT_EQ(has(body, "chosen together"), !profile.chosen.empty()) << profile.name;
    }
}

std::vector<HeatChart> maps_of(const ProfileReport& report) {
    std::vector<HeatChart> maps;
    for (const Section& section : profile_answer(report).sections)
        for (const Block& block : section.blocks)
            if (const auto* map = std::get_if<HeatChart>(&block.content)) maps.push_back(*map);
    return maps;
}

TEST(ProfileForms, one_busy_expert_makes_nothing_pale) {
    Profile counts;
    counts.name = "counts";
    counts.layers = 1;
    counts.experts = 1000;
    counts.counts.assign(1000, 1);
    counts.counts[3] = 90;
    EXPECT_EQ(maps_of(report_of({counts}))[0].cap, 2);
    counts.experts = 41;
    counts.counts.assign(41, 0);
    counts.counts[3] = 90;
    EXPECT_EQ(maps_of(report_of({counts}))[0].cap, 50) << "of few every one counts";
}

TEST(ProfileForms, the_map_holds_the_load) {
    const ProfileReport report = report_of({drawn("a.npy", 16, 4, 500)});
    const ProfileSummary& summary = report.profiles[0];
    const std::vector<HeatChart> maps = maps_of(report);
    ASSERT_EQ(maps.size(), 3u) << "load, chosen together, to the next layer";
    EXPECT_EQ(maps[0].rows, (std::vector<std::string>{"3", "4", "5", "6"}));
    EXPECT_NEAR(maps[0].layers[0].values[16 + 5],
                summary.counts[16 + 5] / summary.layers[1].load.mean, 0.005);
    const auto lift = [&](std::size_t at) {
        const auto row = static_cast<std::size_t>(std::stoi(maps[1].rows[at / 16]));
        const auto column = static_cast<std::size_t>(std::stoi(maps[1].columns[at % 16]));
        return report.pairs.lift[row * 16 + column];
    };
    for (const std::size_t at : {1u, 40u, 200u})
        EXPECT_NEAR(maps[1].layers[0].values[at], lift(at), 0.005) << at;
}

TEST(ProfileJson, everything_is_there_in_order) {
    const auto report = report_of({drawn("a.npy", 16, 4, 500)});
    const auto json = nlohmann::ordered_json::parse(json_text(profile_answer(report)));
    const auto& layer = json["layers"][1];
    std::vector<std::string> keys;
    for (const auto& item : layer.items()) keys.push_back(item.key());
    EXPECT_EQ(keys, (std::vector<std::string>{"profile", "layer", "load", "together", "next",
                                              "halves", "counts"}));
    EXPECT_EQ(json["profiles"][0]["tokens"], 500);
    EXPECT_EQ(layer["layer"], 4);
    EXPECT_EQ(layer["counts"].size(), 16u);
    EXPECT_EQ(layer["load"]["largest_over_mean"],
              report.profiles[0].layers[1].load.largest_over_mean);
    EXPECT_EQ(layer["next"]["information_bits"], report.profiles[0].layers[1].next->information);
    EXPECT_TRUE(json["layers"][3]["next"]["transitions"].is_null());
}

TEST(HeatMap, the_largest_is_kept_and_the_mean_taken) {
    HeatChart map;
    map.rows = {"3", "4"};
    map.columns = {"0", "1", "2", "3", "4"};
    map.layers = {{"", {1, 5, 0, 2, 2, 2, 9, 1, 1, 3}}};
    const HeatChart largest = merged(map, 1, 3);
    EXPECT_EQ(largest.row_step, 2u);
    EXPECT_EQ(largest.column_step, 2u);
    EXPECT_EQ(largest.rows, std::vector<std::string>{"3 …"});
    EXPECT_EQ(largest.columns, (std::vector<std::string>{"0 …", "2 …", "4 …"}));
    EXPECT_EQ(largest.layers[0].values, (std::vector<double>{9, 2, 3}));
    EXPECT_EQ(merged(map, 1, 3, MergeCells::mean).layers[0].values,
              (std::vector<double>{4.25, 1, 2.5}));
    EXPECT_EQ(merged(map, 9, 9).layers[0].values, map.layers[0].values);
    HeatChart wide;
    wide.rows = {"0"};
    wide.columns.resize(256);
    wide.layers = {{"", std::vector<double>(256)}};
    EXPECT_EQ(merged(wide, 9, 96).column_step, 4u) << "divides evenly";
}

TEST(HeatMap, fits_the_terminal) {
    const ProfileReport report = report_of({spread("a.npy", 300, 2, 50)});
    EXPECT_TRUE(has(text_of(report), "; the largest of 4 experts each\n"));
    const std::string narrow = text_of(report, {.width = 40});
    EXPECT_TRUE(has(narrow, "; the largest of\n10 experts each\n")) << narrow;
}

TEST(ExpertOrder, blocks_are_put_together) {
    // 0, 2, 4 and 1, 3, 5 go together.
    std::vector<double> matrix(36, 0.1);
    for (std::size_t a = 0; a < 6; ++a)
        for (std::size_t b = 0; b < 6; ++b)
            if (a != b && a % 2 == b % 2) matrix[a * 6 + b] = 3;
    const std::vector<int> order = chained(matrix, 6);
    EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), 6u);
    EXPECT_EQ(order[0] % 2, order[1] % 2);
    EXPECT_EQ(order[0] % 2, order[2] % 2);
    std::vector<double> shifted(36, 0.0);
    for (std::size_t a = 0; a < 6; ++a) shifted[a * 6 + (a + 1) % 6] = 1;
    const std::vector<int> rows{5, 4, 3, 2, 1, 0};
    EXPECT_EQ(along_diagonal(shifted, rows), (std::vector<int>{0, 5, 4, 3, 2, 1}));
}

class ProfileCli : public cli_test::Cli {
  protected:
    /// 40 tokens, 2 layers, top-2 of 8 experts, as .npy.
    std::string trace() const {
        std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (40, 2, 2), }";
        header += std::string(117 - header.size(), ' ') + "\n";
        std::string bytes = std::string("\x93NUMPY\1\0", 8) + '\x76' + '\0' + header;
        for (int token = 0; token < 40; ++token)
            for (const int expert : {token % 8, (token + 1) % 8, token % 4, 7 - token % 3})
                bytes += static_cast<char>(expert);
        return saved("trace.npy", bytes);
    }
};

TEST_F(ProfileCli, prints_and_writes_every_form) {
    const std::string file = trace(), html = this->file("a.html");
    const auto text = moehub("profile " + file + " --html " + html);
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_TRUE(has(text.out, "40 tokens, 2 layers of 8 experts, top-2")) << text.out;
    EXPECT_EQ(text.err, "moehub: wrote " + html + "\n");
    EXPECT_TRUE(cli_test::text_of(html).starts_with("<!DOCTYPE html>"));
    const auto json = moehub("profile " + file + ":0-0.5 " + file + ":0.5-1 --json --gpus 2");
    EXPECT_EQ(json.code, 0) << json.err;
    EXPECT_EQ(nlohmann::json::parse(json.out)["differences"].size(), 1u);
    const auto layer = moehub("profile " + file + " --experts 16 --layer 1");
    EXPECT_TRUE(has(layer.out, "Layer 1: 80 rows of 40 tokens, 5.00 an expert\n"))
        << layer.out << layer.err;
    const auto csv = moehub("profile " + file + " --csv -");
    EXPECT_TRUE(csv.out.starts_with("profile,layer,load.rows,")) << csv.out;
    EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 3);
}

TEST_F(ProfileCli, bad_input_is_one_line) {
    const std::string file = trace();
    expect_refused("profile " + file + " --layer 2",
                   "--layer: found \"2\", allowed: a whole number from 0 to 1");
    expect_refused("profile " + file + " --gpus 9",
                   "--gpus: found \"9\", allowed: a whole number from 1 to 8");
    expect_refused("profile " + file + " --profile-kind token",
                   "--profile-kind: found \"token\", allowed: tokens, counts; did you mean "
                   "\"tokens\"?");
    expect_refused("profile " + file + " -o x.html --html x.html",
                   "--html: found the file of another output, allowed: its own");
    for (const std::string option : {"-o", "--csv", "--html"})
        expect_refused("profile " + file + ":0-0.5 " + option + " " + file,
                       option + ": found " + file + ", which is read, allowed: another file");
    EXPECT_TRUE(cli_test::text_of(file).starts_with("\x93NUMPY")) << "not overwritten";
    expect_refused("profile " + file + " -o -", "-o: found \"-\", allowed: a file");
    expect_refused("profile " + file + " --model llama-7b",
                   "--model: found \"llama-7b\", which has no experts, allowed: a model with "
                   "experts");
    expect_refused("profile " + file + " --model mixtral-8x7b --layer 32",
                   "--layer: found \"32\", allowed: a whole number from 0 to 1");
    expect_refused("profile " + file + " --model deepseek-v2-lite",
                   file + ": top-k: found 2, allowed: 6, as the model has");
    expect_refused_about("profile " + this->file("none.npy"), "none.npy");
    expect_refused_about("profile", "is required");
    expect_refused_about("profile " + file + " --html /none/x.html", "/none/x.html");
}

}  // namespace
}  // namespace moehub::profile_report_test
