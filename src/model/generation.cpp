
#include "base/input_error.hpp"
#include "base/nearest.hpp"
#include "model/records.hpp"

#include <moehub/presets.hpp>

#include <algorithm>

namespace moehub {
namespace {

/// "kernels.trtllm.decode.start" → "kernels.trtllm"; "overheads.host_sync" → "overheads"; none of a
/// datasheet's keys.
std::string table_of(const std::string& key) {
    const std::size_t first = key.find('.');
    if (first == std::string::npos) return "";
    if (!key.starts_with("kernels.")) return key.substr(0, first);
    return key.substr(0, key.find('.', first + 1));
}

/// Rates of one SM.
std::vector<double*> sm_rates(Kernels& k) {
    return {&k.gemm_load,         &k.gemm_store,
            &k.grouped_load,      &k.grouped_store,
            &k.stream_load,       &k.row_load,
            &k.row_load_hbm,      &k.row_store,
            &k.copy_load,         &k.plain_elements,
            &k.norm_load,         &k.quantise_load,
            &k.fp8_load,          &k.fp8_grouped_load,
            &k.attention_softmax, &k.attention_back_softmax,
            &k.flash2_softmax,    &k.flash2_back_softmax,
            &k.cast_load,         &k.softmax_load};
}

/// Rates of the whole card that its memory sets.
std::vector<double*> card_rates(Kernels& k) {
    return {&k.route_logits, &k.scatter_add, &k.index_add};
}

void scale(Kernels& k, const Gpu& from, const Gpu& to) {
    for (double* rate : sm_rates(k)) *rate *= to.clock / from.clock;
    for (double* rate : card_rates(k)) *rate *= to.hbm_bandwidth / from.hbm_bandwidth;
}

/// The card whose PyTorch constants the generation passes on, as its own files give them.
Gpu measured_card(const Document& document, const Entry& entry) {
    Gpu gpu;
    std::vector<Document> chain = load_chain("gpus", resolved(document, entry.text));
    for (Document& one : chain) {
        std::erase_if(one.entries, [](const Entry& e) { return e.key == "title"; });
        add_libraries(gpu, one.entries, "");
    }
    fill(fields_of(gpu), chain, {});
    return gpu;
}

}  // namespace

void add_libraries(Gpu& gpu, const std::vector<Entry>& entries, std::string_view prefix) {
    const std::string front = fmt::format("{}kernels.", prefix);
    for (const Entry& entry : entries) {
        if (!entry.key.starts_with(front)) continue;
        const std::size_t end = entry.key.find('.', front.size());
        const std::string name = entry.key.substr(front.size(), end - front.size());
        if (end != std::string::npos && name != "torch") gpu.libraries[name];
    }
}

Gpu inherited_by(const Gpu& own, const Given& given) {
    std::vector<Document> chain;
    try {
        chain = load_chain("generations", own.generation);
    } catch (const InputError& error) {
        refuse(given, "generation", error.what());
    }
    Gpu gpu;
    Given noted;
    for (const Document& document : chain) add_libraries(gpu, document.entries, "");
    const Fields fields = fields_of(gpu);
    for (const Document& document : chain)
        for (const Entry& entry : document.entries) {
            if (entry.key == "title") continue;
            if (entry.key != "torch") {
                apply(fields, entry, document.origin, noted);
                continue;
            }
            const Gpu measured = measured_card(document, entry);
            gpu.kernels = measured.kernels;
            gpu.overheads = measured.overheads;
            gpu.exchange = measured.exchange;
            scale(gpu.kernels, measured, own);
        }
    return gpu;
}

std::vector<std::string> missing_tables(Gpu gpu, const Given& given) {
    std::vector<std::string> tables;
    for (const Field& field : fields_of(gpu)) {
        const std::string table = table_of(field.key);
        if (table.empty() || given.where.contains(field.key)) continue;
        if (std::find(tables.begin(), tables.end(), table) == tables.end()) tables.push_back(table);
    }
    return tables;
}

void add_generations_libraries(Gpu& gpu, const std::vector<Document>& chain) {
    std::string generation;
    for (const Document& document : chain)
        for (const Entry& entry : document.entries)
            if (entry.key == "generation") generation = entry.text;
    const std::vector<std::string> known = preset_names("generations");
    if (std::find(known.begin(), known.end(), generation) == known.end()) return;  // refused later
    for (const Document& document : load_chain("generations", generation))
        add_libraries(gpu, document.entries, "");
}

void require_whole_kernels(Gpu gpu, const Given& given,
                           const std::map<std::string, KernelLibrary>& own) {
    if (own.empty()) return;
    Gpu by_generation;
    if (!gpu.generation.empty()) by_generation = inherited_by(gpu, given);
    std::vector<std::string> known{"torch"};
    for (const auto& [name, library] : by_generation.libraries) known.push_back(name);
    for (const auto& [name, unused] : own) {
        if (by_generation.libraries.contains(name)) continue;
        for (const Field& field : fields_of(gpu.libraries.at(name))) {
            const std::string kernel = field.key.substr(0, field.key.find('.'));
            const std::string front = fmt::format("kernels.{}.{}.", name, kernel);
            const auto one = given.where.lower_bound(front);
            const bool begun = one != given.where.end() && one->first.starts_with(front);
            const std::string key = field.key.substr(kernel.size() + 1);
            if (begun && !given.where.contains(front + key))
                throw input_error(
                    "{}: kernels.{}.{}: {} is missing, and a library that "
                    "no generation has gives all of a kernel{}",
                    one->second, name, kernel, key, did_you_mean(name, known));
        }
    }
}

}  // namespace moehub
