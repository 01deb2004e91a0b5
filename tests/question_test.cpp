// What holds of every question, and the one that ARCHITECTURE.md shows: compiled from the page.
#include "asking.hpp"

#include <moehub/error.hpp>

#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace moehub {

Question diameter_question();

namespace {

TEST(Question, DoesTheOneInArchitectureAnswer) {
    const Question question = diameter_question();
    const Asked asked = question.ask();
    fill(asked.options, {{"machine", {"gb200-nvl72"}}, {"set", {"link.latency=1 us"}}});
    const auto document = nlohmann::json::parse(document_of(asked.answer({})).dump(-1));
    EXPECT_EQ(document["gpus"], 72);
    EXPECT_EQ(document["latency_us"], 2.0);
}

TEST(Question, HasEveryOneWordsAndOptionsOfItsOwn) {
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

}  // namespace
}  // namespace moehub
