// What holds of every question, and the one that ARCHITECTURE.md shows: compiled from the page.
#include "asking.hpp"
#include "error_of.hpp"

#include <moehub/error.hpp>

#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace moehub {
Question diameter_question();
}  // namespace moehub

namespace moehub::question_test {
namespace {

TEST(Question, the_one_in_architecture_answers) {
    const Question question = diameter_question();
    const Asked asked = question.ask();
    fill(asked.options, {{"machine", {"gb200-nvl72"}}, {"set", {"link.latency=1 us"}}});
    const auto document = nlohmann::json::parse(document_of(asked.answer({})).dump(-1));
    EXPECT_EQ(document["gpus"], 72);
    EXPECT_EQ(document["latency_us"], 2.0);
}

TEST(Question, every_one_has_words_and_options_of_its_own) {
    std::set<std::string> names;
    for (const Question& question : questions()) {
        EXPECT_TRUE(names.insert(question.name).second) << question.name;
        EXPECT_FALSE(question.doc.empty()) << question.name;
        EXPECT_FALSE(question.example.empty()) << question.name;
        std::set<std::string> keys;
        const Options options = question.ask().options;
        EXPECT_TRUE(question.first.empty() || find_option(options, question.first))
            << question.name << question.first;
        for (const Option& option : options) {
            EXPECT_TRUE(keys.insert(key_of(option)).second) << question.name << option.names;
            EXPECT_FALSE(option.doc.empty()) << question.name << option.names;
            // Every command has --json beside its own.
            for (const std::string& other : option.rules.excludes)
                EXPECT_TRUE(other == "--json" || find_option(options, other.substr(2)))
                    << question.name << other;
        }
    }
}

/// Nothing is not the usual: who says a list says what is in it.
TEST(Question, has_no_lists_of_nothing) {
    const auto refusal = [](const Option& option, const std::vector<std::string>& texts) {
        return error_of([&] {
            Option alone = option;
            alone.rules = {};
            fill({alone}, {{key_of(option), texts}});
        });
    };
    for (const Question& question : questions()) {
        const Asked asked = question.ask();
        for (const Option& option : asked.options) {
            const Target& target = option.target;
            if (!(target.list || target.commas) || target.kind == ValueKind::settings) continue;
            const std::string name = name_of(option);
            EXPECT_TRUE(refusal(option, {}).starts_with(name + ": found nothing, allowed: "))
                << question.name << refusal(option, {});
            EXPECT_TRUE(refusal(option, {""}).starts_with(name + ": found \"\", allowed: "))
                << question.name << name << refusal(option, {""});
        }
    }
}

/// Lines that a shell would run: those that end in a backslash go on.
std::vector<std::string> commands_in(std::string example) {
    for (std::size_t at = 0; (at = example.find("\\\n")) != std::string::npos;)
        example.replace(at, 2, " ");
    std::vector<std::string> commands;
    std::istringstream lines(example);
    for (std::string line; std::getline(lines, line);)
        if (const auto at = line.find("moehub "); at != std::string::npos)
            commands.push_back(line.substr(at));
    return commands;
}

/// Without comments; quotes stand around whole words or values.
std::vector<std::string> words_in(const std::string& command) {
    std::vector<std::string> words(1);
    char quote = '\0';
    for (const char letter : command) {
        if (letter == '#' && quote == '\0' && words.back().empty()) break;
        if (quote != '\0' ? letter == quote : letter == '"' || letter == '\'')
            quote = quote == '\0' ? letter : '\0';
        else if (letter == ' ' && quote == '\0') {
            if (!words.back().empty()) words.emplace_back();
        } else
            words.back() += letter;
    }
    if (words.back().empty()) words.pop_back();
    return words;
}

const Option* option_typed(const Options& options, const std::string& name) {
    for (const Option& option : options)
        for (const std::string& one : names_of(option))
            if (one == name) return &option;
    return nullptr;
}

SaidOption& said_of(Said& said, const std::string& key) {
    for (SaidOption& one : said)
        if (one.key == key) return one;
    return said.emplace_back(SaidOption{key, {}});
}

/// What a command's words say, behind its name.
Said said_by(const std::vector<std::string>& words, const Options& options) {
    std::vector<const Option*> arguments;
    for (const Option& option : options)
        if (is_argument(option)) arguments.push_back(&option);
    Said said;
    for (std::size_t i = 2, argument = 0; i < words.size(); ++i) {
        const Option* const option = option_typed(options, words[i]);
        if (option == nullptr && words[i].starts_with('-')) {
            // Every command has these, and some have values.
            i += words[i] == "--json" ? 0 : 1;
        } else if (option == nullptr) {
            if (argument >= arguments.size()) throw InputError("unexpected " + words[i]);
            const Option& here = *arguments[argument];
            said_of(said, key_of(here)).texts.push_back(words[i]);
            if (!here.rules.many) ++argument;
        } else if (option->target.kind == ValueKind::flag) {
            said_of(said, key_of(*option)).texts = {"true"};
        } else {
            said_of(said, key_of(*option)).texts.push_back(words.at(++i));
        }
    }
    return said;
}

TEST(Question, has_examples_that_it_understands) {
    for (const Question& question : questions())
        for (const std::string& command : commands_in(question.example)) {
            const std::vector<std::string> words = words_in(command);
            const Asked asked = question_named(words.at(1)).ask();
            EXPECT_NO_THROW(fill(asked.options, said_by(words, asked.options))) << command;
        }
}

}  // namespace
}  // namespace moehub::question_test
