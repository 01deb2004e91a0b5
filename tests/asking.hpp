/// A question asked as the program and Python ask it: what was said in, the document out.
#pragma once
#include "answers/question.hpp"
#include "report/answer_forms.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace moehub {

inline Question question_named(const std::string& name) {
    for (const Question& one : questions())
        if (one.name == name) return one;
    throw std::logic_error("no question is named " + name);
}

/// Throws InputError as the question does.
inline Json document_of(const std::string& name, const Said& said) {
    const Question question = question_named(name);
    const Asked asked = question.ask();
    fill(asked.options, said);
    Asker asker;
    asker.said = said;
    asker.options = asked.options;
    asker.form_words = question.form_words;
    Answer answer = asked.answer(asker);
    answer.question = name;
    return document_of(answer);
}

}  // namespace moehub
