// Questions as functions: what is asked, by whom it is answered, and how Ctrl-C ends it.
#include "answers/question.hpp"
#include "base/files.hpp"
#include "bindings.hpp"
#include "report/answer_forms.hpp"

#include <moehub/error.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

namespace moehub::python {
namespace {

const std::vector<Question>& all_questions() {
    static const std::vector<Question> all = questions();
    return all;
}

const Question& question_named(const std::string& function) {
    for (const Question& question : all_questions())
        if (question.python == function) return question;
    throw std::logic_error("there is no question " + function);
}

/// A folder that is made when it is asked for and goes with this.
class Scratch {
  public:
    Scratch() = default;
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }
    const std::string& path() {
        path_ = (std::filesystem::temp_directory_path() / "moehub.XXXXXX").string();
        if (mkdtemp(path_.data()) == nullptr) throw InputError(path_ + ": cannot be made");
        return path_;
    }

  private:
    std::string path_;
};

bool in_main_thread() {
    const py::object main = py::module_::import("threading").attr("main_thread")();
    return main.attr("ident").cast<unsigned long>() == PyThread_get_thread_ident();
}

/// Threads that do one piece of work after another, so that a call starts none: its start and the
/// memory it begins with cost more than a small layer. They live as long as the process.
class Worker {
  public:
    /// One that has nothing to do, or a new one. With the interpreter's lock.
    static Worker* take() {
        if (std::exchange(process(), getpid()) != getpid())
            idle().clear();  // a fork has no threads
        if (idle().empty()) return new Worker;
        Worker* const worker = idle().back();
        idle().pop_back();
        return worker;
    }
    /// It is done. With the interpreter's lock.
    static void give_back(Worker* worker) { idle().push_back(worker); }

    void start(std::function<void()> work) {
        const std::lock_guard lock(mutex_);
        work_ = std::move(work);
        changed_.notify_one();
    }

  private:
    Worker() {
        std::thread([this] { run(); }).detach();
    }
    static std::vector<Worker*>& idle() {
        static std::vector<Worker*> all;
        return all;
    }
    static pid_t& process() {
        static pid_t id = getpid();
        return id;
    }
    [[noreturn]] void run() {
        for (;;) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return work_ != nullptr; });
            const std::function<void()> work = std::exchange(work_, nullptr);
            lock.unlock();
            work();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> work_;
};

/// An answer, made by another thread while this one looks for Ctrl-C and shows how far it is.
class Watched {
  public:
    Watched(const Asked& asked, Asker& asker, py::object progress)
        : asked_(asked), asker_(asker), progress_(std::move(progress)) {
        asker_.stop = stop_.get_token();
        asker_.tell = [this](const std::string& words) {
            const std::lock_guard lock(mutex_);
            told_.push_back(words);
        };
        if (progress_.is_none()) return;
        asker_.progress = [this](std::string_view what, const Work& work) {
            const std::lock_guard lock(mutex_);
            what_ = what;
            share_ = work.share;
        };
    }

    Answer answer() {
        // Python hears signals in its main thread alone.
        if (progress_.is_none() && !in_main_thread()) {
            const py::gil_scoped_release unlocked;
            work();
        } else {
            watch();
        }
        if (raised_) throw py::error_already_set(std::move(*raised_));
        if (error_) std::rethrow_exception(error_);
        for (const std::string& words : told_) PySys_FormatStderr("moehub: %s\n", words.c_str());
        return std::move(answer_);
    }

  private:
    void work() {
        const EndsOn ends(asker_.stop);
        try {
            answer_ = asked_.answer(asker_);
        } catch (...) {
            error_ = std::current_exception();
        }
    }

    void watch() {
        Worker* const worker = Worker::take();
        worker->start([this] {
            work();
            const std::lock_guard lock(mutex_);
            done_ = true;
            changed_.notify_one();
        });
        while (!waited())
            if (!raised_) look();
        Worker::give_back(worker);
    }

    bool waited() {
        constexpr auto kLook = std::chrono::milliseconds(50);
        const py::gil_scoped_release unlocked;
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, kLook, [this] { return done_; });
    }

    /// What a signal raises, or the progress of the caller, ends the work.
    void look() {
        try {
            if (PyErr_CheckSignals() != 0) throw py::error_already_set();
            show_progress();
        } catch (py::error_already_set& error) {
            raised_.emplace(std::move(error));
            stop_.request_stop();
        }
    }

    void show_progress() {
        std::unique_lock lock(mutex_);
        if (share_ < 0) return;
        const double share = std::exchange(share_, -1);
        const std::string what = what_;
        lock.unlock();
        progress_(what, share);
    }

    const Asked& asked_;
    Asker& asker_;
    py::object progress_;
    std::stop_source stop_;
    std::optional<py::error_already_set> raised_;
    std::exception_ptr error_;
    Answer answer_;
    std::mutex mutex_;  ///< guards all below
    std::condition_variable changed_;
    bool done_ = false;
    std::string what_;
    double share_ = -1;  ///< below 0: nothing new
    std::vector<std::string> told_;
};

/// Options that Python has beside what the question takes.
Options extra_options(const Question& question, bool& time_line) {
    Options options;
    if (question.forms.time_lines)
        options.push_back({"--timeline", to(time_line),
                           "record what pages and traces show over time, for to_html() and "
                           "to_trace()"});
    return options;
}

/// Called by the functions of moehub._functions with all their keywords.
py::object ask(const std::string& function, const py::dict& keywords) {
    const Question& question = question_named(function);
    Asked asked = question.ask();
    bool time_line = false;
    Options& options = asked.options;
    append(options, extra_options(question, time_line));
    // A trace is what time lines are for the program.
    if (question.forms.trace) options.push_back({"--trace", to(time_line), ""});
    Asker asker;
    asker.said = said_in(options, keywords);
    if (question.forms.trace && is_on(options, asker.said, "timeline"))
        asker.said.push_back({"trace", {"true"}});
    fill(options, asker.said);
    std::erase_if(asker.said, [](const SaidOption& one) { return one.key == "timeline"; });
    require_writable(asked.outputs(), asked.inputs());
    Scratch scratch;
    asker.options = std::move(options);
    asker.form_words = question.form_words;
    asker.wants_page = time_line || !question.forms.time_lines;  // time lines alone cost much
    asker.wants_trace = time_line && question.forms.trace;
    asker.save = [](const std::string& path, std::string_view text) { write_file(path, text); };
    asker.wrote = [](const std::string&) {};
    asker.scratch = [&scratch] { return scratch.path(); };
    py::object progress = py::none();
    if (keywords.contains("progress")) progress = keywords["progress"];
    Answer answer = Watched(asked, asker, progress).answer();
    if (!answer.failed.empty()) throw std::runtime_error(answer.failed);
    if (!answer.missing.empty()) throw InputError(answer.missing);
    if (!answer.output.empty()) write_file(answer.output, text_of(answer, {}));
    return to_result(std::move(answer), question, py::make_tuple(function, keywords));
}

py::dict facts_of(const Option& option) {
    py::dict facts;
    facts["keyword"] = keyword_of(option);
    facts["type"] = words_of(option.target.kind).python;
    facts["settings"] = option.target.kind == ValueKind::settings ||
                        (is_argument(option) && option.target.type == "KEY=VALUE");
    facts["list"] = option.target.list || option.target.commas;
    facts["argument"] = is_argument(option);
    facts["required"] = option.rules.required;
    facts["doc"] = option.doc;
    facts["usual"] = option.target.usual;
    facts["choices"] = option.target.choices;
    return facts;
}

/// What functions there are, as data: python/functions.py writes them down.
py::list described() {
    py::list all;
    for (const Question& question : all_questions()) {
        if (question.python.empty()) continue;
        const Asked asked = question.ask();
        bool time_line = false;
        Options options = asked.options;
        append(options, extra_options(question, time_line));
        py::list rows;
        for (const Option& option : options) rows.append(facts_of(option));
        py::dict one;
        one["name"] = question.python;
        one["command"] = question.name;
        one["doc"] = question.doc;
        one["first"] = question.first;
        one["options"] = rows;
        all.append(one);
    }
    return all;
}

}  // namespace

void bind_questions(py::module_& module) {
    module.def("ask", &ask, "The answer to a function's question.");
    module.def("questions", &described, "All functions that answer questions, with keywords.");
}

}  // namespace moehub::python
