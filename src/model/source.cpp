
#include "base/files.hpp"
#include "base/input_error.hpp"
#include "base/nearest.hpp"
#include "base/quantity.hpp"
#include "model/presets.hpp"
#include "model/records.hpp"

#include <moehub/presets.hpp>

#include <algorithm>
#include <filesystem>

namespace moehub {
namespace {

namespace fs = std::filesystem;

bool is_file_name(std::string_view name) {
    return name.find('/') != std::string_view::npos || name.ends_with(".toml");
}

std::string singular(std::string_view kind) {
    return std::string(kind.substr(0, kind.size() - 1));
}

Document open(std::string_view kind, const std::string& name) {
    if (is_file_name(name)) {
        const fs::path path(name);
        std::string text = read_bytes(name, kLongestToml);
        return {name, path.stem().string(), path.parent_path().string(), read_toml(text, name),
                std::move(text)};
    }
    for (const EmbeddedPreset& preset : embedded_presets()) {
        if (preset.kind != kind || preset.name != name) continue;
        const Origin origin = fmt::format("preset {}/{}", kind, name);
        return {origin, name, "", read_toml(preset.text, origin), std::string(preset.text)};
    }
    const std::vector<std::string> names = preset_names(kind);
    throw input_error("unknown {} {}{} ({})", singular(kind), moehub::quoted(name),
                      did_you_mean(name, names), fmt::join(names, ", "));
}

struct Base {
    std::string name;  ///< empty: the document extends nothing
    std::string at;    ///< front of an error about it
};

/// Takes `extends` out of the document.
Base take_base(Document& document) {
    const auto found = std::find_if(document.entries.begin(), document.entries.end(),
                                    [](const Entry& e) { return e.key == "extends"; });
    if (found == document.entries.end()) return {};
    if (found->type != Entry::Type::string || found->text.empty())
        throw InputError(at(document.origin, *found) + "expected a preset's name or a file");
    Base base{resolved(document, found->text), at(document.origin, *found)};
    document.entries.erase(found);
    return base;
}

/// What `what()` returns; where it fails, the error says first which file extends that.
template <class Open>
auto opened_by(const Base& base, Open what) {
    try {
        return what();
    } catch (const InputError& error) {
        throw InputError(base.at + error.what());
    }
}

void forget_name(Document& document) {
    std::erase_if(document.entries,
                  [](const Entry& e) { return e.key == "name" || e.key == "title"; });
}

std::vector<Document> follow(std::string_view kind, Document last) {
    constexpr std::size_t kLongest = 8;
    std::vector<Document> chain;
    Base base = take_base(last);
    const std::string first = base.at;
    chain.push_back(std::move(last));
    while (!base.name.empty()) {
        if (chain.size() == kLongest)
            throw input_error("{}more than {} files deep, or in a circle", first, kLongest);
        Document document = opened_by(base, [&] { return open(kind, base.name); });
        base = take_base(document);
        forget_name(document);
        chain.push_back(std::move(document));
    }
    std::reverse(chain.begin(), chain.end());
    return chain;
}

}  // namespace

std::string resolved(const Document& document, const std::string& name_or_path) {
    if (!is_file_name(name_or_path) || document.folder.empty()) return name_or_path;
    return (fs::path(document.folder) / name_or_path).string();
}

std::vector<Document> load_chain(std::string_view kind, const std::string& name_or_path) {
    return follow(kind, open(kind, name_or_path));
}

std::vector<Document> parse_chain(std::string_view kind, std::string_view text,
                                  const Origin& origin) {
    return follow(kind, {origin, fs::path(origin).stem().string(), "", read_toml(text, origin),
                         std::string(text)});
}

Given fill(const Fields& fields, const std::vector<Document>& chain, const Overrides& overrides) {
    Given given{chain.back().origin};
    for (const Document& document : chain)
        for (const Entry& entry : document.entries) apply(fields, entry, document.origin, given);
    for (const std::string& text : overrides) apply(fields, read_override(text), "--set", given);
    require_all(fields, given);
    return given;
}

std::vector<std::string> preset_names(std::string_view kind) {
    std::vector<std::string> names;
    for (const EmbeddedPreset& preset : embedded_presets())
        if (preset.kind == kind) names.emplace_back(preset.name);
    std::sort(names.begin(), names.end());  // files sort by "name.toml", which differs
    return names;
}

std::string preset_title(std::string_view kind, std::string_view name) {
    for (const Entry& entry : open(kind, std::string(name)).entries)
        if (entry.key == "title") return entry.text;
    return "";
}

std::string sources_of(const std::string& name_or_path) {
    const std::string kind = kind_of(name_or_path);
    std::string text;
    const auto add = [&](const std::vector<Document>& chain) {
        for (auto document = chain.rbegin(); document != chain.rend(); ++document) {
            text += fmt::format("{}# {}\n\n{}", text.empty() ? "" : "\n", document->origin,
                                document->text);
        }
    };
    add(load_chain(kind, name_or_path));
    if (kind == "machines") add(load_chain("gpus", load_machine(name_or_path).gpu_name));
    return text;
}

std::string kind_of(const std::string& name_or_path) {
    if (is_file_name(name_or_path)) {
        Base base{name_or_path, ""};
        for (int depth = 0; depth < 8 && is_file_name(base.name); ++depth) {
            Document document = opened_by(base, [&] { return open("machines", base.name); });
            for (const Entry& entry : document.entries) {
                if (entry.key == "program") return "systems";
                if (entry.key == "linear" || entry.key == "step_tokens") return "engines";
                if (entry.key == "causal_flops" || entry.key == "step_host") return "trainers";
                if (entry.key == "sms" || entry.key == "hbm_bandwidth") return "gpus";
                if (entry.key == "layers" || entry.key == "hidden") return "models";
                if (entry.key == "gpus_per_node" || entry.key == "gpu") return "machines";
            }
            base = take_base(document);
        }
        if (base.name.empty() || is_file_name(base.name)) return "machines";
        return opened_by(base, [&] { return kind_of(base.name); });
    }
    std::vector<std::string> names;
    for (const EmbeddedPreset& preset : embedded_presets()) {
        if (preset.kind == "papers") continue;  // which are named as what they propose
        if (preset.name == name_or_path) return std::string(preset.kind);
        names.emplace_back(preset.name);
    }
    const std::string hint = did_you_mean(name_or_path, names);
    throw input_error("unknown preset {}{}", moehub::quoted(name_or_path),
                      hint.empty() ? "; moehub list shows all" : hint);
}

}  // namespace moehub
