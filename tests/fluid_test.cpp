// Does a link shared by two classes drain as packets taking turns would?
#include "sim/switch/port.hpp"

#include <gtest/gtest.h>

namespace moehub::sim::fluid_test {
namespace {

constexpr std::size_t kAnswers = 0, kRequests = 1;

TEST(FluidLink, one_class_alone_waits_for_its_own_backlog) {
    FluidLink link;
    link.add(kRequests, 100, 0);
    EXPECT_DOUBLE_EQ(link.wait(kRequests), 100);
    link.advance(60);
    EXPECT_DOUBLE_EQ(link.wait(kRequests), 40);
    link.advance(200);
    EXPECT_DOUBLE_EQ(link.wait(kRequests), 0);
}

TEST(FluidLink, a_backlog_grows_at_what_arrives_beyond_the_link) {
    FluidLink link;
    link.add(kRequests, 0, 3);  // three trains at full rate
    link.advance(50);
    EXPECT_DOUBLE_EQ(link.wait(kRequests), 100);
}

TEST(FluidLink, equal_packets_share_the_link_evenly) {
    FluidLink link;
    link.add(kAnswers, 100, 0);
    link.add(kRequests, 300, 0);
    EXPECT_DOUBLE_EQ(link.wait(kAnswers), 200);
    EXPECT_DOUBLE_EQ(link.wait(kRequests), 400);
    link.advance(200);  // answers are through, requests got half
    EXPECT_DOUBLE_EQ(link.wait(kAnswers), 0);
    EXPECT_DOUBLE_EQ(link.wait(kRequests), 200);
}

TEST(FluidLink, short_packets_wait_for_one_long_packet_each) {
    FluidLink link;
    link.set_packet(kAnswers, 1);
    link.set_packet(kRequests, 9);
    link.add(kRequests, 1000, 0);
    link.add(kAnswers, 3, 0);  // three answers of one flit
    EXPECT_NEAR(link.wait(kAnswers), 30, 1e-9);
}

TEST(FluidLink, no_work_is_lost_or_made_when_classes_change) {
    FluidLink link;
    link.set_packet(kAnswers, 1);
    link.set_packet(kRequests, 9);
    link.add(kAnswers, 50, 0.25);
    link.add(kRequests, 200, 0.5);
    link.advance(1000);  // 250 + 0.75 · 1000 − 1000 = 0
    EXPECT_NEAR(link.wait(kAnswers) + link.wait(kRequests), 0, 1e-6);
    link.add(kRequests, 10, 0);
    EXPECT_NEAR(link.wait(kRequests), 10, 1e-6);
}

}  // namespace
}  // namespace moehub::sim::fluid_test
