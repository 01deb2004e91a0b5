// Does the engine hand every component its events in the canonical order, whatever the scheme?
#include "sim/engine.hpp"

#include <random>

#include <gtest/gtest.h>

namespace moehub::sim::engine_test {
namespace {

constexpr Ps kLag = 100;

/// Components that pass messages on at pseudo-random delays and note what they saw.
struct Gossip {
    Engine engine;
    std::vector<std::vector<std::pair<Ps, std::uint32_t>>> seen;  // time, message

    Gossip(std::size_t components, Scheme scheme)
        : engine(components, kLag, scheme), seen(components) {}

    void send(ComponentId from, ComponentId to, Ps time, std::uint32_t message) {
        Train train;
        train.transfer = message;
        engine.push(to, time, from, train);
    }

    Ps run(ComponentId component, std::span<const Event> events, Ps) {
        for (const Event& event : events) {
            const std::uint32_t message = event.train.transfer;
            seen[component].push_back({event.time, message});
            if (message >= 40'000) continue;
            std::mt19937 random(message * 31 + component);
            const int copies = message % 5 == 0 ? 2 : 1;
            for (int i = 0; i < copies; ++i) {
                const auto to = static_cast<ComponentId>(random() % seen.size());
                // Now and then far ahead, beyond the ring of windows; often at equal times.
                const Ps delay = random() % 20 == 0 ? 100'000 : kLag + (random() % 4) * 50;
                send(component, to, event.time + delay,
                     message + 997 + static_cast<std::uint32_t>(i));
            }
        }
        return kNever;
    }
};

std::vector<std::vector<std::pair<Ps, std::uint32_t>>> gossip(Scheme scheme) {
    Gossip world(37, scheme);
    for (std::uint32_t i = 0; i < 20; ++i) world.send(i, (i * 7) % 37, 200, i);
    world.engine.run(world);
    return world.seen;
}

TEST(Engine, windows_and_heap_show_every_component_the_same_events_in_the_same_order) {
    const auto windows = gossip(Scheme::windows);
    EXPECT_EQ(windows, gossip(Scheme::heap));
    std::size_t total = 0;
    for (const auto& component : windows) total += component.size();
    EXPECT_GT(total, 1000u);
}

TEST(Engine, events_come_in_order_of_time_then_source) {
    struct World {
        std::vector<std::uint32_t> order;
        Ps run(ComponentId, std::span<const Event> events, Ps) {
            for (const Event& event : events) order.push_back(event.train.transfer);
            return kNever;
        }
    } world;
    Engine engine(1, kLag);
    const auto push = [&](Ps time, ComponentId source, std::uint32_t label) {
        Train train;
        train.transfer = label;
        engine.push(0, time, source, train);
    };
    push(30, 9, 4);
    push(10, 5, 2);
    push(10, 3, 1);
    push(30, 9, 5);  // same time and source: as emitted
    push(20, 1, 3);
    engine.run(world);
    EXPECT_EQ(world.order, (std::vector<std::uint32_t>{1, 2, 3, 4, 5}));
}

TEST(Engine, a_component_runs_when_it_asked_to_and_not_before) {
    struct World {
        std::vector<Ps> untils;
        Ps run(ComponentId, std::span<const Event>, Ps until) {
            untils.push_back(until);
            return untils.size() == 1 ? 1'000'000 : kNever;
        }
    } world;
    Engine engine(1, kLag, Scheme::heap);
    engine.wake(0, 5);
    engine.run(world);
    EXPECT_EQ(world.untils, (std::vector<Ps>{6, 1'000'001}));
}

TEST(Engine, an_effect_inside_its_own_window_is_refused) {
    struct World {
        Engine engine{2, kLag};
        Ps run(ComponentId component, std::span<const Event> events, Ps) {
            if (component == 0) engine.push(1, events[0].time, 0, events[0].train);
            return kNever;
        }
    } world;
    world.engine.push(0, 1000, 0, Train());
    EXPECT_THROW(world.engine.run(world), std::logic_error);
}

}  // namespace
}  // namespace moehub::sim::engine_test
