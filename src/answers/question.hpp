/// A question: what may be asked, and the function that answers. The command line, Python and
/// sweeps know questions by their table and nothing else.
#pragma once
#include "answers/option.hpp"
#include "base/parallel.hpp"
#include "report/answer.hpp"
#include "report/progress.hpp"
#include "study/sweep/study.hpp"
#include "study/sweep/transport.hpp"

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace moehub {

struct Reproduction;

/// Who asks, looks on while the answer is made, and may end it.
struct Asker {
    Said said;        ///< what was said, for what depends on whether it was
    Options options;  ///< all options that may be said
    std::vector<std::string> form_words = {};  ///< names of the question's forms
    bool wants_page = false;                   ///< also what pages alone show: time lines, maps
    bool wants_trace = false;
    std::stop_token stop;  ///< ends work early
    /// Called with what goes on and how far it is, by one thread at a time. May be empty.
    std::function<void(std::string_view what, const Work&)> progress;
    /// Writes a file whole, or throws InputError; what was written stays when the work is ended.
    std::function<void(const std::string& path, std::string_view text)> save;
    /// Learns of a file that was written some other way, and of what people should know meanwhile.
    std::function<void(const std::string& path)> wrote;
    std::function<void(const std::string& words)> tell;
    /// Makes a folder for a database that nobody named, which goes with the asker. Empty: such a
    /// one is kept in the working folder.
    std::function<std::string()> scratch;
    /// Ends the asker, which says these words; work that is underway does not come to its end.
    std::function<void(const std::string& words)> leave;
    /// Called by answers that sweeps ask when all is loaded and checked, before anything long
    /// begins, with all that numbers depend on. Throws where only that was wanted.
    std::function<void(const std::string& inputs)> ready;
    /// Other processes that simulate points of a sweep; null: this one is alone.
    std::function<std::unique_ptr<Transport>()> transport;

    /// For options of work that is done in pieces; throws Ended where the work is to end.
    std::function<void(std::size_t, std::size_t)> pieces(std::string what) const;
    void loaded(const std::function<std::string()>& inputs) const {
        if (ready) ready(inputs());
    }
    /// Throws InputError in a sweep where an option has several values, which make a table: sweeps
    /// want one row a point.
    void require_one_point(std::string_view option, std::size_t values) const;
    bool was_said(std::string_view key) const { return has(said, key); }
    /// Throws InputError when something was said that this form of the question does not have.
    void require_form(unsigned form) const;
};

/// A file that an option asks for, checked before the work begins.
struct OutputFile {
    std::string option;  ///< "--csv", for errors
    std::string path;
    bool goes_on = false;  ///< a file that is there is opened: who does that says what is wrong
};

/// A request while it is filled in.
struct Asked {
    Options options;  ///< point into the request
    std::function<Answer(const Asker&)> answer;
    /// Files that the answer writes itself, and those that it reads.
    std::function<std::vector<OutputFile>()> outputs = [] { return std::vector<OutputFile>(); };
    std::function<std::vector<std::string>()> inputs = [] { return std::vector<std::string>(); };
};

/// What everyone gets who asks: text for people, JSON, and these besides.
struct Forms {
    bool csv = true;
    bool page = true;
    bool trace = false;
    bool time_lines = false;  ///< pages have them; where there are traces, too, both
    bool output = true;       ///< -o: text or JSON into a file
};

/// How sweeps ask a question: a kind of study.
struct SweepKind {
    std::string name;  ///< "tp"
    /// Options that make the question one of this kind.
    std::vector<std::pair<std::string, std::string>> said = {};
    std::string systems = {};  ///< key of the option that names systems; empty: there is none
    std::vector<std::string> usual_systems = {};
    std::vector<std::string> dense_systems = {};  ///< usual ones without experts; empty: as usual
    void (*check)(const std::vector<std::string>&) = nullptr;  ///< check of systems; may be null
    /// Numbers that are kept of a point: keys of the answer's main table, or of its facts.
    std::vector<SweepMeasure> measures;
    unsigned forms = ~0u;    ///< forms that are asked: only their options are keys
    bool first_row = false;  ///< answers have several rows, the best first; else they have one
};

struct Question {
    // Words, from the table in question.cpp.
    std::string name = {};    ///< command's name
    std::string python = {};  ///< function's name; empty: Python has none
    std::string doc = {};
    std::string overview = {};
    std::string example = {};

    std::string first = {};                    ///< key of the option that Python takes by position
    std::vector<std::string> form_words = {};  ///< what its forms are called, bit by bit of
                                               ///< OptionRules::forms; one form: empty
    Forms forms = {};
    bool ends_softly = false;            ///< Ctrl-C ends it with the best that it has
    std::vector<SweepKind> sweeps = {};  ///< empty: sweeps do not ask it
    std::function<Asked()> ask;
};

/// The file that an option names; none where no path was said.
inline std::vector<OutputFile> output_to(const char* option, const std::string& path) {
    return path.empty() ? std::vector<OutputFile>{} : std::vector<OutputFile>{{option, path}};
}

/// A question whose request is a struct; with files that it reads and writes.
template <class Request>
std::function<Asked()> asking(
    Options (*options)(Request&), Answer (*answer)(const Request&, const Asker&),
    std::vector<std::string> (*inputs)(const std::type_identity_t<Request>&) = nullptr,
    std::vector<OutputFile> (*outputs)(const std::type_identity_t<Request>&) = nullptr) {
    return [=] {
        const auto request = std::make_shared<Request>();
        Asked asked{options(*request),
                    [request, answer](const Asker& asker) { return answer(*request, asker); }};
        if (inputs != nullptr) asked.inputs = [=] { return inputs(*request); };
        if (outputs != nullptr) asked.outputs = [=] { return outputs(*request); };
        return asked;
    };
}

/// Before long work. Throws InputError when a file could not be written now, has no name or that of
/// standard output, or would replace another output or one of `inputs`, or lie in a folder among
/// these; devices may come twice.
void require_writable(const std::vector<OutputFile>& files,
                      const std::vector<std::string>& inputs = {});

// All questions: a function each, in a file of its name; their words stand in question.cpp.

Question compare_question();
Question run_question();
Question gain_question();
Question model_question();
Question sweep_question();
Question merge_question();
Question plan_question();
Question area_question();
Question lines_question();
Question list_question();
Question show_question();
Question collective_question();
Question predict_question();
Question validate_question();
Question reproduce_question();
Question profile_question();
Question place_question();

/// All of them with their words, in the order that help lists them.
std::vector<Question> questions();

/// A reproduced paper as an answer.
Answer answer_of(const Reproduction& all);

}  // namespace moehub
